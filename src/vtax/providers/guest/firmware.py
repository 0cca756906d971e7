"""A disk that EFI firmware starts from: a boot partition with the kernel as an EFI program, and the root file system.

For hypervisors that cannot be given a kernel. All tools work on plain files: no root, loop device or mount, and
no own boot sector.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vtax.errors import EnvironmentMissing
from vtax.model.cluster import Image
from vtax.providers.guest import disk, initrd, uki
from vtax.providers.guest.disk import MIB
from vtax.providers.guest.guest_config import INIT

PROGRAMS = {"sfdisk": "fdisk", "mkfs.vfat": "dosfstools", "mcopy": "mtools", "mke2fs": "e2fsprogs"}
ROOT = "vtax-root"
FIRST, BOOT_SIZE, LAST = MIB, 64 * MIB, MIB  # bytes: before the boot partition, of it, and behind the root's
STUB = "boot/efi-stub"
# Without a check of the timer, which fails where the host is busy, and then the kernel does not start.
COMMAND_LINE = f"console=ttyS0 quiet oops=panic no_timer_check rw root=PARTLABEL={ROOT} rootfstype=ext4 init={INIT}"
TABLE = f"""label: gpt
start={FIRST // 512}, size={BOOT_SIZE // 512}, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name="vtax-efi"
start={(FIRST + BOOT_SIZE) // 512}, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name="{ROOT}"
"""


def write(path: Path, image: Image, size_bytes: int) -> None:
    """Write the disk. Raises EnvironmentMissing when the root file system has no kernel for it."""
    program = efi_program(image)
    start, size = FIRST + BOOT_SIZE, size_bytes // MIB * MIB
    _resize(path, start)  # which ends with the boot partition while that is made
    boot = ("--offset", str(FIRST // 512), "-F", "16", "-n", "VTAX-EFI")
    disk.tool("mkfs.vfat", *boot, str(path), str(BOOT_SIZE // 1024))
    place = ("-i", f"{path}@@{FIRST}")
    disk.tool("mmd", *place, "::/EFI", "::/EFI/BOOT")
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:
        file.write(program)
        file.flush()
        disk.tool("mcopy", *place, file.name, "::/EFI/BOOT/BOOTX64.EFI")
    _resize(path, size)
    disk.tool("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--wipe", "never", str(path), stdin=TABLE)
    words = ("-E", f"{disk.EXTENDED},offset={start}", "-L", "vtax-system", "-d", image.directory)
    disk.format_ext4(words, path, size - start - LAST)


def _resize(path: Path, size: int) -> None:
    with path.open("ab") as stream:
        os.truncate(stream.fileno(), size)


def efi_program(image: Image) -> bytes:
    """Kernel, RAM disk and command line as one program of the firmware."""
    stub = Path(image.directory) / STUB
    if not image.kernel or not stub.exists():
        raise EnvironmentMissing(
            "the root file system has no kernel that starts from firmware",
            remedy=f"`vtax image remove {image.recipe}`, then `vtax image build`",
        )
    ram_disk = initrd.build(image, tuple(sorted({*initrd.SATA, *initrd.NVME})))
    return uki.unified(stub.read_bytes(), sections(Path(image.kernel).read_bytes(), ram_disk))


def sections(kernel: bytes, ram_disk: bytes | None) -> Sequence[tuple[str, bytes]]:
    """The stub's names for what it starts; the kernel last, because it may grow in memory."""
    return (
        (".osrel", b"ID=vtax\nNAME=vtax\nVERSION_ID=1\n"),
        (".cmdline", COMMAND_LINE.encode()),
        *(((".initrd", ram_disk),) if ram_disk is not None else ()),
        (".linux", kernel),
    )
