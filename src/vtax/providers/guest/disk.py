"""The disks that all virtual machines start from: file systems in plain files, made without root, loop or mount."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape
from vtax.paths import abandoned, replacing
from vtax.transport import process

MAKE_S = 900.0
MIB = 2**20
SMALLEST = 2 * 2**30
# Tables and journal are written now, because a guest would do it later, while something is measured.
EXTENDED = "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
FORMAT = ("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0")


def system(image: Image, size_bytes: int) -> Path:
    """The root file system as a disk of this size, next to the cached image; made when it is not there."""
    words = ("-E", EXTENDED, "-L", "vtax-system", "-d", image.directory)
    return _formatted(image, f"system-{size_bytes // MIB}.raw", words, size_bytes)


def data(image: Image, size_bytes: int) -> Path:
    """An empty disk of this size, next to the cached image."""
    return _formatted(image, f"data-{size_bytes // MIB}.raw", ("-E", EXTENDED, "-L", "vtax-data"), size_bytes)


def too_small(shape: ClusterShape) -> Iterator[Problem]:
    """Nodes whose disks are too small for the root file system."""
    for node in shape.nodes:
        if node.disk_bytes < SMALLEST:
            yield Problem.blocker(
                f"{node.name} has a disk of {node.disk_bytes / 2**30:.1f} GiB; the system alone takes 1 GiB",
                "give it at least 2 GiB",
            )


def remove(image: Image) -> None:
    """Remove the disks of an image, and its initial RAM disk."""
    for pattern in ("*.raw*", "*.cpio*", ".*.tmp"):
        for path in cache_of(image).glob(pattern):
            path.unlink(missing_ok=True)


def cache_of(image: Image) -> Path:
    """Where the cache keeps what is made of an image."""
    return Path(image.directory).parent


def ensure(image: Image, name: str, make: Callable[[Path], None]) -> Path:
    """The file of this name next to the cached image; when it is not there, what `make` writes to the path given."""
    disk = cache_of(image) / name
    if disk.exists():
        return disk
    with (cache_of(image) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if disk.exists():
            return disk
        for stale, _ in abandoned(disk.parent, name):
            stale.unlink()
        with replacing(disk) as fresh:
            make(fresh)
    return disk


def tool(*command: str, stdin: str = "") -> None:
    """Run a program that works on file systems in files, which an ordinary user's PATH may not have. Raises
    CommandError."""
    process.run(command, timeout_s=MAKE_S, env=process.system_environment(), stdin=stdin, check=True)


def format_ext4(words: tuple[str, ...], path: Path, size_bytes: int) -> None:
    """An ext4 file system in a file, with the owners that root sees in the root file system's tree."""
    tool(*process.as_root_here(), *FORMAT, *words, str(path), f"{size_bytes // MIB}M")


def _formatted(image: Image, name: str, words: tuple[str, ...], size_bytes: int) -> Path:
    return ensure(image, name, lambda fresh: format_ext4(words, fresh, size_bytes))
