"""Compute, memory, storage, network, servers, start-up: what a metric is about, by its benchmark.

A benchmark has `group`, or `group_of(metric, labels)` where its metrics are about several parts; a plug-in without
either is other work.
"""

from __future__ import annotations

from enum import StrEnum

from vtax.analysis.records import Comparison, Level
from vtax.tools import benchmarks


class Group(StrEnum):
    COMPUTE = "Compute"
    MEMORY = "Memory"
    STORAGE = "Storage"
    NETWORK = "Network"
    SERVERS = "Servers"
    START_UP = "Start-up"
    OTHER = "Other work"

    @property
    def anchor(self) -> str:
        """The place of its section in the page."""
        return self.name.lower().replace("_", "-")

    @property
    def shown(self) -> str:
        """What a reader calls it, at the beginning of a line."""
        return "CPU" if self is Group.COMPUTE else str(self)

    @property
    def inside(self) -> str:
        """The same inside a sentence."""
        return self.shown if self is Group.COMPUTE else self.shown.lower()


def group_of(item: Level | Comparison) -> Group:
    """The part of the machine that a result is about."""
    benchmark = benchmarks().get(item.benchmark)
    by_metric = getattr(benchmark, "group_of", None)
    name = by_metric(item.metric, item.labels) if by_metric else getattr(benchmark, "group", "")
    return next((group for group in Group if group == name), Group.OTHER)
