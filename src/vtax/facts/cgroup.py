"""Control groups, version 1, 2 and hybrid: the limits that apply to a process, and what they have cost it so far.

A limit of an outer group applies as well, so every visible level is read and the smallest limit counts. In version 1,
`memory.stat` also shows the limit of levels outside the container (`hierarchical_memory_limit`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vtax.facts.sections import whole

UNLIMITED_BYTES = 2**62  # version 1 writes "no limit" as the largest multiple of the page size
FILES = (
    "memory.limit_in_bytes memory.memsw.limit_in_bytes memory.failcnt memory.oom_control memory.stat"
    " memory.max memory.swap.max memory.events cpu.max cpu.cfs_quota_us cpu.cfs_period_us cpu.stat cpuacct.usage"
)

# The hierarchy is where every distribution mounts it. A container without a cgroup namespace sees its path from the
# host's root but only its own part mounted, so leading names are dropped until the directory exists.
SHELL = f"""\
levels() {{
  root=$1 below=$2
  case $below in / | *..*) below= ;; esac
  while [ -n "$below" ] && [ ! -d "$root$below" ]; do
    case $below in /*/*) below=/${{below#/*/}} ;; *) below= ;; esac
  done
  while :; do
    for file in {FILES}; do
      found="$found$root$below/$file
"
    done
    [ -n "$below" ] || break
    below=${{below%/*}}
  done
}}
cgroup_levels() {{
  found=
  while IFS=: read -r number controllers path; do
    case $number:,$controllers, in
      0:*) [ -f /sys/fs/cgroup/cgroup.controllers ] && levels /sys/fs/cgroup "$path" ;;
      *,memory,*) levels /sys/fs/cgroup/memory "$path" ;;
      *:,cpuacct,) levels /sys/fs/cgroup/cpuacct "$path" ;;
    esac
    case ,$controllers, in
      *,cpu,*) for mount in cpu cpu,cpuacct; do
        [ -d "/sys/fs/cgroup/$mount" ] && levels "/sys/fs/cgroup/$mount" "$path" && break
      done ;;
    esac
  done </proc/self/cgroup
  set -f
  IFS='
'
  set -- $found
  set +f
  unset IFS
  try grep -asHE '^(-?[0-9]|max|hierarchical_mem|nr_periods|nr_throttled|throttled_|usage_usec|oom_kill )' "$@"
}}
"""

COUNTERS = frozenset({"memory.stat", "memory.events", "memory.oom_control", "cpu.stat"})
LINE = re.compile(r"^(/.*)/([a-z_.]+):(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Level:
    """One directory of a hierarchy: its files' single lines, and `name number` pairs of the others."""

    path: str = ""
    lines: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)


def levels(text: str) -> tuple[Level, ...]:
    """The levels in what `cgroup_levels` printed, each hierarchy from the inside out."""
    lines: dict[str, dict[str, str]] = {}
    numbers: dict[str, dict[str, int]] = {}
    for directory, name, content in LINE.findall(text):
        if name not in COUNTERS:
            lines.setdefault(directory, {})[name] = content
            continue
        word, _, rest = content.partition(" ")
        if (count := whole(rest)) is not None:
            numbers.setdefault(directory, {})[word] = count
    return tuple(Level(path, lines.get(path, {}), numbers.get(path, {})) for path in dict.fromkeys((*lines, *numbers)))


def memory_limit_bytes(groups: tuple[Level, ...]) -> int | None:
    """The smallest memory limit that applies; None when there is none."""
    files = ("memory.limit_in_bytes", "memory.max")
    limits = [whole(group.lines.get(name)) for group in groups for name in files]
    limits += [group.numbers.get("hierarchical_memory_limit") for group in groups]
    return smallest(limits)


def swap_limit_bytes(groups: tuple[Level, ...]) -> int | None:
    """How much may be swapped out; version 1 limits memory and swap together, and the difference is what is left."""
    limits = [whole(group.lines.get("memory.swap.max")) for group in groups]
    for group in groups:
        both, memory = (group.numbers.get(f"hierarchical_{name}_limit") for name in ("memsw", "memory"))
        if both is not None and memory is not None and both < UNLIMITED_BYTES:
            limits.append(max(0, both - memory))
    return smallest(limits)


def smallest(limits: list[int | None]) -> int | None:
    """The smallest of the limits that limit anything."""
    return min((limit for limit in limits if limit is not None and 0 <= limit < UNLIMITED_BYTES), default=None)


def cpu_quota_cpus(groups: tuple[Level, ...]) -> float | None:
    """CPU time a second that the groups allow, in CPUs; None when there is no quota."""
    quotas = []
    for group in groups:
        quota, period = group.lines.get("cpu.cfs_quota_us"), group.lines.get("cpu.cfs_period_us")
        if "cpu.max" in group.lines:
            quota, _, period = group.lines["cpu.max"].partition(" ")
        quota_us, period_us = whole(quota), whole(period)
        if quota_us is not None and period_us is not None and quota_us > 0 and period_us > 0:
            quotas.append(quota_us / period_us)
    return min(quotas, default=None)


def throttling(groups: tuple[Level, ...]) -> dict[str, float]:
    """Periods, throttled periods and lost seconds of the level that was throttled most."""
    counted = [group.numbers for group in groups if {"nr_periods", "nr_throttled"} <= group.numbers.keys()]
    if not counted:
        return {}
    worst = max(counted, key=lambda numbers: numbers["nr_throttled"])
    values: dict[str, float] = {"cpu_periods": worst["nr_periods"], "cpu_throttled_periods": worst["nr_throttled"]}
    if "throttled_time" in worst:  # version 1, ns
        values["cpu_throttled_s"] = worst["throttled_time"] / 1e9
    elif "throttled_usec" in worst:
        values["cpu_throttled_s"] = worst["throttled_usec"] / 1e6
    return values


def cpu_time(groups: tuple[Level, ...]) -> dict[str, float]:
    """CPU seconds of the innermost group that counts them. A group that vtax made is a node's; of any other it is not
    known whether it is: a container sees its own as the root."""
    for group in groups:
        usec, nsec = group.numbers.get("usage_usec"), whole(group.lines.get("cpuacct.usage"))
        if usec is not None or nsec is not None:
            used_s = usec / 1e6 if usec is not None else (nsec or 0) / 1e9
            return {"node_cpu_s" if "/vtax-" in group.path else "group_cpu_s": used_s}
    return {}


def memory_pressure(groups: tuple[Level, ...]) -> dict[str, float]:
    """How often the memory limit was hit, and how many processes that killed, at the level where it was worst."""
    hits = [group.numbers["max"] for group in groups if "max" in group.numbers]
    hits += [count for group in groups if (count := whole(group.lines.get("memory.failcnt"))) is not None]
    kills = [group.numbers["oom_kill"] for group in groups if "oom_kill" in group.numbers]
    values: dict[str, float] = {}
    if hits:
        values["memory_limit_hits"] = max(hits)
    if kills:
        values["oom_kills"] = max(kills)
    return values


def version(mounts: tuple[tuple[str, str], ...], membership: str) -> str | None:
    """ "1", "2" or "hybrid" as mounted; without a visible mount, as /proc/self/cgroup numbers the hierarchies."""
    types = {kind for _, kind in mounts if kind in ("cgroup", "cgroup2")}
    if not types:
        numbers = {line.partition(":")[0] for line in membership.splitlines() if line.count(":") >= 2}
        types = {"cgroup2" if number == "0" else "cgroup" for number in numbers}
    return {("cgroup",): "1", ("cgroup2",): "2", ("cgroup", "cgroup2"): "hybrid"}.get(tuple(sorted(types)))
