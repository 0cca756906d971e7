"""pgbench of PostgreSQL 13 to 17: settings, progress, the summary, scripts (-b, -f) and statements (-r).

Facts: `pgbench_version`, `scale`, `clients`, `threads`, `query_mode`, `script`, `client_threads`, `operations`,
`failed_operations` (transactions that failed or were skipped) and `least_flushes` (how often commits had to wait for a
disk at least: clients that commit at one moment share one flush; 0 for a script that only reads). Series: `progress`
(time, transactions per second, latency).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from vtax.model.metric import Metric
from vtax.model.reading import TimeSeries
from vtax.tools.commands import command_facts
from vtax.tools.pgbench import metrics as of
from vtax.tools.pgbench.lines import ABORTED, HEADS, LINES, OF_SCRIPT, PROGRESS, SCRIPT, STATEMENT, STATEMENTS
from vtax.tools.reading import Line, Reading, Section, Value
from vtax.units import in_base_units

MILLISECOND = Fraction(1, 1000)
NUMBERS = {"scale": "scale", "clients": "clients", "threads": "threads", "duration": "duration_s", "each": "each"}
SHARES = {"failed": of.FAILED, "retried": of.RETRIED, "late": of.LATE}
READS_ONLY = "<builtin: select only>"
STATEMENTS_OF = {"<builtin: TPC-B (sort of)>": 11, "<builtin: simple update>": 9, READS_ONLY: 2}
Found = tuple[Line, re.Match[str]]


@dataclass
class Run:
    """One run: what each of its lines says."""

    reading: Reading
    lines: Sequence[Line]
    found: Mapping[str, Found]

    def take(self, metric: Metric, name: str) -> None:
        """The time of a line, in ms; 0.000 is below what pgbench prints: absent."""
        if name in self.found:
            line, match = self.found[name]
            time(self.reading, metric, match[1], line, {})


def read(section: Section) -> Reading:
    """One run."""
    lines = section.lines
    reading = Reading("pgbench", facts=command_facts(lines))
    head = next((place for place, line in enumerate(lines) if SCRIPT.match(line.text)), len(lines))
    if empty := next((ln for ln in lines[:head] if (m := LINES["processed"].match(ln.text)) and not int(m[1])), None):
        reading.refuse(empty.number, empty.text, "no transaction succeeded", 0)  # its averages say "NaN" or "inf"
        return reading
    if damaged := next((ln for ln in lines[:head] if ln.text.startswith(HEADS) and not _known(ln.text)), None):
        reading.refuse(damaged.number, damaged.text, "not what pgbench prints there", 0)
        return reading
    if stopped := next((line for line in lines if ABORTED.search(line.text)), None):
        said = stopped.text[stopped.text.find("ERROR:") :] if "ERROR:" in stopped.text else stopped.text
        reading.refuse(stopped.number, said, "clients were aborted: what it did until then is no result", 0)
        return reading
    hits = {name: [(ln, m) for ln in lines[:head] if (m := known.match(ln.text))] for name, known in LINES.items()}
    run = Run(reading, lines, {name: several[0] for name, several in hits.items() if several})
    if twice := next((name for name, several in hits.items() if len(several) > 1), ""):
        reading.refuse(hits[twice][1][0].number, hits[twice][1][0].text, "it is there twice: two runs in one", 0)
        return reading
    _progress(run)
    if reason := _incomplete(run):
        reading.refuse(run.found["processed"][0].number if "processed" in run.found else 0, "this run", reason, 0)
        return reading
    _summary(run)
    scripts = [place for place, line in enumerate(lines) if SCRIPT.match(line.text)]
    if scripts:
        _scripts(run, scripts)
    else:
        _statements(run, lines, {}, run.found["type"][1][1], _average(run))
    reading.ended = not reading.refusals
    return reading


def time(reading: Reading, metric: Metric, text: str, line: Line, labels: Mapping[str, str]) -> None:
    if float(text) > 0:
        reading.values.append(Value(metric, in_base_units(float(text), MILLISECOND), line.number, labels))


def _known(text: str) -> bool:
    return any(known.match(text) for known in LINES.values())


def _incomplete(run: Run) -> str:
    """Why the numbers are none; "" when all is there."""
    found = run.found
    if "tps" not in found and "tps connecting" not in found:
        return "it has no closing line: interrupted"
    if missing := [name for name in ("processed", "latency", "clients", "type") if name not in found]:
        return f"the line with {missing[0]} is missing"
    if "tps" not in found and "including connections" in found["tps connecting"][0].text:
        return "its last line is missing: interrupted"
    processed = found["processed"][1]
    if processed[2] and int(processed[1]) + _count(run, "failed") != int(processed[2]):
        return f"{processed[1]} of {processed[2]} transactions were processed"
    return ""


def _count(run: Run, name: str) -> int:
    return int(run.found[name][1][1]) if name in run.found else 0


def _summary(run: Run) -> None:
    """Settings and totals."""
    reading, found = run.reading, run.found
    for name, key in NUMBERS.items():
        if name in found:
            reading.params[key] = int(found[name][1][1])
    reading.params |= {"script": found["type"][1][1]}
    reading.params |= {"query_mode": found["mode"][1][1]} if "mode" in found else {}
    reading.facts |= {key: value for key, value in reading.params.items() if key not in ("duration_s", "each")}
    reading.facts |= {"operations": _count(run, "processed"), "client_threads": reading.params.get("threads", 1)}
    if reading.params["script"] in STATEMENTS_OF:
        groups = _count(run, "processed") // int(found["clients"][1][1])
        reading.facts["least_flushes"] = 0 if reading.params["script"] == READS_ONLY else groups
    if "failed" in found or "skipped" in found:  # not before 15
        reading.facts["failed_operations"] = _count(run, "failed") + _count(run, "skipped")
    if "version" in found:
        reading.facts["pgbench_version"] = found["version"][1][1]
    plain = of.TPS_FIXED_WORK if "each" in found else of.TPS
    connecting = of.TPS_CONNECTING.model_copy(update={"kind": plain.kind})
    for metric, name in ((plain, "tps"), (connecting, "tps connecting")):
        if name in found:
            reading.values.append(Value(metric, float(found[name][1][1]), found[name][0].number))
    run.take(of.LATENCY_AVERAGE, "latency")
    run.take(of.LATENCY_STDDEV, "stddev")
    run.take(of.SCHEDULE_LAG, "lag")
    run.take(of.CONNECTION_TIME, "connection")
    for name, metric in SHARES.items():
        if name in found:
            _share(run, metric, *found[name])


def _share(run: Run, metric: Metric, line: Line, match: re.Match[str]) -> None:
    """A share of the transactions, from their numbers; the printed percentage has to fit."""
    *limit, part, whole, percent = match.groups()
    processed = _count(run, "processed")
    total = processed if whole else processed + _count(run, "failed")
    share = int(part) / total if total else 0.0
    if (whole and int(whole) != total) or abs(100 * share - float(percent.lower())) > 0.001:
        run.reading.refuse(line.number, line.text, f"{part} of {total} transactions are not {percent} %")
        return
    labels = {"limit_ms": limit[0]} if limit else {}
    run.reading.values.append(Value(metric, share, line.number, labels))


def _progress(run: Run) -> None:
    rows = [tuple(map(float, match.groups())) for line in run.lines if (match := PROGRESS.match(line.text))]
    if rows:
        columns = ("end_s", "tps", "latency_s")
        run.reading.series["progress"] = TimeSeries(
            columns=columns, rows=tuple((end, tps, ms / 1000) for end, tps, ms, _ in rows)
        )


def _average(run: Run) -> str:
    """The mean latency that statements add up to, in ms. "" where it is not measured for each transaction, or has other
    parts: waits and failed tries."""
    _, match = run.found["latency"]
    if match[2] or "lag" in run.found or "stddev" not in run.found or _count(run, "retried"):
        return ""
    return str(match[1])


def _statements(run: Run, lines: Sequence[Line], labels: Mapping[str, str], script: str, average: str) -> None:
    """The times of statements. They have no last line: all of a built-in script have to be there, and those of another
    have to add up to the transaction's."""
    head = next((place for place, line in enumerate(lines) if STATEMENTS.match(line.text)), None)
    if head is None:
        return
    own = [(line, match) for line in lines[head + 1 :] if (match := STATEMENT.match(line.text))]
    total = sum(float(match[1]) for _, match in own)
    room = 0.001 * (len(own) + 1)
    fits = bool(average) and abs(total - float(average)) <= room
    if not own or not own[-1][1][2].endswith(";") or len(own) != STATEMENTS_OF.get(script, len(own) if fits else 0):
        why = f"there are {len(own)}, of {total:.3f} ms together: some may be missing"
        run.reading.refuse(lines[head].number, "statement latencies", why, len(own))
        return
    for number, (line, match) in enumerate(own, start=1):
        name = f"{number:02} {match[2].split()[0].rstrip(';')}"
        time(run.reading, of.STATEMENT_LATENCY, match[1], line, {**labels, "statement": name})


def _scripts(run: Run, places: Sequence[int]) -> None:
    """Several scripts in one run: each with its own rate and latencies. Their weights are 100 % together."""
    blocks = [run.lines[a:b] for a, b in zip(places, [*places[1:], len(run.lines)], strict=True)]
    weights = [match for block in blocks for line in block if (match := OF_SCRIPT["weight"].match(line.text))]
    if len(weights) != len(blocks) or abs(sum(float(one[1]) for one in weights) - 100) > 0.1 * len(blocks):
        run.reading.refuse(run.lines[places[-1]].number, "the scripts of this run", "their weights are not 100 %", 0)
        return
    for block in blocks:
        _script(run, block)


def _script(run: Run, block: Sequence[Line]) -> None:
    title = SCRIPT.match(block[0].text)
    assert title is not None
    labels = {"script": title[2]}
    found = {n: (ln, m) for n, known in OF_SCRIPT.items() for ln in block if (m := known.match(ln.text))}
    if not {"tps", "latency", "stddev"} <= found.keys() or found["tps"][1][2] is None:
        run.reading.refuse(block[0].number, block[0].text, "its rate or its latency is missing")
        return
    kind = of.TPS_FIXED_WORK if "each" in run.found else of.TPS
    own = kind.model_copy(update={"primary": False})
    run.reading.values.append(Value(own, float(found["tps"][1][2]), found["tps"][0].number, labels))
    time(run.reading, of.LATENCY_AVERAGE, found["latency"][1][1], found["latency"][0], labels)
    time(run.reading, of.LATENCY_STDDEV, found["stddev"][1][1], found["stddev"][0], labels)
    _statements(run, block, labels, title[2], found["latency"][1][1])
