"""The file itself: a zip archive with the same bytes for the same content, and reading one that somebody else made.

A reader believes nothing of it: number, names, kinds and sizes of its members are checked before one is read, and what
is read is counted.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from vtax import files
from vtax.errors import DamagedError

MANIFEST, SIGNATURE, CAMPAIGN = "seal.json", "seal.json.sig", "campaign/"
MEMBERS = 500_000
DIRECTORY_BYTES = 64 * 2**20  # of the list of members, which is read as a whole
MEMBER_BYTES = 256 * 2**20  # of one member: as much as is read of one file of a campaign
WHOLE_BYTES = 4 * 2**30  # of all members, unpacked
RATIO = 1000  # unpacked to packed; deflate itself gives at most 1032
EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip archive can name
_WORD, _FILE = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}", r"[A-Za-z0-9%_][^/\\\x00-\x1f\x7f]{0,254}"
NAMES = re.compile(
    r"study\.toml|(?:plan|campaign|looks|imports|claims|analysis|audit)\.json"
    rf"|files/[0-9a-f]{{64}}|(?:cells|raw)/{_FILE}|trials/{_WORD}/{_WORD}/{_FILE}"
)
REMEDY = "ask whoever made it for the file again"


class SealError(DamagedError):
    """A file is not a sealed campaign, or not one that may be unpacked."""


def write(stream: IO[bytes], members: Iterable[tuple[str, bytes]]) -> None:
    """Write members in the given order. Nothing of this machine, its clock or its user gets into the archive."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members:
            about = zipfile.ZipInfo(name, EARLIEST)
            about.compress_type, about.create_system = zipfile.ZIP_DEFLATED, 3
            about.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(about, content)


class Archive:
    """A sealed campaign that is open. Members that may not be there made it impossible to open it."""

    def __init__(self, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> None:
        self.archive, self.members = archive, members

    def read(self, name: str) -> bytes:
        """One member. Raises SealError when it is missing, damaged, or longer than the list of members says."""
        about = self.members.get(name)
        if about is None:
            raise SealError(f"it has no {name}", remedy=REMEDY)
        try:
            with self.archive.open(about) as stream:
                content = stream.read(about.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError) as error:
            raise SealError(f"{name} is damaged: {error}", remedy=REMEDY) from error
        if len(content) != about.file_size:
            raise SealError(f"{name} has another size than the archive says", remedy=REMEDY)
        return content

    def names(self) -> Iterator[str]:
        """The campaign's files, as they are called in its directory."""
        return (name.removeprefix(CAMPAIGN) for name in self.members if name.startswith(CAMPAIGN))


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """A sealed campaign, after all of its members were found to be harmless. Raises SealError otherwise."""
    try:
        with files.given(path) as stream:
            size = _size(stream)
            with zipfile.ZipFile(stream) as archive:
                yield Archive(archive, _members(archive, size))
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError) as error:
        raise SealError(f"{path} is not a sealed campaign: {error}", remedy="give a file of `vtax seal`") from error
    except OSError as error:
        raise SealError(f"{path} cannot be read: {error.strerror}", remedy="give a file of `vtax seal`") from error


def _size(stream: IO[bytes]) -> int:
    """The size of the file, whose list of members is small enough to be read. Raises SealError."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - 22 - 20 - 56))
    tail = stream.read()
    end = tail[-22:]
    if end[:4] != b"PK\x05\x06":
        raise zipfile.BadZipFile("it does not end like one, so it was cut off or is something else")
    listed = struct.unpack("<L", end[12:16])[0]
    if tail[-42:-38] == b"PK\x06\x07":  # a long archive: the record before the locator has the sizes that count
        listed = max(struct.unpack("<Q", tail[-98 + 40 : -98 + 48])[0], listed if listed < 2**32 - 1 else 0)
    if listed > DIRECTORY_BYTES:
        raise SealError("its list of members is too long", remedy=REMEDY)
    stream.seek(0)
    return size


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name. Raises SealError for the first thing that no sealed campaign has."""
    found: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for about in archive.infolist():
        problem = _problem(about)
        total += about.file_size
        if about.filename in found:
            problem = "it is there twice"
        elif len(found) >= MEMBERS:
            problem = f"the archive has more than {MEMBERS} members"
        elif total > WHOLE_BYTES or total > RATIO * size:
            problem = "the archive would become too large"
        if problem:
            raise SealError(f"{about.filename[:200]} cannot be part of a sealed campaign: {problem}", remedy=REMEDY)
        found[about.filename] = about
    return found


def _problem(about: zipfile.ZipInfo) -> str:
    """What is wrong with one member; "" when nothing is."""
    name = about.filename
    inside = name.removeprefix(CAMPAIGN) if name.startswith(CAMPAIGN) else ""
    if name not in (MANIFEST, SIGNATURE) and NAMES.fullmatch(inside) is None:
        return "no file of a campaign has that name"
    if stat.S_IFMT(about.external_attr >> 16) not in (0, stat.S_IFREG) or about.is_dir():
        return "it is not a regular file"
    if about.flag_bits & 1:
        return "it is encrypted"
    if about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "it is packed in another way"
    return f"it has more than {MEMBER_BYTES // 2**20} MiB" if about.file_size > MEMBER_BYTES else ""
