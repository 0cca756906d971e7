"""Tar archives of others, of which neither the sizes in headers nor what is packed can be believed.

A member that is passed over is unpacked all the same where the archive is compressed, and a header may claim to be
gigabytes long, all of which tarfile reads at once.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TypeVar, cast

T = TypeVar("T")
READ_BYTES = 16 * 2**20  # at once
Count = Callable[[int], object]  # of the bytes that were unpacked since it was called last; raises where it is too much
STREAMS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda packed: cast("IO[bytes]", gzip.GzipFile(fileobj=packed)),
    b"BZh": lambda packed: cast("IO[bytes]", bz2.BZ2File(packed)),
    b"\xfd7zXZ\x00": lambda packed: cast("IO[bytes]", lzma.LZMAFile(packed)),  # noqa: SIM115
}


def unpacking(stream: IO[bytes]) -> IO[bytes] | None:
    """What unpacks a file that is compressed, from its beginning; None for any other file."""
    begin = stream.read(8)
    stream.seek(0)
    return next((opener(stream) for magic, opener in STREAMS.items() if begin.startswith(magic)), None)


class Bounded:
    """A file of which only so much is read at once, and whose bytes are counted, those that are passed over too."""

    def __init__(self, stream: IO[bytes], count: Count) -> None:
        self._stream, self._count = stream, count
        self._furthest = 0

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= READ_BYTES:
            raise ValueError("a header is larger than any that is needed")
        return self._counted(self._stream.read(size))

    def seek(self, offset: int, whence: int = 0) -> int:
        while whence == 0 and self._furthest + READ_BYTES < offset:  # in steps, so that it is counted on the way
            self._counted(self._stream.seek(self._furthest + READ_BYTES))
            if self._stream.tell() < offset and not self._stream.read(1):
                break  # the end of the file
        return self._counted(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return self._stream.tell()

    def _counted(self, done: T) -> T:
        more = self._stream.tell() - self._furthest
        if more > 0:
            self._furthest += more
            self._count(more)
        return done


@contextmanager
def archive(stream: IO[bytes], count: Count = lambda _: None) -> Iterator[tarfile.TarFile]:
    """The archive in a stream that is not compressed, or that unpacks one. Members are read in order, in parts."""
    with tarfile.open(fileobj=cast("IO[bytes]", Bounded(stream, count)), mode="r:") as opened:
        yield opened
