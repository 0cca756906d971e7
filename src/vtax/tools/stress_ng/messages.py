"""The lines of stress-ng's log, and the facts that `--verbose` adds to it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from vtax.tools.reading import Line

PREFIX = r"^stress-ng: (?:\d\d:\d\d:\d\d\.\d{1,6} )?(\w{4,5}): {1,3}\[(\d{1,9})\] "
MESSAGE = re.compile(PREFIX + "(.*)$")
RUN_TIME = re.compile(r"^(?:(setting) to|defaulting to) a (.{1,60}) run per stressor$")
VERSION = re.compile(r"^stress-ng (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(?: |$)")
SYSTEM = re.compile(r"^system: (\S{1,40}) (\S{1,80}) (\S{1,80}) (.{0,200})$")
MACHINE = re.compile(r" (x86_64|aarch64|arm64|riscv64|ppc64le|s390x|i686)(?:,|$)")
COMPILER = re.compile(r", (gcc \S{1,40}?|clang \S{1,40}?)(?:,|$)")
LIBC = re.compile(r", (glibc|musl)(?: libc)? ?(\S{0,40}?)(?:,|$)")
RAM = re.compile(r"^RAM total: (\d{1,9}(?:\.\d{1,3})?)([KMGT]?)(?:,|$)")
PLACE = re.compile(r"^temporary file path: '(.{1,200})', filesystem type: (\S{1,40})")
CPUS = re.compile(r"^(\d{1,6}) processors? online")
INVOKED = re.compile(r"^invoked with '(.{1,500})' by user")
RESTARTS = re.compile(r"OOM restarts: (\d{1,9})")
METHOD = re.compile(r"using method '(\S{1,60})'")
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
DISPATCH = re.compile(PREFIX + "dispatching hogs: ")
COMPLETED = re.compile(PREFIX + "(?:un)?successful run completed")
FIRST = re.compile(PREFIX + "(?:invoked with|setting to a|defaulting to a|dispatching)")


def starts(line: str) -> bool:
    """Whether a run may begin with this line of a log."""
    return line.startswith("stress-ng: ") and MESSAGE.match(line) is not None


def restarts(line: str) -> bool:
    """Whether it is what a rank says first."""
    return FIRST.match(line) is not None


def begins(line: str) -> bool:
    return "dispatching hogs: " in line and DISPATCH.match(line) is not None


def ends(line: str) -> bool:
    return "run completed" in line and COMPLETED.match(line) is not None


class Message(NamedTuple):
    """A line: its kind (info, debug, metrc ...), the process that wrote it (with its rank, where a tag tells), and what
    it says."""

    line: int
    rank: str
    kind: str
    process: str
    text: str


def messages_of(lines: Sequence[Line]) -> list[Message]:
    return [
        Message(line.number, line.rank, found[1], f"{line.rank}/{found[2]}" if line.rank else found[2], found[3])
        for line in lines
        if (found := MESSAGE.match(line.text))
    ]


def nodes_of(messages: Sequence[Message]) -> dict[str, list[str]]:
    """Process -> the nodes that it says it is on: several, where two nodes use the same number."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for one in messages:
        if one.kind == "debug" and (found := SYSTEM.match(one.text)):
            nodes[one.process].append(found[2])
    return nodes


def facts_of(messages: Sequence[Message]) -> dict[str, JsonValue]:
    """What `--verbose` says of programs, nodes and accidents: each a value, or a list where ranks differ."""
    seen: dict[str, list[JsonValue]] = defaultdict(list)
    kills = restarts = 0
    for text in (one.text for one in messages if one.kind == "debug"):
        if found := VERSION.match(text):
            seen["stress_ng_version"].append(found[1])
        elif found := SYSTEM.match(text):
            seen["kernel"].append(found[3])
            for name, pattern in (("machine", MACHINE), ("compiler", COMPILER)):
                if part := pattern.search(text):
                    seen[name].append(part[1])
            if libc := LIBC.search(text):
                seen["libc"].append(f"{libc[1]} {libc[2]}".strip())
        elif found := RAM.match(text):
            seen["memory_bytes"].append(round(float(found[1]) * BYTES[found[2]]))
        elif found := PLACE.match(text):
            seen["filesystem"].append({"path": found[1], "type": found[2]})
        elif found := CPUS.match(text):
            seen["cpus"].append(int(found[1]))
        elif found := INVOKED.match(text):
            seen["invoked"].append(found[1])
        elif found := METHOD.search(text):
            seen["method"].append(found[1])
        elif found := RESTARTS.search(text):
            restarts += int(found[1])
        elif "killed by OOM killer" in text:
            kills += 1
    facts: dict[str, JsonValue] = {}
    for name, values in seen.items():
        different = [value for place, value in enumerate(values) if value not in values[:place]]
        facts[name] = different[0] if len(different) == 1 else different
    if max(kills, restarts):
        facts["oom_kills"] = max(kills, restarts)
    if nodes := nodes_of(messages):
        facts["ranks_on_nodes"] = dict(Counter(name for names in nodes.values() for name in names))
    wording = next((one.text for one in messages if RUN_TIME.match(one.text)), "")
    if wording:
        facts["stress_ng_wording"] = re.sub(r"\d+", "N", wording)
    return facts


def seconds_of(text: str) -> float | None:
    """Seconds in `1 min, 0 secs`, `60 second`, `1 hour, 2 mins`, `60.01s (1 min, 0.01 secs)`."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    total = 0.0
    for part in text.partition(" (")[0].split(","):
        found = re.match(r"^ ?(\d{1,9}(?:\.\d{1,3})?) ?([smhd])", part)
        if found is None:
            return None
        total += float(found[1]) * units[found[2]]
    return total
