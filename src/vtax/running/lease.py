"""One campaign at a time on a machine, whoever's it is: a lock that its owner's process holds, and that ends with it.

Campaigns that are started on the machine itself share the lock: they keep others out, not each other. The kernel
releases the lock of a process that is gone, however it ended. An agent that is cut off ends within its lease, so a dead
owner loses the machine.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from vtax.errors import EnvironmentMissing

PLACES = (Path("/run/lock"), Path("/tmp"))  # that every user may write to
NAME = "vtax-machine.lock"
POLL_S = 0.5
GLANCE_S = 2.0  # longer than `owner` holds it
HERE = "one that was started on the machine itself"
OWNER_BYTES = 400


def hold(stack: ExitStack, owner: str, wait_s: float, places: tuple[Path, ...] = PLACES) -> None:
    """Hold the machine for `owner` until `stack` ends. Raises EnvironmentMissing, with the present owner."""
    descriptor = _locked(stack, fcntl.LOCK_EX, wait_s, "it is being used by another campaign", places)
    _name(descriptor, owner)


def share(stack: ExitStack, places: tuple[Path, ...] = PLACES) -> None:
    """Hold the machine for a campaign that is started on it, until `stack` ends. Raises EnvironmentMissing, with the
    owner of one that was started on another machine."""
    descriptor = _locked(stack, fcntl.LOCK_SH, GLANCE_S, "this machine is being used by another campaign", places)
    _name(descriptor, HERE)  # of several, all write the same


def _locked(stack: ExitStack, how: int, wait_s: float, used: str, places: tuple[Path, ...]) -> int:
    descriptor = _opened(places)
    stack.callback(os.close, descriptor)
    deadline = time.monotonic() + wait_s
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return descriptor
        if time.monotonic() > deadline:
            raise EnvironmentMissing(
                f"{used}: {_said(descriptor)}",
                remedy="wait until that ends, or stop it; two campaigns on one machine would disturb each other",
            )
        time.sleep(POLL_S)


def _name(descriptor: int, owner: str) -> None:
    with suppress(OSError):  # another user made the file: the lock holds, the owner stays unnamed
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode()[:OWNER_BYTES], 0)


def owner(places: tuple[Path, ...] = PLACES) -> str:
    """Who holds the machine now; "" when nobody does. It is locked for a moment, to see that."""
    descriptor = _opened(places)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _said(descriptor)
    finally:
        os.close(descriptor)
    return ""


def _said(descriptor: int) -> str:
    return os.pread(descriptor, OWNER_BYTES, 0).decode(errors="replace").strip() or "its owner is not known"


def _opened(places: tuple[Path, ...]) -> int:
    """The file of the lock. Another user's can only be read, which is enough to lock it."""
    path = next((place for place in places if place.is_dir()), places[-1]) / NAME
    try:
        return _regular(path)
    except OSError as error:
        raise EnvironmentMissing(
            f"{path} cannot be locked: {error.strerror}",
            remedy="by it, campaigns of all users see each other; ask its owner to remove what is there",
        ) from error


def _regular(path: Path) -> int:
    """Any user could have put a link or a pipe there."""
    how = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        found = os.open(path, os.O_RDWR | how | (0 if path.exists() else os.O_CREAT), 0o644)
    except PermissionError:
        found = os.open(path, os.O_RDONLY | how)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is not a regular file")
    with suppress(PermissionError):  # its owner did that
        os.fchmod(found, 0o644)  # whatever the umask is: others have to see who holds it
    return found
