"""Control groups for the host environment: the same CPUs and memory limit that a container gets.

Version 1 has a tree for each controller, version 2 one for all. Only root can make groups at the top; without them the
host environment pins CPUs, and reports that its memory is not limited.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import PauseError, ProvisionError
from vtax.providers.freezer import FREEZER, PROC, ROOT, Freezer

PREFIX = "vtax-"


@dataclass(frozen=True)
class Hierarchy:
    """Where groups are made: one directory for version 2, one per controller for version 1. There the freezer may be
    missing; version 2 always has it.

    `cpu` has no limit for a node, but makes its processes one party for the scheduler, as those of a container are.
    Outside such groups every session of a terminal or a login is a party (sched_autogroup), so on a busy machine a
    program over several logins would get more time than the same program in containers. `account`, where it is a tree
    of its own, counts their CPU time. In `events` what the kernel and the processors do for a group is counted: a tree
    of its own, or that of version 2 where both versions are mounted.
    """

    version: int
    cpuset: Path
    memory: Path
    freezer: Path | None = None
    cpu: Path | None = None
    account: Path | None = None
    events: Path | None = None

    @property
    def trees(self) -> tuple[Path, ...]:
        others = (tree for tree in (self.freezer, self.cpu, self.account, self.events) if tree)
        return tuple(dict.fromkeys((self.cpuset, self.memory, *others)))

    def freezer_of(self, campaign: str) -> Freezer | None:
        """What freezes all groups of a cluster at once."""
        tree = self.cpuset if self.version == 2 else self.freezer
        return Freezer(tree / f"{PREFIX}{campaign}", self.version) if tree else None


def find(root: Path = ROOT) -> Hierarchy | None:
    """The hierarchy in which this process may make groups with CPU and memory limits, None when there is none."""
    if (root / "cgroup.controllers").exists():
        controllers = (root / "cgroup.controllers").read_text().split()
        usable = {"cpuset", "memory"} <= set(controllers) and os.access(root / "cgroup.subtree_control", os.W_OK)
        return Hierarchy(2, root, root, events=root) if usable and os.access(root, os.W_OK) else None
    cpuset, memory = root / "cpuset", root / "memory"
    if _usable(cpuset) and _usable(memory):
        apart = (root / "cpuacct").resolve() != (root / "cpu").resolve()
        freezer, cpu, account = (
            tree if _usable(tree) else None for tree in (root / FREEZER, root / "cpu", root / "cpuacct")
        )
        return Hierarchy(1, cpuset, memory, freezer, cpu, account if apart else None, events(root))
    return None


def events(root: Path = ROOT) -> Path | None:
    """The tree by whose groups events are counted; None where this process may not make any."""
    top = root if (root / "cgroup.controllers").exists() else root / "unified"
    return next((tree for tree in (root / "perf_event", top) if _usable(tree)), None)


def of_process(pid: int, controller: str, root: Path = ROOT, proc: Path = PROC) -> Path | None:
    """The group of a process in the tree of a controller, or in that of version 2 where the controller has none; None
    where that cannot be seen."""
    lines = [line.split(":", 2) for line in _read(proc / str(pid) / "cgroup").splitlines()]
    named = [path for _, names, path in lines if controller in names.split(",")]
    unified = [path for _, names, path in lines if not names]
    top = root if (root / "cgroup.controllers").exists() else root / "unified"
    found = root / controller / named[0].lstrip("/") if named else top / unified[0].lstrip("/") if unified else None
    return found if found is not None and str(pid) in _read(found / "cgroup.procs").split() else None


def gather(tree: Path, campaign: str, group: str, members: Path) -> Path:
    """A group in the tree of events with all processes of another group, whose children will be in it too."""
    place = tree / f"{PREFIX}{campaign}" / group
    place.mkdir(parents=True, exist_ok=True)
    while missing := _pids(members) - _pids(place):  # what they start meanwhile is found the next time
        for pid in missing:
            with contextlib.suppress(ProcessLookupError):
                (place / "cgroup.procs").write_text(pid)
    return place


def _pids(group: Path) -> set[str]:
    """The processes of a group; "0" is one that cannot be seen from here."""
    return set(_read(group / "cgroup.procs").split()) - {"0"}


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _usable(tree: Path) -> bool:
    """Whether this process may make groups in a tree of version 1."""
    return (tree / "cgroup.procs").exists() and os.access(tree, os.W_OK)


def make(where: Hierarchy, campaign: str, group: str, cpus: Sequence[int], memory_bytes: int) -> tuple[Path, ...]:
    """A group with these limits. Returns the directories whose `cgroup.procs` a process must enter."""
    text = ",".join(map(str, cpus))
    if where.version == 2:
        _enable(where.cpuset)
        parent = where.cpuset / f"{PREFIX}{campaign}"
        parent.mkdir(exist_ok=True)
        _enable(parent)
        place = parent / group
        place.mkdir(exist_ok=True)
        (place / "cpuset.cpus").write_text(text)
        (place / "memory.max").write_text(str(memory_bytes))
        with contextlib.suppress(OSError):  # the kernel may lack swap accounting
            (place / "memory.swap.max").write_text("0")
        return (place,)
    places = []
    for tree in where.trees:
        parent = tree / f"{PREFIX}{campaign}"
        parent.mkdir(exist_ok=True)
        place = parent / group
        place.mkdir(exist_ok=True)
        places.append(place)
    for place in (places[0].parent, places[0]):
        (place / "cpuset.mems").write_text((where.cpuset / "cpuset.mems").read_text())
        everything = (where.cpuset / "cpuset.cpus").read_text()
        (place / "cpuset.cpus").write_text(text if place == places[0] else everything)
    (places[1] / "memory.limit_in_bytes").write_text(str(memory_bytes))
    with contextlib.suppress(OSError):
        (places[1] / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))
    return tuple(places)


def busy(where: Hierarchy, campaign: str) -> bool:
    """Whether any process is in the campaign's groups."""
    for group in (where.cpuset / f"{PREFIX}{campaign}").glob("*/cgroup.procs"):
        with contextlib.suppress(OSError):
            if group.read_text().strip():
                return True
    return False


class GroupPausing:
    """What pauses the nodes of this machine: the control groups in which all their processes are. Between trials there
    may be none; without a freezer, or without groups, there has to be none."""

    reason = ""

    def __init__(self, where: Hierarchy | None, campaign: str) -> None:
        self.where, self.campaign = where, campaign
        self.freezer = where.freezer_of(campaign) if where else None

    def pause(self) -> str:
        if self.freezer:
            self.freezer.freeze()
            return f"the freezer of control groups, version {self.freezer.version}"
        if self.where and busy(self.where, self.campaign):
            raise PauseError(
                "processes of the nodes cannot be paused: this machine has no freezer of control groups",
                remedy="mount it: mount -t cgroup -o freezer none /sys/fs/cgroup/freezer",
            )
        return "nothing, since no process runs between trials"

    def resume(self) -> None:
        if self.freezer:
            self.freezer.thaw()


def _enable(place: Path) -> None:
    (place / "cgroup.subtree_control").write_text("+cpuset +memory")


def campaigns(where: Hierarchy) -> tuple[str, ...]:
    """The campaigns that have groups now."""
    found = {place.name.removeprefix(PREFIX) for tree in where.trees for place in tree.glob(f"{PREFIX}*")}
    return tuple(sorted(found))


def remove(where: Hierarchy, campaign: str) -> None:
    """End whatever runs in the campaign's groups, and remove them. May be called twice. Raises ProvisionError for a
    program that does not end."""
    if freezer := where.freezer_of(campaign):
        freezer.thaw()  # frozen processes would not end
    for tree in where.trees:
        remove_groups(tree, campaign)


def remove_groups(tree: Path, campaign: str) -> None:
    """The same in one tree."""
    top = tree / f"{PREFIX}{campaign}"
    if top.exists():
        for place in [*(place for place in top.iterdir() if place.is_dir()), top]:
            _remove(place)


def _remove(place: Path) -> None:
    """End what is in the group until it is empty: it can be removed a moment after its last process is gone."""
    deadline = time.monotonic() + 5
    while True:
        try:
            for line in (place / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(line), signal.SIGKILL)
            place.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ProvisionError(
                    f"the control group {place} cannot be removed: {error.strerror}",
                    detail="a program in it does not end: it waits for a disk or for a server",
                    remedy="`vtax clean` removes it when that answers",
                ) from error
            time.sleep(0.02)
