"""The only part with input and output: which files there are, what each of them is, and its lines, one at a time.

No link is followed out of the folder, and neither the size of a file nor the length of a line decides how much memory
it takes (of a line that may be a JSON object, up to 32 MiB).
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from itertools import count, repeat
from pathlib import Path
from typing import IO, BinaryIO

from vtax import files
from vtax.store import writing
from vtax.tools.reading import Line, clean

SNIFFED = 64 * 2**10
SMALL = 4 * 2**20
LINE_CHARS = 18 * 2**10  # no tool prints longer lines, but for JSON; container engines cut those at 16 KiB
DOCUMENT_CHARS = 32 * 2**20
STANDARD_INPUT = Path("-")
FILE_BYTES = 4 * 2**30
FILES = 200_000
BLOCK = 2**20
MOST_RETURNS = 100  # in a line: what was printed over itself
DAMAGED = "\ufffd"

MAGIC = {
    b"PK\x03\x04": "an .xlsx or .ods workbook (save the sheet as text)",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\xd0\xcf\x11\xe0": "a binary workbook or document (save the sheet as text)",
    b"%PDF-": "a PDF",
    b"\x7fELF": "a program",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"SQLite format 3": "a database",
    b"\x09\x00\x04\x00": "a workbook of a benchmark (-b), which does not say the unit: give what was printed",
    b"\x09\x02\x06\x00": "a binary workbook (save the sheet as text)",
    b"\x09\x04\x06\x00": "a binary workbook (save the sheet as text)",
    b"\x09\x08": "a binary workbook (save the sheet as text)",
}
UTF16_SHARE = 0.3  # of NUL bytes at odd or even places, which only UTF-16 has
BINARY_SHARE = 0.05  # of control characters
CONTROLS = bytes(code for code in range(32) if code not in (0, 8, 9, 10, 12, 13, 27))


@dataclass(frozen=True)
class Found:
    """A file that was named, or found below `top`. `refused` says why it is not opened; "" when it may be."""

    path: Path
    shown: str
    top: Path
    refused: str = ""
    stored: Path | None = None  # where its bytes are, of a member of an archive and of standard input

    @property
    def size(self) -> int:
        """Its bytes, now. Raises OSError."""
        return (self.stored or self.path).lstat().st_size

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Its bytes. Raises OSError when what is there now is a link, or another thing than a regular file."""
        if self.stored is not None:
            return self.stored.open("rb")
        return files.opened(self.top, self.path.relative_to(self.top).as_posix())


def standard_input(stream: IO[bytes], place: Path) -> Found:
    """What another program writes, kept in a file."""
    found, size = Found(Path("standard-input"), "standard input", place.parent, stored=place), 0
    with writing(place), place.open("wb") as target:
        while block := stream.read(BLOCK):
            size += len(block)
            if size > FILE_BYTES:
                return replace(found, refused=f"it is larger than {FILE_BYTES // 2**30} GiB")
            target.write(block)
    return found if size else replace(found, refused="it is empty")


def find(paths: list[Path]) -> Iterator[Found]:
    """Every file below `paths`, in natural order of their names."""
    count = 0
    for top in paths:
        if top.is_dir():
            root = top.resolve()
            closed: list[OSError] = []
            for directory, names, others in os.walk(top, followlinks=False, onerror=closed.append):
                names.sort(key=natural)
                for link in [name for name in names if (Path(directory) / name).is_symlink()]:
                    yield _link(Path(directory) / link, top, root)
                for name in sorted(others, key=natural):
                    count += 1
                    if count > FILES:
                        yield Found(top, str(top), top, f"it has more than {FILES} files: import it in parts")
                        return
                    yield _file(Path(directory) / name, top, root)
            for error in closed:
                path = Path(error.filename)
                yield Found(path, _shown(path, top), top, f"a folder that cannot be read: {error.strerror}")
        else:
            yield _file(top, top.parent, top.resolve().parent)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """`run10` after `run9`."""
    return tuple((1, int(part[:18]), "") if part.isdecimal() else (0, 0, part) for part in re.split(r"([0-9]+)", name))


def _shown(path: Path, top: Path) -> str:
    text = str(path.relative_to(top)) if path != top else path.name
    return text.encode("utf-8", "replace").decode()


def _link(path: Path, top: Path, root: Path) -> Found:
    inside = _inside(path, root)
    why = "a link within the same folder, whose target is read itself" if inside else "a link out of the folder"
    return Found(path, _shown(path, top), top, why)


def _inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False


def _file(path: Path, top: Path, root: Path) -> Found:
    shown = _shown(path, top)
    try:
        mode = path.lstat()
    except OSError as error:
        return Found(path, shown, top, f"it cannot be read: {error.strerror}")
    if stat.S_ISLNK(mode.st_mode):
        return _link(path, top, root)
    if not stat.S_ISREG(mode.st_mode):
        return Found(path, shown, top, "a device, a socket or a pipe, not a regular file")
    if mode.st_size == 0:
        return Found(path, shown, top, "it is empty")
    if mode.st_size > FILE_BYTES:
        return Found(path, shown, top, f"it is larger than {FILE_BYTES // 2**30} GiB")
    return Found(path, shown, top)


@dataclass
class Text:
    """A file that is text. `damaged` lists lines that were too long or held NUL bytes."""

    found: Found
    encoding: str
    damaged: list[int]
    content: bytes | None = None  # of a small file, which is read once

    def stream(self) -> AbstractContextManager[BinaryIO]:
        return self.found.open() if self.content is None else closing(io.BytesIO(self.content))

    def sha256(self) -> str:
        """The checksum of its bytes."""
        with self.stream() as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()  # type: ignore[arg-type]

    def ends_line(self) -> bool:
        """Whether its last line has its end, so that nothing of it can be missing."""
        with self.stream() as raw:
            raw.seek(0, os.SEEK_END)
            raw.seek(-min(4, raw.tell()), os.SEEK_CUR)
            return raw.read().rstrip(b"\0").endswith(b"\n")

    def lone_return(self) -> int:
        """The first line that has a carriage return before its end; 0 for none."""
        with self.stream() as raw, io.TextIOWrapper(raw, self.encoding, "replace", newline="\n") as stream:
            number = 1
            while text := stream.readline(BLOCK):
                if "\r" in text and "\r" in text.rstrip("\r\n"):
                    return number
                number += text.endswith("\n")
        return 0

    def copy(self, place: Path) -> None:
        """Copy its bytes to another path, whose directory is made. Raises StoreError."""
        with self.stream() as raw, writing(place):
            place.parent.mkdir(exist_ok=True)
            with place.open("wb") as copy:
                shutil.copyfileobj(raw, copy, BLOCK)

    def lines(self) -> Iterator[Line]:
        """Its lines, without their ends. One that is too long is cut and marked, so that no value is taken from it."""
        return self._long() if (short := self._short()) is None else short

    def _short(self) -> Iterator[Line] | None:
        """The lines of a file that is in memory and has nothing but plain lines; None for any other."""
        text = self.content.decode(self.encoding, "replace") if self.content is not None else "\0"
        if "\r" in text and "\n" not in text:  # the ends of lines of old spreadsheets
            text = text.replace("\r", "\n")
        if "\0" in text or "\r" in text or "\x1b" in text:
            return None
        lines = text.removesuffix("\n").split("\n") if text else []
        if max(map(len, lines), default=0) >= LINE_CHARS - 1:
            return None
        if text.startswith("[") or "\n[" in text:  # perhaps a rank's tag
            return (Line(n, *(clean(one) if one[:1] == "[" else ("", one))) for n, one in enumerate(lines, start=1))
        return map(Line, count(1), repeat(""), lines)

    def _long(self) -> Iterator[Line]:
        """The lines of any file, one at a time. Carriage returns inside of one stay: a prefix may be in front."""
        with self.stream() as raw, io.TextIOWrapper(raw, self.encoding, "replace", newline="\n") as stream:
            number = 0
            while text := stream.readline(LINE_CHARS):
                number += 1
                if len(text) == LINE_CHARS and '{"' in text:
                    text += stream.readline(DOCUMENT_CHARS)
                if len(text) in (LINE_CHARS, LINE_CHARS + DOCUMENT_CHARS) and not text.endswith("\n"):
                    self._note(number)
                    text = text[:80] + DAMAGED
                    while (rest := stream.readline(BLOCK)) and not rest.endswith("\n"):
                        pass
                if "\0" in text:
                    self._note(number)
                    text = text.strip("\0").replace("\0", DAMAGED)
                if text.count("\r") >= MOST_RETURNS:
                    text = DAMAGED
                if text[:1] == "[" or "\x1b" in text:
                    yield Line(number, *clean(text))
                else:
                    yield Line(number, "", text.rstrip("\r\n"))  # what `clean` gives, for most lines of most files

    def _note(self, number: int) -> None:
        if len(self.damaged) < 100:
            self.damaged.append(number)


def opened(found: Found) -> Text | str:
    """The file as text, or why it is not text."""
    try:
        with found.open() as stream:
            head = stream.read(SMALL)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    content = head if len(head) < SMALL else None
    head = head[:SNIFFED]
    kind = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "")
    if kind:
        return kind
    encoding = encoding_of(head)
    return Text(found, encoding, [], content) if encoding else "binary data"


def encoding_of(head: bytes) -> str:
    """The encoding of text by its mark, or by where its NUL bytes are; "" for binary data."""
    for mark, name in (
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
        (b"\xef\xbb\xbf", "utf-8-sig"),
    ):
        if head.startswith(mark):
            return name
    if not head.strip(b"\0"):
        return ""
    odd, even = head[1::2].count(0), head[0::2].count(0)
    half = max(1, len(head) // 2)
    if odd > UTF16_SHARE * half and even < 0.01 * half:
        return "utf-16-le"
    if even > UTF16_SHARE * half and odd < 0.01 * half:
        return "utf-16-be"
    controls = len(head) - len(head.translate(None, CONTROLS))
    return "" if controls > BINARY_SHARE * len(head) else "utf-8"
