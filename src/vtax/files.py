"""Files in a directory that somebody else may have made, opened and written without following any link.

Each part of a path is opened in the directory before it, so that nothing can be exchanged in between. All functions
raise OSError with a reason for a person.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import secrets
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

CLOSED = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK  # a pipe without a writer does not block
FLUSHED_AT_ONCE = 16
PROBE_S = 1.0  # how long a lock may be held that only asks whether it is free
ENTRIES = 4_000_000  # of a directory tree that is looked through
KERNEL = ("/proc", "/sys")  # whose files call themselves regular, and may wait, or never end


def read(root: Path, name: str, most: int) -> bytes:
    """A regular file below `root` of at most `most` bytes."""
    with opened(root, name) as stream:
        return _bounded(stream, most, root / name)


def read_given(path: Path, most: int) -> bytes:
    """A file that a person named, of at most `most` bytes."""
    with given(path) as stream:
        return _bounded(stream, most, path)


@contextmanager
def given(path: Path) -> Iterator[BinaryIO]:
    """A regular file that a person named, to be read in parts. It may be a link to another file of its folder, but to
    none elsewhere: the folder may be somebody else's."""
    if path.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.is_symlink():
        folder, path = path.parent.resolve(), path.resolve(strict=True)
        if not path.is_relative_to(folder):
            raise OSError(errno.ELOOP, f"it is a symbolic link out of its folder, to {path}", str(path))
    with opened(path.parent, path.name) as stream:
        yield stream


def _bounded(stream: BinaryIO, most: int, path: Path) -> bytes:
    large = os.fstat(stream.fileno()).st_size > most  # a record of 10 GB is not read to find that out
    content = b"" if large else stream.read(most + 1)
    if large or len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most / 2**20:g} MiB", str(path))
    return content


@contextmanager
def opened(root: Path, name: str) -> Iterator[BinaryIO]:
    """A regular file below `root`, to be read in parts."""
    with _parent(root, name) as (directory, last), _open(directory, last) as stream:
        yield stream


def write(root: Path, name: str, content: bytes, *, flush: bool = True) -> None:
    """Write a file below `root` under a random name, flush it, rename it, flush its directory. Directories on the way
    are made. After an error the old file is as it was."""
    with _parent(root, name, make=True) as (directory, last):
        fresh = f".{secrets.token_hex(8)}.tmp"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSED, 0o666, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                if flush:
                    os.fsync(stream.fileno())
            os.replace(fresh, last, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=directory)
            raise
        if flush:
            os.fsync(directory)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file while this lasts, made if need be; False where another process holds it. Its content
    stays. A process that only asks (`is_locked`) is waited for."""
    deadline = time.monotonic() + PROBE_S
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | CLOSED, 0o644)
        with os.fdopen(descriptor, "rb+") as stream:
            _refuse_special(descriptor, path)
            while not (held := _lock(stream, fcntl.LOCK_EX)) and time.monotonic() < deadline:
                time.sleep(0.02)
            if held and not _is_at(path, descriptor):
                continue  # its last owner removed it: nobody else would see this lock
            yield held
            return


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether a path still names an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file. A shared lock asks for it, because NFS refuses an exclusive one on a
    file that is open for reading."""
    try:
        descriptor = os.open(path, os.O_RDONLY | CLOSED)
    except FileNotFoundError:
        return False
    with os.fdopen(descriptor, "rb") as stream:
        return not _lock(stream, fcntl.LOCK_SH)


def _lock(stream: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(stream, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def refuse_special(root: Path) -> None:
    """Raise OSError when anything below `root` is a link, a device, a pipe or a socket, or when there is too much."""
    left, count = [root], 0
    while left:
        place = left.pop()
        with suppress(FileNotFoundError), os.scandir(place) as entries:  # a running campaign renames
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False) and (entry.is_symlink() or os.path.lexists(entry.path)):
                    what = "a symbolic link" if entry.is_symlink() else "a device, a pipe or a socket"
                    raise OSError(errno.EINVAL, f"it is {what}", entry.path)
                if count > ENTRIES:
                    raise OSError(errno.EFBIG, f"it has more than {ENTRIES} files", str(root))


def flush_tree(directory: Path) -> None:
    """Flush all files below a directory to the disk, and the directories that name them."""
    found = [(Path(place), [Path(place, name) for name in names]) for place, _, names in os.walk(directory)]
    everything = [path for place, inside in found for path in (*inside, place)]
    with ThreadPoolExecutor(max_workers=FLUSHED_AT_ONCE) as pool:  # the disk writes what waits together at once
        list(pool.map(_flush, everything))


def flush_directory(directory: Path) -> None:
    """Flush what a directory names."""
    _flush(directory)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | CLOSED)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _parent(root: Path, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The open directory of a file below `root`, and the file's own name in it. `root` itself may be a link."""
    *above, last = PurePosixPath(name).parts
    if name.startswith("/") or ".." in (*above, last):
        raise OSError(errno.EINVAL, "it is outside of its directory", name)
    if make:
        root.mkdir(parents=True, exist_ok=True)
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in above:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=held)
                    os.fsync(held)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | CLOSED, dir_fd=held)
            os.close(held)
            held = below
        yield held, last
    finally:
        os.close(held)


@contextmanager
def _open(directory: int, name: str) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(name, os.O_RDONLY | CLOSED, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", name) from error
        raise
    with os.fdopen(descriptor, "rb") as stream:
        _refuse_special(descriptor, name)
        yield stream


def _refuse_special(descriptor: int, name: str | Path) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_dev in _kernel_devices():
        raise OSError(errno.EINVAL, "it is not a regular file", str(name))


@functools.cache
def _kernel_devices() -> frozenset[int]:
    return frozenset(Path(place).stat().st_dev for place in KERNEL if os.path.ismount(place))
