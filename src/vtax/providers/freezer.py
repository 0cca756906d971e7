"""The kernel's freezer of control groups: all processes of a group stop where they are, or continue, in milliseconds.

Version 1 has a tree of its own for it, version 2 a file in every group. A frozen process of version 1 does not even
end when it is killed, so whoever removes a group thaws it first.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import PauseError

ROOT = Path("/sys/fs/cgroup")
PROC = Path("/proc")
LIMIT_S = 10.0  # a process that waits for a disk stops when it has its answer
POLL_S = 0.0005
FREEZER = "freezer"


@dataclass(frozen=True)
class Freezer:
    """One group, with all groups below it. `version` is that of its hierarchy."""

    group: Path
    version: int

    def freeze(self) -> None:
        """Return when all processes have stopped. Raises PauseError, after which none is stopped."""
        try:
            self._set("FROZEN" if self.version == 1 else "1")
            deadline = time.monotonic() + LIMIT_S
            while not self.frozen():
                if time.monotonic() > deadline:
                    self.thaw()
                    raise PauseError(f"some processes in {self.group} did not stop within {LIMIT_S:g} s")
                time.sleep(POLL_S)
        except OSError as error:
            raise PauseError(f"the control group {self.group} cannot be frozen: {error.strerror}") from error

    def thaw(self) -> None:
        """Let all processes continue; fine when the group is gone. Raises PauseError."""
        try:
            self._set("THAWED" if self.version == 1 else "0")
        except FileNotFoundError:
            return
        except OSError as error:
            raise PauseError(f"the control group {self.group} cannot be thawed: {error.strerror}") from error

    def frozen(self) -> bool:
        """Whether all processes have stopped. Raises OSError."""
        if self.version == 1:
            return (self.group / "freezer.state").read_text().strip() == "FROZEN"
        return "frozen 1" in (self.group / "cgroup.events").read_text().splitlines()

    def _set(self, state: str) -> None:
        path = self.group / ("freezer.state" if self.version == 1 else "cgroup.freeze")
        with path.open("r+") as stream:  # not "w": a file of a group that is gone must not be created
            stream.write(state)


def of_process(pid: int, root: Path = ROOT, proc: Path = PROC) -> Freezer | None:
    """The freezer of the group of a process; None where this process may not use it, or is in that group itself."""
    found = _group(proc / str(pid) / "cgroup", root)
    own = _group(proc / "self" / "cgroup", root)
    if found is None or (own is not None and own.group.is_relative_to(found.group)):
        return None
    try:
        there = str(pid) in (found.group / "cgroup.procs").read_text().split()
    except OSError:
        return None  # the path is that of another namespace
    state = found.group / ("freezer.state" if found.version == 1 else "cgroup.freeze")
    return found if there and os.access(state, os.W_OK) else None


def _group(path: Path, root: Path) -> Freezer | None:
    """The group that a file /proc/PID/cgroup names: version 1's where the freezer is there, else version 2's."""
    try:
        lines = [line.split(":", 2) for line in path.read_text().splitlines()]
    except OSError:
        return None
    for _, controllers, group in (line for line in lines if len(line) == 3):
        if FREEZER in controllers.split(","):
            return Freezer(root / FREEZER / group.lstrip("/"), 1)
    unified = next((line[2] for line in lines if len(line) == 3 and not line[1]), None)
    if unified is None or not (root / "cgroup.controllers").exists():
        return None
    return Freezer(root / unified.lstrip("/"), 2)
