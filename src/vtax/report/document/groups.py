"""Compute, memory, storage, network: which part of a machine a metric is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from vtax.analysis.records import Comparison, Level


class Group(StrEnum):
    COMPUTE = "Compute"
    MEMORY = "Memory"
    STORAGE = "Storage"
    NETWORK = "Network"
    OTHER = "Other work"


OF_BENCHMARK = {
    "hpl": Group.COMPUTE,
    "sysbench-cpu": Group.COMPUTE,
    "sysbench-memory": Group.MEMORY,
    "sysbench-fileio": Group.STORAGE,
    "iozone": Group.STORAGE,
    "iperf3": Group.NETWORK,
    "ping": Group.NETWORK,
}
HPCC_NETWORK = re.compile(r"PingPong|Ring|Latency|Bandwidth")
HPCC_MEMORY = re.compile(r"STREAM|RandomAccess|PTRANS")
OF_STRESSOR: Mapping[str, Group] = {
    "cpu": Group.COMPUTE,
    "matrix": Group.COMPUTE,
    "vm": Group.MEMORY,
    "memcpy": Group.MEMORY,
    "stream": Group.MEMORY,
    "io": Group.STORAGE,
    "iomix": Group.STORAGE,
    "hdd": Group.STORAGE,
    "sock": Group.NETWORK,
}


def group_of(item: Level | Comparison) -> Group:
    """By benchmark; HPCC measures three parts and stress-ng one for each stressor, so those by metric or label."""
    if item.benchmark == "hpcc":
        if HPCC_NETWORK.search(item.metric):
            return Group.NETWORK
        return Group.MEMORY if HPCC_MEMORY.search(item.metric) else Group.COMPUTE
    if item.benchmark == "stress-ng":
        words = (item.labels.get("stressor", ""), *item.metric.split("_"))
        return next((OF_STRESSOR[word] for word in words if word in OF_STRESSOR), Group.OTHER)
    return OF_BENCHMARK.get(item.benchmark, Group.OTHER)
