"""Every recorded output gives the numbers worked out by hand; every truncated one gives the same, or an error."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.recorded import DATA, case_id, cases, difference, expected, load, parse, series, values, with_text
from vtax.errors import ParseError
from vtax.tools import benchmarks

SMALL = 20_000  # characters up to which every cut is tried
SAMPLE = 300  # cuts inside the lines of a larger text, beside one at every line's end


def text_files() -> list[tuple[Path, str]]:
    return [(folder, name) for folder in cases() for name, text in load(folder).texts.items() if text]


def cuts(text: str) -> Iterator[int]:
    """Positions at which a tool may have been stopped: all of a small text, a seeded sample of a large one."""
    if len(text) <= SMALL:
        yield from range(len(text))
        return
    position = 0
    for line in text.splitlines(keepends=True):
        yield position
        position += len(line)
        yield position - 1
    yield from random.Random(len(text)).sample(range(len(text)), SAMPLE)


@pytest.mark.parametrize("folder", cases(), ids=case_id)
def test_a_recorded_output_gives_the_numbers_in_it(folder: Path) -> None:
    record = load(folder)
    measurements = parse(record)
    assert not difference(values(measurements), expected(folder))
    assert all(math.isfinite(item.value) for item in measurements)


@pytest.mark.parametrize("folder", cases(), ids=case_id)
def test_a_measurement_is_declared_and_says_where_it_stands(folder: Path) -> None:
    record = load(folder)
    benchmark = benchmarks()[record.benchmark]
    declared = {metric.name: metric for metric in benchmark.metrics}
    for item in parse(record):
        assert (item.unit, item.kind) == (declared[item.metric].unit, declared[item.metric].kind)
        headline = item.benchmark == "iozone" and item.labels["operation"] in ("write", "read")
        mixed = folder.name.endswith("-rndrw") and item.metric == "throughput_write"  # it follows from what is read
        main = declared[item.metric].primary and not mixed
        assert item.primary == (main or (headline and item.metric == "throughput"))
        assert item.source.removeprefix(f"trials/{record.id}/") in record.texts


@pytest.mark.parametrize(("folder", "name"), text_files(), ids=lambda v: case_id(v) if isinstance(v, Path) else v)
def test_a_truncated_output_gives_the_same_numbers_or_an_error(folder: Path, name: str) -> None:
    record = load(folder)
    whole = expected(folder)
    for end in cuts(record.texts[name]):
        try:
            got = values(parse(with_text(record, name, record.texts[name][:end])))
        except ParseError:
            continue
        assert not difference(got, whole), f"cut at {end}: {record.texts[name][:end][-60:]!r}"


REFUSED = (  # case, file, what stands there, what would stand there, the words of the error
    ("sysbench-cpu/1.0.20--trixie-node", "0-worker1.stdout", "sysbench 1.0.20", "sysbench 0.4.12", "0.4.12 prints"),
    ("sysbench-cpu/1.0.20--trixie-node", "0-worker1.stdout", "   1094\n", "   2094\n", "does not fit"),
    ("sysbench-cpu/1.0.20--trixie-node", "0-worker1.stdout", "   1094\n", "   0\n", "no event took place"),
    (
        "sysbench-fileio/1.0.20--bookworm-seqrd",
        "1-node1.stdout",
        "sequential read",
        "sequential",
        "an unknown test",
    ),
    ("sysbench-fileio/1.0.20--bookworm-seqrd", "1-node1.stdout", "Block size 4KiB", "Block size 8KiB", "do not agree"),
    ("sysbench-cpu/1.0.20--trixie-node", "0-worker1.stdout", "limit: 20000", "limit: 10000", "20000 was asked for"),
    ("sysbench-cpu/1.0.20--trixie-node", "0-worker1.stdout", "95th", "99th", "asked for is 99"),
    ("sysbench-fileio/1.0.20--trixie-rndrw", "1-worker1.stdout", "random r/w", "random read", "random r/w was asked"),
    ("stress-ng/0.19.02--trixie-all", "1-worker1.stdout", "hogs: 1 vm", "hogs: 2 vm", "1 vm was asked for"),
    ("stress-ng/0.19.02--trixie-all", "1-worker1.stdout", "stress-ng: debug:", "stress-ng: fail: ", "something failed"),
    ("stress-ng/0.19.02--trixie-all", "1-worker1.stdout", "failed: 0", "failed: 1", "failed: 1"),
    ("stress-ng/0.19.02--trixie-all", "1-worker1.stdout", "] successful", "] unsuccessful", "unsuccessful run"),
    ("stress-ng/0.19.02--trixie-all", "1-worker1.stdout", "bogo ops/s", "bogo ops/min", "a header of the table"),
    (
        "stress-ng/0.19.02--trixie-all",
        "1-worker1.stdout",
        "stress-ng: debug: ",
        "stress-ng: debug: [9] vm: assuming PID 10 killed by OOM killer, restarting again (instance 1)\n",
        "killed by OOM killer",
    ),
    (
        "iozone/3.507--trixie-range",
        "0-worker1.stdout",
        "Output is in kBytes/sec",
        "Output is in microseconds per operation",
        "which is not a rate",
    ),
    ("iozone/3.507--trixie-range", "0-worker1.stdout", "\tOutput is in kBytes/sec\n", "", "no line says in which unit"),
    ("iozone/3.489--bookworm-blank-columns", "0-node1.stdout", " -i 7", "", "which columns they are in"),
    ("iozone/3.489--bookworm-blank-columns", "0-node1.stdout", " -i 7", " -i7-", "not the number of a test"),
    ("iozone/3.489--bookworm-blank-columns", "0-node1.stdout", " -i 7", " -i 6", "which columns they are in"),
    ("iozone/3.507--trixie-range", "0-worker1.stdout", "Command line used", "Command", "with which options"),
    (
        "iozone/3.507--trixie-range",
        "0-worker1.stdout",
        "             128      64 ",
        "             256      64 ",
        "the plan",
    ),
    ("iozone/3.507--trixie-range", "0-worker1.stdout", "reclen    write", "reclen     read", "it has no table"),
    ("iperf3/3.18--trixie-tcp", "1-worker1.stdout", '"end":', '"error": "control socket has closed", "end":', "closed"),
    ("iperf3/3.18--trixie-tcp", "1-worker1.stdout", "{", "{}\n{", "not what iperf3 writes"),
    ("iperf3/3.18--trixie-tcp", "1-worker1.stdout", "\n}\n", "\n}\niperf Done.\n", "not one JSON document"),
    ("iperf3/3.18--trixie-tcp", "1-worker1.stdout", "sum_received", "sum", "no end.sum_received.bytes"),
    (
        "iperf3/3.18--trixie-tcp",
        "1-worker1.stdout",
        '"retransmits":',
        '"retransmits": NaN, "x":',
        "not a finite number",
    ),
    ("ping/iputils-20240905--trixie", "1-worker1.stdout", "20 received", "21 received", "21 answers to 20"),
)


@pytest.mark.parametrize(("case", "name", "old", "new", "words"), REFUSED)
def test_an_output_that_means_something_else_is_refused(case: str, name: str, old: str, new: str, words: str) -> None:
    record = load(DATA / case)
    text = record.texts[name]
    assert old in text
    with pytest.raises(ParseError, match=re.escape(words)):
        parse(with_text(record, name, text.replace(old, new)))


def test_two_runs_in_one_output_are_refused() -> None:
    """A tool that appends to its output must not hide one run behind the other; set-up steps are not read at all."""
    for folder in cases():
        record = load(folder)
        for name in {done.stdout for done in record.steps if not done.background}:
            twice = with_text(record, name, record.texts[name] * 2)
            try:
                got = values(parse(twice))
            except ParseError:
                continue
            assert not difference(got, expected(folder)), f"{case_id(folder)} {name}"


def test_the_series_of_iperf3_leaves_out_the_omitted_seconds() -> None:
    """Three intervals of a second with `-O 1 -t 2`; the first is TCP's slow start."""
    rows = series(load(DATA / "iperf3" / "3.18--trixie-tcp"), "throughput")
    assert [(round(start_s), round(end_s)) for start_s, end_s, _ in rows] == [(0, 1), (1, 2)]
    assert [rate for _, _, rate in rows] == pytest.approx([11550950070.35472, 12146753847.023935], rel=1e-12)


def test_the_series_of_iperf3_has_every_tenth_of_a_second() -> None:
    """`-O 1 -t 1 -i 0.1`: ten intervals are omitted and ten count, some of them a little shorter than a tenth."""
    rows = series(load(DATA / "iperf3" / "3.18--trixie-tcp-tenths"), "throughput")
    assert [round(end_s, 1) for _, end_s, _ in rows] == [round(n / 10, 1) for n in range(1, 11)]
    assert min(end_s - start_s for start_s, end_s, _ in rows) < 0.1
    assert rows[0][2] == 1517223947.6670029


def test_the_series_of_iperf3_leaves_out_a_last_interval_of_a_few_milliseconds() -> None:
    record = load(DATA / "iperf3" / "3.18--trixie-tcp")
    name = record.steps[-1].stdout
    document = json.loads(record.texts[name])
    last = {"start": 2.0, "end": 2.004, "seconds": 0.004, "bytes": 9e9, "bits_per_second": 1.8e13, "omitted": False}
    document["intervals"].append({"sum": last})
    assert series(with_text(record, name, json.dumps(document)), "throughput") == series(record, "throughput")


@pytest.mark.parametrize("folder", cases(), ids=case_id)
def test_recorded_data_name_no_file_that_is_missing_and_leave_none_over(folder: Path) -> None:
    named = {name for name, text in load(folder).texts.items() if text} | {"provenance.toml", "expected.json"}
    empty = {path.name for path in folder.iterdir() if path.stat().st_size == 0}
    assert {path.name for path in folder.iterdir()} - empty == named


def test_every_benchmark_has_recorded_outputs() -> None:
    """But for commands of a study's author, of which vtax knows no output."""
    of_tools = {name for name, one in benchmarks().items() if not getattr(one, "own_code", False)}
    assert of_tools == {folder.parent.name for folder in cases()}
