"""The control groups of containers, as this machine sees them: where their events are counted, and their memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from vtax.facts.perf import Subject
from vtax.providers import cgroup
from vtax.providers.base import Outside
from vtax.providers.container.engine import name_of


class Groups:
    """Those of the containers of one cluster; each is looked for once. `pids` finds the first process of each."""

    def __init__(self, pids: Callable[[Sequence[str]], Sequence[int]], campaign: str) -> None:
        self.pids, self.campaign = pids, campaign
        self.known: dict[str, Outside] = {}

    def of(self, nodes: Sequence[str]) -> tuple[Outside, ...]:
        """Only root may count what others do."""
        if os.geteuid() != 0:
            return ()
        unknown = [node for node in nodes if node not in self.known]
        pids = self.pids([name_of(self.campaign, node) for node in unknown]) if unknown else ()
        for node, pid in zip(unknown, pids, strict=False):
            self.known[node] = self._found(node, pid)
        return tuple(self.known[node] for node in nodes if node in self.known)

    def _found(self, node: str, pid: int) -> Outside:
        memory = cgroup.of_process(pid, "memory") if pid > 0 else None
        events = self._events(node, pid, memory) if memory is not None else None
        return Outside(None if events is None else Subject(events), memory)

    def _events(self, node: str, pid: int, members: Path) -> Path | None:
        """The container's own group in the tree of events. Where versions 1 and 2 are mounted, its engine may have made
        none there; then vtax does."""
        tree = cgroup.events()
        if tree is None:
            return None
        own = cgroup.of_process(pid, "perf_event")
        if own is not None and own != tree and own != cgroup.of_process(os.getpid(), "perf_event"):
            return own
        return cgroup.gather(tree, self.campaign, node, members)


def remove(campaign: str) -> None:
    """Remove the groups that were made for a cluster; fine when there are none."""
    if os.geteuid() == 0 and (tree := cgroup.events()) is not None:
        cgroup.remove_groups(tree, campaign)
