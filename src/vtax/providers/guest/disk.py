"""The disks that all virtual machines start from: file systems in plain files, made without root, loop or mount."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from vtax.model.cluster import Image
from vtax.model.finding import Problem, Severity
from vtax.model.nodes import ClusterShape
from vtax.transport import process

MAKE_S = 900.0
MIB = 2**20
SMALLEST = 2 * 2**30
# Tables and journal are written now, because a guest would do it later, while something is measured.
EXTENDED = "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
FORMAT = ("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0")
AS_ROOT_HERE = ("unshare", "--user", "--map-root-user", "--map-auto")
SEARCH = ":/usr/local/sbin:/usr/sbin:/sbin"


def system(image: Image, size_bytes: int) -> Path:
    """The root file system as a disk of this size, beside the cached image; made when it is not there."""
    words = ("-E", EXTENDED, "-L", "vtax-system", "-d", image.directory)
    return _formatted(image, f"system-{size_bytes // MIB}.raw", words, size_bytes)


def data(image: Image, size_bytes: int) -> Path:
    """An empty disk of this size, beside the cached image."""
    return _formatted(image, f"data-{size_bytes // MIB}.raw", ("-E", EXTENDED, "-L", "vtax-data"), size_bytes)


def too_small(shape: ClusterShape) -> Iterator[Problem]:
    """What is wrong with the disks that a study asks for."""
    for node in shape.nodes:
        if node.disk_bytes < SMALLEST:
            yield Problem(
                severity=Severity.BLOCKER,
                message=f"{node.name} has a disk of {node.disk_bytes / 2**30:.1f} GiB, its system alone takes one",
                remedy="at least 2 GiB",
            )


def remove(image: Image) -> None:
    """Forget the disks of an image, and its initial RAM disk."""
    for pattern in ("*.raw*", "*.cpio*"):
        for path in beside(image).glob(pattern):
            path.unlink(missing_ok=True)


def beside(image: Image) -> Path:
    """Where the cache keeps what is made of an image."""
    return Path(image.directory).parent


def made(image: Image, name: str, make: Callable[[Path], None]) -> Path:
    """The file of this name beside the cached image; when it is not there, what `make` writes to the path given."""
    disk = beside(image) / name
    if disk.exists():
        return disk
    with (beside(image) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if disk.exists():
            return disk
        fresh = disk.with_name(f"{name}.new")
        fresh.unlink(missing_ok=True)
        try:
            make(fresh)
            fresh.rename(disk)
        finally:
            fresh.unlink(missing_ok=True)
    return disk


def tool(*command: str, stdin: str = "") -> None:
    """Run a program that works on file systems in files, which an ordinary user's PATH may not have. Raises
    CommandError."""
    env = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + SEARCH}
    process.run(command, timeout_s=MAKE_S, env=env, stdin=stdin, check=True)


def format_ext4(words: tuple[str, ...], path: Path, size_bytes: int) -> None:
    """As root here, whose view of the root file system's tree is the right one."""
    wrap = () if os.geteuid() == 0 else AS_ROOT_HERE
    tool(*wrap, *FORMAT, *words, str(path), f"{size_bytes // MIB}M")


def _formatted(image: Image, name: str, words: tuple[str, ...], size_bytes: int) -> Path:
    return made(image, name, lambda fresh: format_ext4(words, fresh, size_bytes))
