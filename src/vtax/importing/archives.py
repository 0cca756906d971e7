"""Archives as files: every member is unpacked to the disk under a number, never under its own name, and removed again.

How much is unpacked does not depend on what an archive says of itself: bytes are counted as they come.
"""

from __future__ import annotations

import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from vtax import tars
from vtax.importing.source import Found
from vtax.store import writing

BYTES = 2 * 2**30  # of one archive, unpacked
MEMBERS = 100_000
RATIO = 1_000  # of unpacked to packed bytes
FREE = 2**20  # bytes that may be unpacked whatever the ratio
BLOCK = 2**20
DAMAGED = (
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,
    ValueError,
)
OFFICE = ("[Content_Types].xml", "mimetype")  # members of workbooks and documents
SUFFIXES = (".gz", ".xz", ".bz2", ".tgz", ".txz")


class TooLarge(Exception):
    """A limit of archives that was reached, in words."""


@dataclass
class Budget:
    """What may still be unpacked of one archive of `packed` bytes."""

    packed: int
    unpacked: int = 0
    members: int = 0
    read: int = 0

    def member(self) -> None:
        self.members += 1
        if self.members > MEMBERS:
            raise TooLarge(f"it has more than {MEMBERS:,} members")

    def pass_over(self, count: int) -> None:
        """Of an archive that was read so far: what is compressed has to be unpacked also where it is passed over."""
        self.read += count
        if self.read > max(FREE, 2 * RATIO * self.packed):
            raise TooLarge(f"it is more than {RATIO:,} times as large when unpacked")

    def add(self, count: int) -> None:
        self.unpacked += count
        if self.unpacked > BYTES:
            raise TooLarge(f"it has more than {BYTES // 2**30} GiB when unpacked")
        if self.unpacked > max(FREE, RATIO * self.packed):
            raise TooLarge(f"it is more than {RATIO:,} times as large when unpacked")


def expanded(every: Iterator[Found], folder: Path) -> Iterator[Found]:
    """Files as they are, and of archives their members, each in `folder` until the next one is asked for."""
    for found in every:
        kind = "" if found.refused else _kind(found)
        if not kind:
            yield found
            continue
        with writing(folder):
            folder.mkdir(exist_ok=True)
        try:
            yield from _members(found, kind, folder)
        except TooLarge as error:
            yield replace(found, refused=f"an archive of which the rest is not read: {error} (a limit of vtax)")
        except DAMAGED as error:
            why = "it is encrypted" if "encrypted" in str(error) else f"it is damaged: {error or type(error).__name__}"
            yield replace(found, refused=f"an archive of which the rest is not read: {str(why)[:200]}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _kind(found: Found) -> str:
    """Which kind of archive a file is; "" for any other file."""
    try:
        with found.open() as stream:
            head = stream.read(512)
    except OSError:
        return ""
    if head.startswith(b"PK\x03\x04"):
        return "zip" if not _office(found) else ""
    if any(head.startswith(magic) for magic in tars.STREAMS):
        return "compressed"
    return "tar" if _is_tar(head) else ""


def _office(found: Found) -> bool:
    try:
        with found.open() as stream, zipfile.ZipFile(stream) as archive:
            return any(name in OFFICE for name in archive.namelist()[:5])
    except DAMAGED:
        return False


def _is_tar(head: bytes) -> bool:
    return len(head) > 262 and head[257:262] == b"ustar"


def _members(found: Found, kind: str, folder: Path) -> Iterator[Found]:
    with found.open() as packed:
        budget = Budget(os.fstat(packed.fileno()).st_size)
        if kind == "zip":
            yield from _of_zip(found, packed, folder, budget)
        elif kind == "tar":
            yield from _of_tar(found, packed, folder, budget)
        else:
            yield from _compressed(found, packed, folder, budget)


def _compressed(found: Found, packed: BinaryIO, folder: Path, budget: Budget) -> Iterator[Found]:
    """One file, or a tar archive."""
    content = tars.unpacking(packed)
    assert content is not None
    with content:
        tar = _is_tar(content.read(512))
    packed.seek(0)
    content = tars.unpacking(packed)
    assert content is not None
    with content:
        if tar:
            yield from _of_tar(found, content, folder, budget)
            return
        name = found.path.name
        inner = next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)
        budget.member()
        yield _unpacked(found, inner, content, folder, budget)


def _of_tar(found: Found, stream: IO[bytes], folder: Path, budget: Budget) -> Iterator[Found]:
    with tars.archive(stream, budget.pass_over) as archive:
        for member in archive:
            budget.member()
            if member.isdir():
                continue
            if reason := _name_problem(member.name):
                yield _member(found, member.name, reason)
            elif member.issym() or member.islnk():
                yield _member(found, member.name, "a link in an archive, which is not followed")
            elif not member.isreg() or (content := archive.extractfile(member)) is None:
                yield _member(found, member.name, "a device, a socket or a pipe, not a regular file")
            else:
                yield _unpacked(found, member.name, content, folder, budget)


def _of_zip(found: Found, packed: BinaryIO, folder: Path, budget: Budget) -> Iterator[Found]:
    with zipfile.ZipFile(packed) as archive:
        for member in archive.infolist():
            budget.member()
            if member.is_dir():
                continue
            if reason := _name_problem(member.filename):
                yield _member(found, member.filename, reason)
            elif stat.S_ISLNK(member.external_attr >> 16):
                yield _member(found, member.filename, "a link in an archive, which is not followed")
            else:
                with archive.open(member) as content:
                    yield _unpacked(found, member.filename, content, folder, budget)


def _name_problem(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    return "its name leads out of the archive" if path.is_absolute() or ".." in path.parts or ":" in name[:2] else ""


def _member(found: Found, name: str, refused: str = "", stored: Path | None = None) -> Found:
    printable = name.encode("utf-8", "replace").decode()
    inside = "/".join(
        part for part in PurePosixPath(printable.replace("\\", "/")).parts if part not in ("/", "..", ".")
    )
    return Found(found.path / (inside or "x"), f"{found.shown}/{inside}", found.top, refused, stored)


def _unpacked(found: Found, name: str, content: IO[bytes], folder: Path, budget: Budget) -> Found:
    """A member on the disk. The one before it is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / str(budget.members)
    with writing(place):
        folder.mkdir()
        place.touch()
    while block := content.read(BLOCK):  # what fails here is the archive's fault, what fails below is not
        budget.add(len(block))
        with writing(place), place.open("ab") as target:
            target.write(block)
    if place.stat().st_size == 0:
        return _member(found, name, "it is empty")
    member = _member(found, name, "", place)
    return replace(member, refused="an archive inside an archive: unpack it first") if _kind(member) else member
