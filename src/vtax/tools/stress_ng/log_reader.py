"""stress-ng: rows of metrics of every rank, told apart by the process number in front of each line.

A run counts when every rank that began has its row, its header and its end. The node of a rank is known when
`--verbose` printed it and no other rank has the same process number, which happens on two nodes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from pydantic import JsonValue

from vtax.tools.commands import command_facts
from vtax.tools.reading import Line, Reading, Section, Value
from vtax.tools.stress_ng.benchmark import BOGO_OPS, RATE_CPU, RATE_REAL
from vtax.units import format_seconds

LINE = re.compile(r"^stress-ng: (\w{4,5}): {1,3}\[(\d{1,9})\] (.*)$")
HOGS = re.compile(r"^dispatching hogs: (.{1,300})$")
RUN_TIME = re.compile(r"^(?:setting to|defaulting to) a (.{1,60}) run per stressor$")
HEADER = re.compile(r"^stressor +bogo ops +real time +usr time +sys time +bogo ops/s +bogo ops/s")
ROW = re.compile(
    r"^([a-z][\w-]{0,40}) +(\d{1,18}) +(\d{1,12}\.\d\d) +(\d{1,12}\.\d\d) +(\d{1,12}\.\d\d)"
    r" +(\d{1,18}\.\d\d) +(\d{1,18}\.\d\d)(?: +\d{1,9}\.\d\d)?(?: +\d{1,12})? *$"
)
END = re.compile(r"^successful run completed in \S")
BAD_END = re.compile(r"^unsuccessful run completed")
VERSION = re.compile(r"^stress-ng (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(?: |$)")
SYSTEM = re.compile(r"^system: (\S{1,40}) (\S{1,80}) (\S{1,80}) (.{0,200})$")
MACHINE = re.compile(r" (x86_64|aarch64|arm64|riscv64|ppc64le|s390x|i686)(?:,|$)")
COMPILER = re.compile(r", (gcc \S{1,40}?|clang \S{1,40}?)(?:,|$)")
LIBC = re.compile(r", (glibc|musl)(?: libc)? ?(\S{0,40}?)(?:,|$)")
RAM = re.compile(r"^RAM total: (\d{1,9}(?:\.\d{1,3})?)([KMGT]?)(?:,|$)")
PLACE = re.compile(r"^temporary file path: '(.{1,200})', filesystem type: (\S{1,40})")
CPUS = re.compile(r"^(\d{1,6}) processors? online")
INVOKED = re.compile(r"^invoked with '(.{1,500})' by user")
KILLED = re.compile(r"killed by OOM killer|child died: signal \d{1,3} 'SIGKILL'")
RESTARTS = re.compile(r"OOM restarts: (\d{1,9})")
METHOD = re.compile(r"using method '(\S{1,60})'")
TROUBLE = re.compile(
    r"^(?:failed|skipped|metrics untrustworthy): [1-9]|metrics-check: .*(?:incorrect|untrustworthy|zero|invalid)"
)
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
ROUNDING = 0.0051
LEAST_CPU_S = 0.05  # of a run; and of each second and worker, where the stressor computes all the time
BUSY = frozenset({"cpu", "vm", "matrix", "memcpy", "stream"})


def read(section: Section) -> Reading:
    """One run, with all its ranks. Several stressors in one run are told apart by label."""
    reading = Reading("stress-ng", facts=command_facts(section.lines))
    parsed = [(line, found) for line in section.lines if (found := LINE.match(line.text))]
    hogs = [(line, pid, found[1]) for line, (_, pid, text) in _texts(parsed) if (found := HOGS.match(text))]
    work = list(dict.fromkeys(hog for _, _, hog in hogs))
    reading.ranks = len(hogs)
    times = list(dict.fromkeys(f[1] for _, (_, _, text) in _texts(parsed) if (f := RUN_TIME.match(text))))
    if work:
        reading.params["hogs"] = work[0]
    if times and (seconds := seconds_of(times[0])) is not None:
        reading.params["time"] = format_seconds(seconds)
        reading.elapsed_s = seconds
    if reading.ranks > 1:
        reading.params["ranks"] = reading.ranks
    nodes = _facts(reading, parsed)
    where = section.first
    problem = _problem(reading, parsed, hogs, work)
    if problem:
        reading.refuse(where, "all values of this run", problem, 0)
        return reading
    _rows(reading, parsed, {pid for _, pid, _ in hogs}, nodes)
    return reading


def _texts(parsed: list[tuple[Line, re.Match[str]]]) -> list[tuple[Line, tuple[str, str, str]]]:
    return [
        (line, (found[1], f"{line.rank}/{found[2]}" if line.rank else found[2], found[3])) for line, found in parsed
    ]


def _problem(
    reading: Reading, parsed: list[tuple[Line, re.Match[str]]], hogs: list[tuple[Line, str, str]], work: list[str]
) -> str:
    """Why nothing of this run can be taken; "" when it can."""
    if not hogs:
        return "no line says what was started (dispatching hogs)"
    if len(work) > 1:
        return f"its ranks did different work: {'; '.join(work[:3])}"
    asked = reading.facts.get("ranks_asked")
    if isinstance(asked, int) and asked != reading.ranks:
        return f"{reading.ranks} ranks began, {asked} were asked for"
    texts = [text for _, (_, _, text) in _texts(parsed)]
    for name, pattern in (("an end", END), ("a header of the table", HEADER)):
        count = sum(pattern.match(text) is not None for text in texts)
        if count != reading.ranks:
            return f"{reading.ranks} ranks began, {count} have {name}: one did not end well, or is damaged"
    if any(BAD_END.match(text) for text in texts):
        return "stress-ng says that the run was not successful"
    if trouble := next((text for text in texts if TROUBLE.search(text)), ""):
        return f"stress-ng says: {trouble}"
    return ""


def _rows(reading: Reading, parsed: list[tuple[Line, re.Match[str]]], pids: set[str], nodes: dict[str, str]) -> None:
    """The metrics of every stressor, when all ranks have it."""
    rows: dict[str, list[tuple[Line, str, re.Match[str]]]] = defaultdict(list)
    for line, (kind, pid, text) in _texts(parsed):
        if kind in ("info", "metrc") and (found := ROW.match(text)):
            rows[found[1]].append((line, pid, found))
    if not rows:
        reading.refuse(parsed[0][0].number, "all values of this run", "no row of metrics (--metrics was not given?)", 0)
    killed = reading.facts.get("oom_kills", 0)
    for stressor, found_rows in rows.items():
        where = found_rows[0][0].number
        per_pid = Counter(pid for _, pid, _ in found_rows)
        if len(found_rows) != reading.ranks or not set(per_pid) <= pids:
            reason = f"{len(found_rows)} rows, but {reading.ranks} ranks: rows are missing or stand there twice"
            reading.refuse(where, stressor, reason, 3 * len(found_rows))
            continue
        if max(per_pid.values()) > 1 and len(pids) == reading.ranks:
            reading.refuse(where, stressor, "one rank has two rows, another none", 3 * len(found_rows))
            continue
        if wrong := next((line.number for line, _, row in found_rows if not consistent(row)), 0):
            reading.refuse(wrong, stressor, "operations, times and rates of this row do not fit", 3 * len(found_rows))
            continue
        if any(float(row[3]) == 0 or int(row[2]) == 0 for _, _, row in found_rows):
            reading.refuse(where, stressor, "it did nothing", 3 * len(found_rows))
            continue
        cpu_s = min(float(row[4]) + float(row[5]) for _, _, row in found_rows)
        real_s = max(float(row[3]) for _, _, row in found_rows)
        workers = max(1, workers_of(str(reading.params.get("hogs", "")), stressor))
        least_s = LEAST_CPU_S * (max(1.0, real_s * workers) if stressor in BUSY else 1.0)
        for line, pid, row in found_rows:
            labels = {"stressor": stressor, **({"node": nodes[pid]} if pid in nodes and reading.ranks > 1 else {})}
            for metric, text in ((BOGO_OPS, row[2]), (RATE_REAL, row[6]), (RATE_CPU, row[7])):
                if metric is not RATE_CPU or (not killed and cpu_s >= least_s):
                    reading.values.append(Value(metric, float(text), line.number, labels, True, line.rank))
        if killed:
            reading.refuse(where, RATE_CPU.name, "killed workers take their CPU time with them", len(found_rows))
        elif cpu_s < least_s:
            reason = f"a CPU time of {cpu_s:.2f} s is less than the workers used: that of killed ones is lost"
            reading.refuse(where, RATE_CPU.name, reason, len(found_rows))
        _shares(reading, stressor, [row for _, _, row in found_rows])


def consistent(row: re.Match[str]) -> bool:
    """Whether both rates follow from operations and times, within what rounding allows."""
    count, real, user, system = int(row[2]), float(row[3]), float(row[4]), float(row[5])
    for seconds, rate, digits in ((real, float(row[6]), 0.0051), (user + system, float(row[7]), 0.0102)):
        if seconds <= 0:
            continue
        low, high = count / (seconds + digits), count / max(seconds - digits, 1e-4)
        if not low - ROUNDING <= rate <= high + ROUNDING:
            return False
    return True


def _shares(reading: Reading, stressor: str, rows: list[re.Match[str]]) -> None:
    """What part of a CPU each worker had, at least; for the audit."""
    workers = workers_of(str(reading.params.get("hogs", "")), stressor)
    if workers:
        share = min((float(row[4]) + float(row[5])) / float(row[3]) / workers for row in rows)
        shares = reading.facts.setdefault("cpu_share_of_worker", {})
        if isinstance(shares, dict):
            shares[stressor] = round(share, 3)


def workers_of(hogs: str, stressor: str) -> int:
    """How many workers `2 cpu, 4 vm` has for a stressor."""
    found = re.search(rf"(?:^|, )(\d{{1,6}}) {re.escape(stressor)}(?:,|$)", hogs)
    return int(found[1]) if found else 0


def _facts(reading: Reading, parsed: list[tuple[Line, re.Match[str]]]) -> dict[str, str]:
    """What `--verbose` says of programs, nodes and accidents. Returns the node of every process that has one."""
    facts = reading.facts
    seen: dict[str, list[JsonValue]] = defaultdict(list)
    hosts: dict[str, list[str]] = defaultdict(list)
    kills = restarts = 0
    for _, (kind, pid, text) in _texts(parsed):
        if kind != "debug":
            continue
        if found := VERSION.match(text):
            seen["stress_ng_version"].append(found[1])
        elif found := SYSTEM.match(text):
            hosts[pid].append(found[2])
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
    for name, values in seen.items():
        different = [value for place, value in enumerate(values) if value not in values[:place]]
        facts[name] = different[0] if len(different) == 1 else different
    if max(kills, restarts):
        facts["oom_kills"] = max(kills, restarts)
    if hosts:
        facts["ranks_on_nodes"] = dict(Counter(name for names in hosts.values() for name in names))
    wording = [text for _, (_, _, text) in _texts(parsed) if RUN_TIME.match(text)]
    if wording:
        facts["stress_ng_wording"] = re.sub(r"\d+", "N", wording[0])
    return {pid: names[0] for pid, names in hosts.items() if len(names) == 1}


def seconds_of(text: str) -> float | None:
    """Seconds in `1 min, 0 secs`, `60 second`, `1 hour, 2 mins`."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    total = 0.0
    for part in text.split(","):
        found = re.match(r"^ ?(\d{1,9}(?:\.\d{1,3})?) ?([smhd])", part)
        if found is None:
            return None
        total += float(found[1]) * units[found[2]]
    return total
