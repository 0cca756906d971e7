"""The command line that runs a command in the root file system on this machine, and the program behind it.

`vtax-enter` starts with all rights of this user and gives up what the command must not have. So it is not run from the
tree that benchmarks see, but from a copy next to it, which is checked before each cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import dropwhile
from pathlib import Path

from vtax.errors import ImageError
from vtax.model.cluster import Image
from vtax.providers.base import LABEL
from vtax.transport import process
from vtax.transport.visit import SHELL

PROGRAM = "/vtax-enter"  # how its path ends; see its source for what it does
RUN = "vtax-run"  # becomes another user or enters an image, then gives back what it was lent for that
SUPERVISE = ("vtax-supervise", "--control")  # before it, the latter where it obeys: ends what other users started
LENT = {"--user": ("setgid", "setuid"), "--image": ("setgid", "setuid", "sys_chroot")}
LIMIT = ("timeout", "-k")  # begins a command with a time limit: timeout -k SECONDS SECONDS COMMAND; as SHELL, 4 words


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
) -> Callable[[str, Sequence[str]], tuple[str, ...]]:
    """What runs a command in the root file system on a node's CPUs: by control groups, or else by `taskset`.

    `network` is the file of a network namespace, "" makes one with loopback alone for each command; `node` is the host
    name, "" leaves that of the machine; `keep` are the capabilities that the command has, although it is root; one
    that enters an image or becomes another user is lent what it needs for that. `namespaces` enters those that hold
    mounts of an ordinary user; without it, each command gets its own.
    """
    pinned = () if groups else ("taskset", "-c", ",".join(map(str, cpus)))
    enter = (image.enter, f"{LABEL}={campaign}", image.directory, str(site), str(shared), mountpoint)

    def wrap(directory: str, argv: Sequence[str]) -> tuple[str, ...]:
        where = (directory, " ".join(map(str, groups)), network, node, ",".join((*keep, *lent(argv))))
        return (*pinned, *(namespaces or process.as_root_here()), *enter, *where, *argv)

    return wrap


def lent(argv: Sequence[str]) -> tuple[str, ...]:
    """The capabilities that a command by `vtax-run` needs for its options, marked as those that it must give back."""
    words = tuple(argv[4:] if tuple(argv[:2]) in (LIMIT, SHELL) else argv)
    supervised = words[:1] == SUPERVISE[:1]
    words = tuple(dropwhile(lambda word: word in SUPERVISE, words)) if supervised else words
    if words[:1] != (RUN,):
        return ()
    options = words[1 : words.index("--")] if "--" in words else words[1:]
    names = {name for option in options[::2] for name in LENT.get(option, ())}
    return tuple(sorted(f"+{name}" for name in (names | {"kill"} if names and supervised else names)))
