"""redis-benchmark of Redis 2.8 to 8 and of Valkey: its text, `--csv` and `-q`. From 6.2 on they have latencies.

Facts: `persistence` (as the server is configured), `clients`, `client_threads`, `time_rounding` (of the median latency,
relative: half of the smallest step between latencies) and `rounded` (the latencies). Series: `latency_distribution`
and the test (latency, share of the requests that took at most that). Several tests of one run are told apart
by the label `test`. CSV has no last line: of its rows, those that are whole count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from vtax.model.reading import TimeSeries
from vtax.tools.commands import command_facts
from vtax.tools.reading import Line, Reading, Section, Value
from vtax.tools.redis.metrics import LATENCIES, LATENCY_P50, REQUESTS_RATE
from vtax.units import in_base_units

TITLE = re.compile(r"====== (.{1,200}) ======$")  # behind progress that was overwritten on the same line
COUNTS = re.compile(r"^ {2}(\d{1,12}) requests completed in (\d{1,9}\.\d{2}) seconds$")
SETTINGS = {
    "clients": re.compile(r"^ {2}(\d{1,9}) parallel clients$"),
    "payload_bytes": re.compile(r"^ {2}(\d{1,12}) bytes payload$"),
    "threads": re.compile(r"^ {2}threads: (\d{1,6})$"),
    "keep_alive": re.compile(r"^ {2}keep alive: ([01])$"),
}
PERSISTENCE = {
    "snapshots": re.compile(r'^ {2}host configuration "save": ?(.{0,200})$'),
    "append-only file": re.compile(r'^ {2}host configuration "appendonly": (\w{1,10})$'),
}
SHARE = re.compile(
    r"^(\d{1,3}\.\d{1,3})% <= (\d{1,9}(?:\.\d{1,3})?) milliseconds(?: \(cumulative count (\d{1,12})\))?$"
)
RATE = re.compile(r"^(?: {2}throughput summary: )?(\d{1,12}\.\d{2}) requests per second$")
HEADER = re.compile(r"^ +avg +min +p50 +p95 +p99 +max$")
LATENCY = re.compile(r"^ +" + r" +".join([r"(\d{1,9}\.\d{3})"] * len(LATENCIES)) + "$")
QUIET = re.compile(r"(?:^|\r)([^\r:]{1,200}): (\d{1,12}\.\d{2}) requests per second(?:, p50=(\d{1,9}\.\d{3}) msec)?$")
ROW = re.compile(r'^"([^"]{1,200})","(\d{1,12}\.\d{2})"$')
COLUMNS = ("test", "rps", *(f"{name}_latency_ms" for name in ("avg", "min", "p50", "p95", "p99", "max")))
TABLE = ",".join(f'"{name}"' for name in COLUMNS)
NUMBER = re.compile(r"(\d{1,12})\.(\d{2,3})")
TROUBLE = re.compile(
    r"^(?:Error from server|ERROR: |WARN(?:ING)?: could not fetch server CONFIG|Error: )", re.IGNORECASE
)
BUILT_IN = re.compile(  # tests that are asked for by name: a blank line follows the last one
    r"PING_(?:INLINE|BULK|MBULK)|SET|GET|INCR|[LR]PUSH|[LR]POP|SADD|HSET|SPOP|ZADD|ZPOPMIN|MSET \(\d{1,3} keys\)|XADD"
    r"|LPUSH \(needed .{1,40}\)|LRANGE_\d{1,6} \(first .{1,40}\)"
)
MILLISECOND = Fraction(1, 1000)
ROUNDING_S = 0.006  # of the time that is printed with two decimals


def starts(line: str) -> bool:
    """Whether a run begins with this line of a log: every test that is printed as text is one."""
    if line.endswith(" ======"):
        return TITLE.match(line) is not None
    if line.startswith('"'):
        return line == TABLE or ROW.match(line) is not None
    found = QUIET.match(line) if "requests per second" in line and RATE.match(line) is None else None
    name = found[1] if found else ""
    if not name.strip() or name.strip() == "throughput summary" or name.startswith(" "):  # of the text, indented
        return False
    return " " in name or BUILT_IN.fullmatch(name.upper()) is not None


def read(section: Section) -> Reading:
    """One run, in whichever of the three forms it was printed."""
    lines = section.lines
    reading = Reading("redis-benchmark", facts=command_facts(lines))
    titles = [(place, match[1]) for place, line in enumerate(lines) if (match := TITLE.search(line.text))]
    if titles:
        _tests(reading, lines, titles)
    elif any(line.text.startswith('"') for line in lines):
        _table(reading, lines)
    else:
        _quiet(reading, lines)
    if trouble := next((line for line in lines if TROUBLE.match(line.text)), None):
        reading.drop("the server refused what it was asked for, and refusals were counted", trouble.number)
        reading.refuse(trouble.number, trouble.text, "the server refused what it was asked for", 0)
    if not reading.values and not reading.refusals:
        reading.refuse(0, "all values of this run", "no test has a rate: interrupted", 0)
    return reading


def _tests(reading: Reading, lines: Sequence[Line], titles: Sequence[tuple[int, str]]) -> None:
    """The text: a block for each test."""
    ends = [place for place, _ in titles[1:]] + [len(lines)]
    for (place, name), end in zip(titles, ends, strict=True):
        if [other for _, other in titles].count(name) > 1:
            reading.refuse(lines[place].number, f"the test {name}", "it appears more than once", 0)
            continue
        _test(reading, name, lines[place:end])
    if len(titles) == 1:
        reading.params["test"] = titles[0][1]
    blanks = 1 if any(HEADER.match(line.text) for line in lines) else 2  # the older text has one after each test
    closed = [line.text for line in lines[-blanks:]] == [""] * blanks
    reading.ended = not reading.refusals and (closed or not BUILT_IN.fullmatch(titles[-1][1]))


def _test(reading: Reading, name: str, block: Sequence[Line]) -> None:
    """One test: its settings, the distribution of its latencies, and its rate, which has to fit the time it took."""
    counts = [(line, match) for line in block if (match := COUNTS.match(line.text))]
    rates = [(line, match) for line in block if (match := RATE.match(line.text))]
    if len(counts) != 1 or len(rates) != 1:
        reading.refuse(0, f"the test {name}", "the number of its requests or its rate is missing, or there twice")
        return
    requests, took_s, rate = int(counts[0][1][1]), float(counts[0][1][2]), float(rates[0][1][1])
    if rate == 0 or abs(requests / rate - took_s) > ROUNDING_S:
        why = f"{requests} requests in {took_s} s are not {rate} a second"
        reading.refuse(rates[0][0].number, REQUESTS_RATE.name, why)
        return
    for key, pattern in SETTINGS.items():
        if found := [match[1] for line in block if (match := pattern.match(line.text))]:
            reading.params[key] = int(found[0])
    reading.params["requests"] = requests
    said = [
        f"{key} {match[1].strip() or 'off'}"
        for key, pattern in PERSISTENCE.items()
        for line in block
        if (match := pattern.match(line.text))
    ]
    if said:
        reading.facts["persistence"] = ", ".join(said)
    reading.facts |= {"clients": reading.params.get("clients"), "client_threads": reading.params.get("threads", 1)}
    labels = {"test": name}
    reading.values.append(Value(REQUESTS_RATE, rate, rates[0][0].number, labels))
    _distribution(reading, name, requests, block)
    headers = [place for place, line in enumerate(block) if HEADER.match(line.text)]
    if headers:  # since 6.2 it ends when a server refuses what it is asked for
        reading.facts |= {"operations": requests, "failed_operations": 0}
        _summary(reading, labels, block[headers[0] + 1 :])


def _distribution(reading: Reading, name: str, requests: int, block: Sequence[Line]) -> None:
    """How latencies are distributed. Text of 6.2 and later has it twice: by share, and by steps of 0.1 ms."""
    found = [(line, match) for line in block if (match := SHARE.match(line.text))]
    if not found:
        return
    counted = [(line, match) for line, match in found if match[3]]
    if counted and int(counted[-1][1][3]) != requests:
        why = f"it ends with {counted[-1][1][3]} of {requests} requests"
        reading.refuse(counted[-1][0].number, f"latencies of {name}", why, 0)
        return
    _steps(reading, sorted({float(match[2]) for _, match in found}), [match for _, match in found])
    rows = sorted({(float(match[2]) / 1000, float(match[1]) / 100) for _, match in found})
    reading.series[f"latency_distribution {name}"] = TimeSeries(columns=("latency_s", "share"), rows=tuple(rows))


def _steps(reading: Reading, latencies: Sequence[float], shares: Sequence[re.Match[str]]) -> None:
    """How coarse the client's timer is, next to the latency that half of the requests took."""
    median = next((float(match[2]) for match in shares if float(match[1]) >= 50), 0.0)
    gaps = [round(after - before, 3) for before, after in pairwise(latencies) if after > before]
    if median and gaps:
        rounding = min(gaps) / 2 / median
        reading.facts["time_rounding"] = max(rounding, float(str(reading.facts.get("time_rounding", 0.0))))
        reading.facts["rounded"] = [metric.name for metric in LATENCIES]


def _summary(reading: Reading, labels: dict[str, str], rest: Sequence[Line]) -> None:
    """The line below the header: six latencies in ms."""
    match = LATENCY.match(rest[0].text) if rest else None
    if match is None:
        reading.refuse(rest[0].number if rest else 0, "latencies", "the line with them is missing or damaged", 6)
        return
    _latencies(reading, match.groups(), rest[0].number, labels)


def _latencies(reading: Reading, milliseconds: Sequence[str], line: int, labels: dict[str, str]) -> None:
    """Mean, smallest, quantiles and largest, in this order; those of 0.000 are below the client's timer: absent."""
    low, p50, p95, p99, high = (float(text) for text in milliseconds[1:])
    if not low <= p50 <= p95 <= p99 <= high:
        reading.refuse(line, "latencies", "quantiles are not in order", len(LATENCIES))
        return
    for metric, text in zip(LATENCIES, milliseconds, strict=True):
        if float(text) > 0:
            reading.values.append(Value(metric, in_base_units(float(text), MILLISECOND), line, labels))


def _table(reading: Reading, lines: Sequence[Line]) -> None:
    """`--csv`: a header and a row for each test; before 6.2 only rows of two columns."""
    quoted = [line for line in lines if line.text.startswith('"')]
    latencies = quoted[0].text == TABLE
    seen: set[str] = set()
    for line in quoted[latencies:]:
        cells = line.text.strip('"').split('","')
        whole = line.text == '"' + '","'.join(cells) + '"' and len(cells) == (len(COLUMNS) if latencies else 2)
        if not whole or not all(NUMBER.fullmatch(cell) for cell in cells[1:]) or cells[0] in seen:
            reading.refuse(line.number, line.text, "not a row of the table that redis-benchmark writes", len(cells) - 1)
            continue
        seen.add(cells[0])
        labels = {"test": cells[0]}
        reading.values.append(Value(REQUESTS_RATE, float(cells[1]), line.number, labels))
        if latencies:
            _latencies(reading, cells[2:], line.number, labels)
    reading.ended = bool(seen) and not reading.refusals
    if len(seen) == 1:
        reading.params["test"] = seen.pop()


def _quiet(reading: Reading, lines: Sequence[Line]) -> None:
    """`-q`: a line for each test."""
    found = [(line, match) for line in lines if (match := QUIET.search(line.text))]
    names = [match[1] for _, match in found]
    for line, match in found:
        labels = {"test": match[1]}
        if names.count(match[1]) > 1:
            reading.refuse(line.number, f"the test {match[1]}", "it appears more than once")
            continue
        reading.values.append(Value(REQUESTS_RATE, float(match[2]), line.number, labels))
        if match[3] and float(match[3]) > 0:
            p50 = in_base_units(float(match[3]), MILLISECOND)
            reading.values.append(Value(LATENCY_P50, p50, line.number, labels))
    if len(names) == 1:
        reading.params["test"] = names[0]
    closed = bool(lines) and lines[-1].text == ""
    reading.ended = bool(found) and not reading.refusals and (closed or not BUILT_IN.fullmatch(names[-1]))
