"""The command line that runs a command in the root file system on this machine, and the program behind it.

`vtax-enter` starts with all rights of this user and gives up what the command must not have. So it is not run from the
tree that benchmarks see, but from a copy next to it, which is checked before each cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from vtax.errors import ImageError
from vtax.model.cluster import Image
from vtax.providers.base import LABEL
from vtax.transport import process
from vtax.transport.entrance import Entrance

PROGRAM = "/vtax-enter"  # how its path ends; see its source for what it does


def verify(image: Image) -> None:
    """Check that the program is the one that was built with the root file system. Raises ImageError."""
    program = Path(image.enter)
    found = hashlib.sha256(program.read_bytes()).hexdigest() if program.is_file() else "missing"
    if found != image.enter_digest:
        raise ImageError(
            f"{program} is not the program that was built with the root file system",
            detail=f"sha256: {found}; expected: {image.enter_digest or 'none, the image is of an earlier version'}",
            remedy=f"`vtax image remove {image.recipe}`, then `vtax image build`",
        )


def wrapper(
    campaign: str,
    image: Image,
    site: Path,
    shared: Path,
    mountpoint: str,
    cpus: Sequence[int],
    groups: Sequence[Path],
    *,
    network: str,
    node: str,
    keep: Sequence[str] = (),
    namespaces: Sequence[str] = (),
) -> Entrance:
    """What runs a command in the root file system on a node's CPUs: by control groups, or else by `taskset`.

    `network` is the file of a network namespace, "" makes one with loopback alone for each command; `node` is the host
    name, "" leaves that of the machine; `keep` are the capabilities that the command has, although it is root; one
    that enters an image or becomes another user is lent what it needs for that. `namespaces` enters those that hold
    mounts of an ordinary user; without it, each command gets its own.
    """
    pinned = () if groups else ("taskset", "-c", ",".join(map(str, cpus)))
    enter = (image.enter, f"{LABEL}={campaign}", image.directory, str(site), str(shared), mountpoint)
    return Entrance(
        before=(*pinned, *(namespaces or process.as_root_here()), *enter),
        after=(" ".join(map(str, groups)), network, node),
        keep=tuple(keep),
    )
