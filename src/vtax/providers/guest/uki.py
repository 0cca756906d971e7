"""A kernel as a program of EFI firmware: systemd's stub with kernel, RAM disk and command line as sections of it. Pure.

The layout is the Portable Executable's: a table of sections behind the headers, and their contents in the file at
multiples of one alignment, in memory at multiples of another (UAPI group: Unified Kernel Image; Microsoft: PE format).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from vtax.errors import EnvironmentMissing

SECTION = struct.Struct("<8sIIIIIIHHI")
OPTIONAL = 24  # of the optional header, behind the signature and the file header
READABLE_DATA = 0x40000040


def unified(stub: bytes, sections: Sequence[tuple[str, bytes]]) -> bytes:
    """The stub with these sections added, name and content. Raises EnvironmentMissing for anything else than a stub."""
    header = _header(stub)
    count, optional_size = struct.unpack_from("<H", stub, header + 6)[0], struct.unpack_from("<H", stub, header + 20)[0]
    memory_unit, file_unit = struct.unpack_from("<II", stub, header + OPTIONAL + 32)
    headers_size = struct.unpack_from("<I", stub, header + OPTIONAL + 60)[0]
    table = header + OPTIONAL + optional_size
    last = max(
        (SECTION.unpack_from(stub, table + number * SECTION.size) for number in range(count)), key=lambda one: one[2]
    )
    if table + (count + len(sections)) * SECTION.size > headers_size:
        raise EnvironmentMissing("the EFI stub has no room for more sections", remedy="use suite trixie in [image]")
    made = bytearray(_filled(stub, file_unit))
    memory = _up(last[2] + last[1], memory_unit)
    for number, (name, content) in enumerate(sections, start=count):
        place = _up(len(content), file_unit)
        entry = (name.encode(), len(content), memory, place, len(made), 0, 0, 0, 0, READABLE_DATA)
        SECTION.pack_into(made, table + number * SECTION.size, *entry)
        made += _filled(content, file_unit)
        memory = _up(memory + len(content), memory_unit)
    struct.pack_into("<H", made, header + 6, count + len(sections))
    struct.pack_into("<I", made, header + OPTIONAL + 56, memory)  # the size of all in memory
    struct.pack_into("<I", made, header + OPTIONAL + 64, 0)  # no checksum, which firmware does not look at
    return bytes(made)


def _header(stub: bytes) -> int:
    """Where the headers begin."""
    if stub[:2] == b"MZ" and len(stub) > 0x40:
        start: int = struct.unpack_from("<I", stub, 0x3C)[0]
        if stub[start : start + 4] == b"PE\0\0":
            return start
    raise EnvironmentMissing("the EFI stub of the root file system is not an EFI program", remedy="`vtax image remove`")


def _up(size: int, unit: int) -> int:
    return (size + unit - 1) // unit * unit


def _filled(content: bytes, unit: int) -> bytes:
    return content.ljust(_up(len(content), unit), b"\0")
