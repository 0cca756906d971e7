"""What is open when QEMU starts, so that QEMU itself need open nothing of this user's. Pure.

Numbers are fixed, so that a command line says what they are; 3 is a node's tap.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

from vtax.providers.qemu import confined

SCRIPT = Path(confined.__file__)
LOG = "console.log"
VHOST = Path("/dev/vhost-net")


class Number(IntEnum):
    """The descriptors; a disk has three in a row: for writing, for reading, and of the disk below its layer."""

    TAP = 3
    VHOST = 4
    CONSOLE = 5
    MONITOR = 6
    ORDERS = 7
    SWITCH = 8
    SEED = 9
    KERNEL = 10
    INITRD = 11
    SYSTEM = 12
    DATA = 15
    WORKLOAD = 18


@dataclass(frozen=True)
class Open:
    """A file that is open; `how` is a word of `confined`. QEMU finds it in the set `of`, its own if that is 0."""

    how: str
    number: int
    path: Path
    of: int = 0

    @property
    def word(self) -> str:
        return f"{self.how}:{int(self.number)}:{self.path}"

    @property
    def given(self) -> tuple[str, ...]:
        """The words that give it to QEMU under a name. What is opaque to QEMU tells vtax which file it is."""
        return ("-add-fd", f"fd={int(self.number)},set={int(self.of or self.number)},opaque={quoted(self.path)}")


@dataclass(frozen=True)
class Disk:
    """A node's own disk; `base` is the disk below its layer, None where it is a copy."""

    name: str
    number: Number
    path: Path
    base: Path | None

    @property
    def files(self) -> tuple[Open, ...]:
        """QEMU opens a disk for reading first, to examine it, whatever it will do with it."""
        below = (Open("read", self.number + 2, self.base),) if self.base else ()
        return (
            Open("write", self.number, self.path),
            Open("read", self.number + 1, self.path, of=self.number),
            *below,
        )

    @property
    def drive(self) -> str:
        """How `-drive` finds it."""
        below = ""
        if self.base:
            below = f",backing.driver=raw,backing.file.driver=file,backing.file.filename={place(self.number + 2)}"
        return f"id={self.name},file={place(self.number)}{below}"


def place(number: int) -> str:
    """Where QEMU finds a set of descriptors."""
    return f"/dev/fdset/{int(number)}"


def again(number: int) -> str:
    """Where QEMU finds a descriptor that it must open by a path."""
    return f"/proc/self/fd/{int(number)}"


def quoted(path: Path) -> str:
    """In QEMU's options a comma is written twice."""
    return str(path).replace(",", ",,")


def home(words: Sequence[str]) -> Path | None:
    """The directory of the console in a command line of QEMU; None when there is none."""
    for before, word in pairwise(words):
        path = word.partition("opaque=")[2].replace(",,", ",")
        if before == "-add-fd" and Path(path).name == LOG:
            return Path(path).parent
    return None


def started(user: str, directory: Path, files: Sequence[Open], command: Sequence[str]) -> tuple[str, ...]:
    """`command` with these files open, as this user."""
    words = (user or confined.KEEP, str(directory / "pid"), *(file.word for file in files))
    return (sys.executable, "-I", "-S", str(SCRIPT), *words, "--", *command)
