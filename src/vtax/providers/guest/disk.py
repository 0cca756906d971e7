"""The disks that all virtual machines start from: file systems in plain files, made without root, loop or mount."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

from vtax.model.cluster import Image, Workload
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape
from vtax.paths import abandoned, replacing
from vtax.transport import process

MAKE_S = 900.0
MIB = 2**20
SMALLEST = 2 * 2**30
BLOCK, INODE, SPARE = 4096, 256, 32 * 2**20
# Tables and journal are written now, because a guest would do it later, while something is measured.
EXTENDED = "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
FORMAT = ("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0")


def system(image: Image, size_bytes: int) -> Path:
    """The root file system as a disk of this size, next to the cached image; made when it is not there."""
    words = ("-E", EXTENDED, "-L", "vtax-system", "-d", image.directory)
    return _formatted(image, system_path(image, size_bytes).name, words, size_bytes)


def data(image: Image, size_bytes: int) -> Path:
    """An empty disk of this size, next to the cached image."""
    name = data_path(image, size_bytes).name
    return _formatted(image, name, ("-E", EXTENDED, "-L", "vtax-data"), size_bytes)


def system_path(image: Image, size_bytes: int) -> Path:
    """Where the disk with the root file system is, or will be."""
    return cache_of(image) / f"system-{size_bytes // MIB}.raw"


def data_path(image: Image, size_bytes: int) -> Path:
    """Where the empty disk is, or will be."""
    return cache_of(image) / f"data-{size_bytes // MIB}.raw"


def own_image_path(image: Workload) -> Path:
    """Where the disk of a study's own image is: next to the unpacked image, which it is a copy of."""
    return Path(f"{image.directory}.disk")


def own_image(image: Workload) -> Path:
    """A study's own image as a disk that is only read, with all that describes it; made when it is not there."""
    return _ensure(own_image_path(image), lambda fresh: _write_own_image(image, fresh))


def own_image_bytes(content_bytes: int, files: int) -> int:
    """The size of a file system that holds so much: a block more for each file, because its last one is not full, and a
    sixteenth for what finds the blocks. What is left over takes no space on this machine."""
    needed = content_bytes + content_bytes // 16 + files * (BLOCK + INODE) + SPARE
    return -(-needed // MIB) * MIB


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
    return _ensure(cache_of(image) / name, make)


def _ensure(disk: Path, make: Callable[[Path], None]) -> Path:
    if disk.exists():
        return disk
    with disk.with_name(f"{disk.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if disk.exists():
            return disk
        for stale, _ in abandoned(disk.parent, disk.name):
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


def _write_own_image(image: Workload, path: Path) -> None:
    counts = [_counted(image, "--apparent-size", "--block-size=1"), _counted(image, "--inodes")]
    inodes = ("-N", str(counts[1] + 64))
    words = ("-O", "^has_journal", "-b", str(BLOCK), *inodes, "-E", EXTENDED, "-L", "vtax-workload")
    format_ext4((*words, "-d", image.directory), path, own_image_bytes(*counts))


def _counted(image: Workload, *words: str) -> int:
    """What `du` counts in the unpacked image; an ordinary user may not see all of it otherwise."""
    command = (*process.as_root_here(), "du", "--summarize", *words, image.directory)
    return int(process.run(command, timeout_s=MAKE_S, check=True).stdout.split()[0])


def _formatted(image: Image, name: str, words: tuple[str, ...], size_bytes: int) -> Path:
    return ensure(image, name, lambda fresh: format_ext4(words, fresh, size_bytes))
