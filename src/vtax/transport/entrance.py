"""The way into a node that is a set of namespaces and control groups of a machine: what is put before a command.

It is data, so that a machine can tell another one how commands enter its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from vtax.model.record import Record

SHELL = ("sh", "-c")  # begins what runs a command by a script: sh -c SCRIPT NAME COMMAND
RUN = "vtax-run"  # becomes another user or enters an image, then gives back what it was lent for that
SUPERVISE = ("vtax-supervise", "--control")  # before it, the latter where it obeys: ends what other users started
LENT = {"--user": ("setgid", "setuid"), "--image": ("setgid", "setuid", "sys_chroot")}
LIMIT = ("timeout", "-k")  # begins a command with a time limit: timeout -k SECONDS SECONDS COMMAND; as SHELL, 4 words


class Entrance(Record):
    """`before` and `after` are what is said before and after the directory of a command, `keep` the capabilities that
    every command has, although it is root."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    keep: tuple[str, ...] = ()

    def __call__(self, directory: str, argv: Sequence[str]) -> tuple[str, ...]:
        return (*self.before, directory, *self.after, ",".join((*self.keep, *lent(argv))), *argv)


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
