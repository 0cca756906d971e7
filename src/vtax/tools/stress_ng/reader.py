"""stress-ng's log: a row of metrics for every stressor of every rank, identified by the process number in each line.

A run counts when every rank that began has its rows, their header and its end. The node of a rank is known when
`--verbose` printed it and no other rank has the same process number, which happens on two nodes.

Facts: `settings` (hogs, time, method), `ranks`, `total_time_s` (of the longest rank), `cpu_share_of_worker` (by
stressor, the part of a CPU that each worker had at least), `stress_ng_wording`, and what the command line above says;
with `--verbose` also `stress_ng_version`, `method`, `invoked`, `kernel`, `machine`, `compiler`, `libc`, `memory_bytes`,
`cpus`, `filesystem` (path and type), `ranks_on_nodes` and, where there are any, `oom_kills`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from vtax.tools.commands import command_facts
from vtax.tools.reading import Reading, Section, Value, near_miss
from vtax.tools.stress_ng.messages import PREFIX, RUN_TIME, Message, facts_of, messages_of, nodes_of, seconds_of
from vtax.tools.stress_ng.metrics import BOGO_OPS, RATE_CPU, RATE_REAL
from vtax.units import format_seconds

HOGS = re.compile(r"^dispatching hogs: (.{1,300})$")
HOG = re.compile(r"(\d{1,6}) ([a-z][\w-]*)")
HEADER = re.compile(r"^stressor +bogo ops +real time +usr time +sys time +bogo ops/s +bogo ops/s\b")
UNITS = re.compile(r"^ +\(secs\) +\(secs\) +\(secs\) +\(real time\) +\(usr\+sys time\)")
ROW = re.compile(
    r"^([a-z][\w-]{0,40}) +(\d{1,18}) +(\d{1,12}\.\d{2}) +(\d{1,12}\.\d{2}) +(\d{1,12}\.\d{2})"
    r" +(\d{1,18}\.\d{2}) +(\d{1,18}\.\d{2})(?: +\d{1,9}\.\d{2})?(?: +\d{1,12})? *$"
)
END = re.compile(r"^successful run completed in (\S.{0,100})$")
# With its process number, every kind of line that a number is taken from.
WHOLE = tuple(re.compile(PREFIX + known.pattern[1:]) for known in (HOGS, HEADER, UNITS, ROW, END))
FAILED = re.compile(
    r"^unsuccessful run completed|(?:failed|skipped|metrics untrustworthy): [1-9]"
    r"|metrics-check: .*(?:incorrect|untrustworthy|zero|invalid)"
)
KILLED = re.compile(r"killed by OOM killer|OOM restarts: [1-9]|child died: signal|terminated on signal")
ERROR = "terminated with an error"
SCIENTIFIC = re.compile(r"^[a-z][\w-]{0,40} +\d{1,18} +\d\.\d{1,6}e[+-]\d\d ")
ROUNDING = 0.0051
FULL = 0.9  # of the time that was asked for
LEAST_CPU_S = 0.05  # of a run; and of each second and worker, where the stressor computes all the time
BUSY = frozenset({"cpu", "vm", "matrix", "memcpy", "stream"})
EVERYTHING = "all values of this run"


class Row(NamedTuple):
    """The metrics of one stressor of one rank."""

    said: Message
    operations: int
    real_s: float
    cpu_s: float  # user + system
    texts: tuple[str, str, str]  # operations, and their rates by wall time and by CPU time

    @classmethod
    def of(cls, said: Message, found: re.Match[str]) -> Row:
        cpu_s = float(found[4]) + float(found[5])
        return cls(said, int(found[2]), float(found[3]), cpu_s, (found[2], found[6], found[7]))

    @property
    def consistent(self) -> bool:
        """Whether both rates follow from operations and times, within what rounding allows."""
        for seconds, rate, off in ((self.real_s, self.texts[1], 0.0051), (self.cpu_s, self.texts[2], 0.0102)):
            low, high = self.operations / (seconds + off), self.operations / max(seconds - off, 1e-4)
            if seconds > 0 and not low - ROUNDING <= float(rate) <= high + ROUNDING:
                return False
        return True


def read(section: Section) -> Reading:
    """One run, with all its ranks. Several stressors in one run are distinguished by label."""
    messages = messages_of(section.lines)
    reading = Reading("stress-ng", facts={**command_facts(section.lines), **facts_of(messages)})
    hogs = [(one.process, found[1]) for one in messages if (found := HOGS.match(one.text))]
    work = list(dict.fromkeys(hog for _, hog in hogs))
    reading.ranks = len(hogs)
    _settings(reading, messages, work)
    for one in messages:
        if one.kind in ("fail", "error") or ERROR in one.text:
            reading.refuse(one.line, one.text, "stress-ng says that something failed", 0)
    reason, line = _problem(reading, messages, work)
    if reason:
        reading.refuse(line or near_miss(section.lines, *WHOLE), EVERYTHING, reason, 0)
        return reading
    reading.ended = True
    rows: dict[str, list[Row]] = defaultdict(list)
    for one in messages:
        if one.kind in ("info", "metrc") and (found := ROW.match(one.text)):
            rows[found[1]].append(Row.of(one, found))
    workers = {name: int(count) for count, name in HOG.findall(work[0])}
    for stressor in dict.fromkeys((*workers, *rows)):
        mine = rows[stressor]
        reason, line = _unusable(mine, reading.ranks, {process for process, _ in hogs})
        if not mine and (odd := next((one.line for one in messages if SCIENTIFIC.match(one.text)), 0)):
            reason, line = "its numbers are in scientific notation (--sn), which vtax does not read", odd
        if reason:
            line = line or near_miss(section.lines, *WHOLE) or (mine[0].said.line if mine else 0)
            reading.refuse(line, stressor, reason, 3 * len(mine))
        else:
            _take(reading, messages, stressor, mine, workers.get(stressor, 0))
    return reading


def _settings(reading: Reading, messages: Sequence[Message], work: list[str]) -> None:
    """What it was asked to do, and how long that took."""
    settings: dict[str, JsonValue] = {}
    if work:
        reading.params["hogs"] = work[0]
        settings["hogs"] = ", ".join(sorted(f"{count} {name}" for count, name in HOG.findall(work[0])))
    times = [found for one in messages if (found := RUN_TIME.match(one.text))]
    if times and (seconds := seconds_of(times[0][2])) is not None:
        reading.params["time"] = format_seconds(seconds)
        reading.elapsed_s, settings["time"] = seconds, f"{seconds:g} s"
    if reading.ranks > 1:
        reading.params["ranks"] = reading.ranks
    if "method" in reading.facts:
        settings["method"] = reading.facts["method"]
    if "stress_ng_version" not in reading.facts and "stress_ng_wording" in reading.facts:
        settings["wording"] = f"'{reading.facts['stress_ng_wording']}'"  # which versions say differently
    if settings:
        reading.facts |= {"settings": settings, "ranks": reading.ranks}
    taken = [seconds_of(found[1]) for one in messages if (found := END.match(one.text))]
    if known := [seconds for seconds in taken if seconds is not None]:
        reading.facts["total_time_s"] = max(known)


def _problem(reading: Reading, messages: Sequence[Message], work: list[str]) -> tuple[str, int]:
    """Why nothing of this run can be taken, and the line where that is known; "" when it can."""
    if not work:
        return "no line says what was started (dispatching hogs)", 0
    if len(work) > 1:
        return f"its ranks did different work: {'; '.join(work[:3])}", 0
    asked = reading.facts.get("ranks_asked")
    if isinstance(asked, int) and asked != reading.ranks:
        return f"{reading.ranks} ranks began, {asked} were asked for", 0
    if failed := next((one for one in messages if FAILED.search(one.text)), None):
        return f"stress-ng says: {failed.text}", failed.line
    for name, pattern in (("an end", END), ("a header of the table", HEADER), ("units in its header", UNITS)):
        count = sum(pattern.match(one.text) is not None for one in messages)
        if count == 0 and pattern is HEADER and not any(ROW.match(one.text) for one in messages):
            return "it has no table of metrics, which only --metrics prints", 0
        if count != reading.ranks:
            return f"{reading.ranks} ranks began, {count} have {name}: one did not end well, or is damaged", 0
    return "", 0


def _unusable(rows: Sequence[Row], ranks: int, processes: set[str]) -> tuple[str, int]:
    """Why the rows of a stressor are not taken, and the line where that is known; "" when they are."""
    per_process = Counter(row.said.process for row in rows)
    if not rows:
        return "no row of metrics (was --metrics not given?)", 0
    if len(rows) != ranks or not set(per_process) <= processes:
        return f"{len(rows)} rows, but {ranks} ranks: rows are missing or appear twice", 0
    if max(per_process.values()) > 1 and len(processes) == ranks:
        return "one rank has two rows, another none", 0
    for row in rows:
        if not row.consistent:
            return "operations, times and rates of this row do not fit", row.said.line
        if row.real_s == 0 or row.operations == 0:
            return "it did nothing", row.said.line
    return "", 0


def _ended_early(messages: Sequence[Message], real_s: float) -> bool:
    """Whether it ran much shorter than it was asked to: interrupted, or after a number of operations."""
    asked = (seconds_of(found[2]) for one in messages if (found := RUN_TIME.match(one.text)) and found[1])
    return any(seconds is not None and real_s < FULL * seconds - 0.1 for seconds in asked)


def _take(reading: Reading, messages: Sequence[Message], stressor: str, rows: Sequence[Row], workers: int) -> None:
    """The metrics of a stressor that all ranks have. The rate by CPU time only where no worker was killed, because its
    CPU time is lost; without `--verbose` stress-ng restarts such a worker in silence, and too little time shows it."""
    nodes = {process: names[0] for process, names in nodes_of(messages).items() if len(names) == 1}
    killed = next((one.line for one in messages if KILLED.search(one.text)), 0)
    verbose = any(one.kind == "debug" for one in messages)
    cpu_s, real_s = min(row.cpu_s for row in rows), max(row.real_s for row in rows)
    least_s = LEAST_CPU_S * (max(1.0, real_s * max(1, workers)) if stressor in BUSY else 1.0)
    lost = cpu_s < least_s and (not verbose or (cpu_s == 0 and len(rows) > 1))
    early = _ended_early(messages, real_s)
    for row in rows:
        labels = {"stressor": stressor, **({"run": "ended early"} if early else {})}
        if row.said.process in nodes and reading.ranks > 1:
            labels["node"] = nodes[row.said.process]
        for metric, text in zip((BOGO_OPS, RATE_REAL, RATE_CPU), row.texts, strict=True):
            if metric is not RATE_CPU or not (killed or lost or cpu_s == 0):  # with no CPU time, 0.00 is printed here
                reading.values.append(Value(metric, float(text), row.said.line, labels, True, row.said.rank))
    if killed:
        reading.refuse(killed, RATE_CPU.name, "killed workers take their CPU time with them", len(rows))
    elif lost:
        reason = f"a CPU time of {cpu_s:.2f} s is less than the workers used: that of killed ones is lost"
        reading.refuse(rows[0].said.line, RATE_CPU.name, reason, len(rows))
    if workers:  # the part of a CPU that each worker had, at least
        shares = reading.facts.setdefault("cpu_share_of_worker", {})
        assert isinstance(shares, dict)
        shares[stressor] = round(min(row.cpu_s / row.real_s / workers for row in rows), 3)
