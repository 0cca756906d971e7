"""The disks that all virtual machines start from: file systems in plain files, made without root, loop or mount."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from vtax.model import Image
from vtax.transport import process

MAKE_S = 900.0
MIB = 2**20
# Tables and journal are written now, because a guest would do it later, while something is measured.
FORMAT = ("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0")
AS_ROOT_HERE = ("unshare", "--user", "--map-root-user", "--map-auto")
SEARCH = ":/usr/local/sbin:/usr/sbin:/sbin"


def system(image: Image, size_bytes: int) -> Path:
    """The root file system as a disk of this size, beside the cached image; made when it is not there."""
    return _made(image, f"system-{size_bytes // MIB}.raw", ("-L", "vtax-system", "-d", image.directory), size_bytes)


def data(image: Image, size_bytes: int) -> Path:
    """An empty disk of this size, beside the cached image."""
    return _made(image, f"data-{size_bytes // MIB}.raw", ("-L", "vtax-data"), size_bytes)


def remove(image: Image) -> None:
    """Forget the disks of an image, and its initial RAM disk."""
    for pattern in ("*.raw*", "*.cpio*"):
        for path in _place(image).glob(pattern):
            path.unlink(missing_ok=True)


def _place(image: Image) -> Path:
    return Path(image.directory).parent


def _made(image: Image, name: str, words: Sequence[str], size_bytes: int) -> Path:
    disk = _place(image) / name
    if disk.exists():
        return disk
    with (_place(image) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if disk.exists():
            return disk
        fresh = disk.with_suffix(".raw.new")
        fresh.unlink(missing_ok=True)
        wrap = () if os.geteuid() == 0 else AS_ROOT_HERE
        env = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + SEARCH}
        command = (*wrap, *FORMAT, *words, str(fresh), f"{size_bytes // MIB}M")
        try:
            process.run(command, timeout_s=MAKE_S, env=env, check=True)
            fresh.rename(disk)
        finally:
            fresh.unlink(missing_ok=True)
    return disk
