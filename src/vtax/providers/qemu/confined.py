"""Start a program with its files open, as a user who could open none of them.

    python confined.py USER PID HOW:NUMBER:PATH... -- PROGRAM WORDS...

USER is a number, with the number of a group behind a colon where the program needs one; "-" stays who it is. PID is the
file for the process's number. Each PATH is open as descriptor NUMBER in PROGRAM, which is the same process. HOW:

    read, write   an existing file
    log           a new file, to be written
    share         a file that is opened again by /proc/self/fd/NUMBER: a copy in memory where not everybody may read it
    listen        a new Unix socket, for its owner alone
    connect       a Unix socket that listens

It imports nothing of vtax: starting it is part of every cell.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys

TYPE_CHECKING = False  # typing's, whose import takes longer than all that is done here
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEEP = "-"  # no other user
UNUSED = 100  # descriptors from here on are in the way of none that is asked for
EVERYBODY = 0o004
BACKLOG = 8
NEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def share(path: str) -> int:
    """A descriptor that any user may open again for reading. Raises OSError."""
    found = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if os.fstat(found).st_mode & EVERYBODY:
        return found
    copy = os.memfd_create("copy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    while os.sendfile(copy, found, None, 2**30):
        pass
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    os.close(found)
    return copy


def listen(path: str) -> int:
    """A socket that only its owner reaches. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as listener:
        mask = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(mask)
        listener.listen(BACKLOG)
        return listener.detach()


def connect(path: str) -> int:
    """A connection. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        return connection.detach()


HOW: dict[str, Callable[[str], int]] = {
    "read": lambda path: os.open(path, os.O_RDONLY | os.O_CLOEXEC),
    "write": lambda path: os.open(path, os.O_RDWR | os.O_CLOEXEC),
    "log": lambda path: os.open(path, NEW | os.O_TRUNC, 0o600),
    "share": share,
    "listen": listen,
    "connect": connect,
}


def open_all(words: Sequence[str]) -> None:
    """Open files as the descriptors that are asked for; programs that are started have them too. Raises OSError."""
    opened: dict[int, int] = {}
    for word in words:
        how, number, path = word.split(":", 2)
        descriptor = HOW[how](path)
        opened[int(number)] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, UNUSED)
        os.close(descriptor)
    for wanted, descriptor in opened.items():
        os.dup2(descriptor, wanted)


def find(program: str) -> str:
    """The file of a program. Raises FileNotFoundError."""
    for place in os.get_exec_path():
        path = os.path.join(place, program)  # noqa: PTH118 (pathlib is slow to import)
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(program)


def become(user: str) -> None:
    """Be another user for good, with no group but the one that is named. Raises OSError."""
    if user == KEEP:
        return
    number, _, group = user.partition(":")
    identity = int(number)
    os.setgroups([int(group)] if group else [])
    os.setresgid(identity, identity, identity)
    os.setresuid(identity, identity, identity)


def main(user: str, pid: str, *words: str) -> None:
    """Open the files, become the user, become the program."""
    end = words.index("--")
    note = os.open(pid, NEW | os.O_TRUNC, 0o644)
    os.write(note, b"%d\n" % os.getpid())
    os.close(note)
    open_all(words[:end])
    program = find(words[end + 1])
    become(user)  # from here on not even Python's own modules can be read
    os.execv(program, words[end + 1 :])


if __name__ == "__main__":
    main(*sys.argv[1:])
