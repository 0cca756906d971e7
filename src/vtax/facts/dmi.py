"""What the firmware says of memory: SMBIOS structures of type 17, from the table that Linux shows to root.

Layout: DMTF DSP0134, "Memory Device (Type 17)". Every structure has a header (type, length, handle), a formatted part
of that length, and strings that end with two zero bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from vtax.model.record import Record

TABLE = "/sys/firmware/dmi/tables/DMI"
MEMORY_DEVICE = 17
UNKNOWN = 0xFFFF


class MemoryDevice(Record):
    """One module that is there. `rate` is transfers a second, `width_bits` of data without those for correction."""

    locator: str
    bank: str
    size_bytes: int
    width_bits: int
    rate: float


def read_table(root: Path = Path("/")) -> bytes:
    """The table, or nothing where the machine has none or this user may not read it."""
    try:
        return (root / TABLE.lstrip("/")).read_bytes()
    except OSError:
        return b""


def memory_devices(table: bytes) -> tuple[MemoryDevice, ...]:
    """Every module with a known size, width and rate, in the table's order. Damaged ends are left out."""
    found = []
    for kind, body, strings in structures(table):
        if kind != MEMORY_DEVICE or len(body) < 0x17:
            continue
        width, size = struct.unpack_from("<HH", body, 0x0A)
        (speed,) = struct.unpack_from("<H", body, 0x15)
        configured = struct.unpack_from("<H", body, 0x20)[0] if len(body) >= 0x22 else 0
        extended = struct.unpack_from("<I", body, 0x1C)[0] if len(body) >= 0x20 else 0
        rate = configured or speed
        if size in (0, UNKNOWN) or width in (0, UNKNOWN) or rate in (0, UNKNOWN):
            continue
        found.append(
            MemoryDevice(
                locator=_string(strings, body[0x10]),
                bank=_string(strings, body[0x11]),
                size_bytes=_size_bytes(size, extended),
                width_bits=width,
                rate=rate * 1e6,
            )
        )
    return tuple(found)


def _size_bytes(size: int, extended: int) -> int:
    """MiB, or KiB with the top bit; 0x7FFF means that the extended field has MiB."""
    if size == 0x7FFF:
        return (extended & 0x7FFFFFFF) * 2**20
    return (size & 0x7FFF) * (2**10 if size & 0x8000 else 2**20)


def _string(strings: tuple[str, ...], number: int) -> str:
    return strings[number - 1].strip() if 0 < number <= len(strings) else ""


def structures(table: bytes) -> Iterator[tuple[int, bytes, tuple[str, ...]]]:
    """(type, formatted part with its header, strings) of every whole structure."""
    position = 0
    while position + 4 <= len(table):
        kind, length = table[position], table[position + 1]
        end = table.find(b"\0\0", position + length)
        if length < 4 or end < 0:
            return
        text = table[position + length : end]
        yield kind, table[position : position + length], tuple(s.decode("latin-1") for s in text.split(b"\0") if s)
        position = end + 2
