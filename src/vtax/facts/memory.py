"""How much of its memory a virtual machine's own kernel keeps before it counts the rest as MemTotal.

Measured in guests that are started by their kernel: 43 MiB of 256 MiB, 56 MiB of 1 GiB, 157 MiB of 3 GiB, 173 MiB of
4 GiB; the generic kernel under EFI firmware keeps up to 30 MiB more.
"""

from __future__ import annotations

PAGES = 64  # a sixty-fourth describes the pages of the rest: 64 bytes for each of 4 KiB
FIXED_BYTES = 96 * 2**20  # the kernel itself, its first RAM disk, firmware: 40 MiB to 76 MiB were seen
BOUNCE_BYTES = 64 * 2**20  # for devices that reach 32 bits alone: reserved where there is memory beyond these
BOUNCE_FROM_BYTES = 5 * 2**29  # 2.5 GiB: below, no machine has memory there


def kernel_keeps(memory_bytes: int) -> int:
    """The most that a good guest of this size does not show of it."""
    return memory_bytes // PAGES + FIXED_BYTES + (BOUNCE_BYTES if memory_bytes >= BOUNCE_FROM_BYTES else 0)
