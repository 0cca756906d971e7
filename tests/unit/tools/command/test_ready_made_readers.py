"""Every recorded output of another program gives the numbers worked out by hand; a damaged one the same, or none."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.recorded import DATA, PROVENANCE, Value, difference, expected
from vtax.tools import tools
from vtax.tools.command.extract import Extracted, extract
from vtax.tools.command.metric_table import UNDECIDED, MetricTable
from vtax.tools.command.readers import READERS, reader_names, reader_of
from vtax.units import base_unit

FOLDERS = sorted(path.parent for path in (DATA / "readers").glob("*/*/provenance.toml"))
SMALL, SAMPLE = 700, 50
NUMBER = re.compile(r"(?<=[\s:\[,])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[\s,\]}]|\Z)")
WORDS = ("nan", "NaN", "inf", "-1.5", "1e999", "null")
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")


def tables(folder: Path) -> list[MetricTable]:
    facts = tomllib.loads((folder / "provenance.toml").read_text(encoding="utf-8"))
    assert all(str(facts[key]).strip() for key in PROVENANCE)
    assert facts["reader"] == folder.parent.name
    return [MetricTable.model_validate(one) for one in facts.get("metrics", [{"reader": facts["reader"]}])]


def text_of(folder: Path) -> str:
    return (folder / "output").read_bytes().decode("utf-8")


def read(folder: Path, text: str) -> Extracted:
    return extract(tables(folder), {"stdout": text}, "own")


def values(found: Extracted) -> list[Value]:
    rows = [Value(one.metric.name, one.value, one.metric.unit, dict(one.labels)) for one in found.values]
    return sorted(rows, key=lambda row: (row.metric, sorted(row.labels.items()), row.value))


def refused(found: Extracted) -> bool:
    return bool(found.refusals)


def quoted(text: str, at: int) -> bool:
    """Whether a position is inside a string of JSON, such as the name of a test."""
    return text[text.rfind("\n", 0, at) + 1 : at].count('"') % 2 == 1


def cuts(text: str) -> Iterator[int]:
    if len(text) <= SMALL:
        yield from range(len(text))
        return
    chosen = random.Random(len(text))
    ends = [place.start() for place in re.finditer("\n", text)]
    yield from chosen.sample(ends, min(len(ends), SAMPLE))
    yield from chosen.sample(range(len(text)), SAMPLE)
    yield from range(len(text) - 10, len(text))


@each
def test_an_output_gives_the_numbers_in_it(folder: Path) -> None:
    found = read(folder, text_of(folder))
    assert not found.refusals
    assert not difference(values(found), expected(folder))


@each
def test_values_are_declared_in_base_units_and_say_where_they_are(folder: Path) -> None:
    declared = {metric.name: metric for table in tables(folder) for metric in table.metrics}
    found = read(folder, text_of(folder)).values
    lines = text_of(folder).split("\n")
    for one in found:
        known = declared[one.metric.name]
        assert (one.metric.unit, one.metric.kind) == (known.unit, known.kind)
        assert base_unit(one.metric.unit)[1] == 1
        assert one.line <= len(lines)


@each
def test_a_cut_output_gives_the_same_numbers_or_a_refusal(folder: Path) -> None:
    text, whole = text_of(folder), expected(folder)
    for end in cuts(text):
        found = read(folder, text[:end])
        assert refused(found) or not difference(values(found), whole), f"cut at {end}: {text[:end][-60:]!r}"


@each
def test_a_number_that_cannot_be_is_refused_with_its_line_or_not_used(folder: Path) -> None:
    text, whole = text_of(folder), values(read(folder, text_of(folder)))
    places = [place for place in NUMBER.finditer(text) if not quoted(text, place.start())]
    for place in random.Random(len(text)).sample(places, min(len(places), 12)):
        line = text.count("\n", 0, place.start()) + 1
        for word in WORDS:
            found = read(folder, text[: place.start()] + word + text[place.end() :])
            if refused(found):
                assert {one.line for _, one in found.refusals} <= {line, 0} or found.values == [], (place, word)
            else:
                assert values(found) == whole, (place, word)


@each
def test_a_changed_digit_is_a_changed_number_or_a_refusal(folder: Path) -> None:
    """The digits of the numbers that are reported, on the lines that the reader says that they are on."""
    text, found = text_of(folder), read(folder, text_of(folder))
    if folder.name.endswith("-text"):  # for people: lines with several numbers, of which one is reported
        return
    whole, lines = values(found), {one.line for one in found.values} - {0}
    tried = 0
    for place in NUMBER.finditer(text):
        if text.count("\n", 0, place.start()) + 1 not in lines or quoted(text, place.start()):
            continue
        for at in [place.start() + at for at, digit in enumerate(place[0]) if digit.isdigit()][:8:3]:
            changed = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
            again = read(folder, changed)
            tried += 1
            assert refused(again) or values(again) != whole, (text[place.start() - 30 : place.end()], at)
    assert tried >= bool(lines)


@each
def test_two_outputs_in_one_are_refused(folder: Path) -> None:
    assert refused(read(folder, text_of(folder) * 2))


@each
def test_another_output_is_refused(folder: Path) -> None:
    for other in FOLDERS:
        if other.parent != folder.parent:
            assert refused(read(folder, text_of(other))), other
    for text in ("", "\n", "{}", "[]", "{}\n", '{"results": []}', "x\n", "\x00\xff\n", "{" * 50_000):
        assert refused(read(folder, text)), text[:20]


def test_every_reader_has_recorded_outputs() -> None:
    of_workloads = {tool.name for tool in tools() if tool.workloads}
    assert {folder.parent.name for folder in FOLDERS} == {*READERS, *of_workloads}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_recorded_data_are_complete(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"output", "provenance.toml", "expected.json"}


# --- what an output must not mean -----------------------------------------------------------------------------------

CHANGES: tuple[tuple[str, str, str, str], ...] = (
    ("hyperfine/1.15.0--bookworm-one", '"exit_codes": [\n        0', '"exit_codes": [\n        1', "a run failed"),
    ("hyperfine/1.15.0--bookworm-one", '"exit_codes": [\n        0', '"exit_codes": [\n        null', "a run failed"),
    ("hyperfine/1.15.0--bookworm-one", '"mean": 0.004', '"mean": 0.005', "the mean of its 5 times is"),
    ("hyperfine/1.15.0--bookworm-one", "0.004323325", "0.004423325", "the mean of its 5 times is"),
    ("hyperfine/1.15.0--bookworm-two", "sleep 0.02", "sha256sum /usr/bin/gcc", "2 results are called 'sha256sum"),
    ("pyperf/2.10.0--timeit", '"version":"1.0"', '"version":"2.0"', "only 1.0 is known"),
    ("pyperf/2.10.0--timeit", '"unit":"second"', '"unit":"integer"', "neither a time nor bytes"),
    ("pyperf/2.10.0--timeit", '"values":', '"value":', "no run of $.benchmarks[0] has values"),
    ("fio/3.39--trixie", "fio-3.39", "fio-4.21", "only fio-2 and fio-3 are known"),
    ("fio/3.39--trixie", "fio-3.39", "fio-2.21", "bytes and time give"),
    ("fio/3.39--trixie", '"error" : 0', '"error" : 28', "is 28: the job failed"),
    ("fio/3.39--trixie", '"bw_bytes" : 56214633', '"bw_bytes" : 66214633', "bytes and time give"),
    ("fio/3.39--trixie", '"iops" : 6862', '"iops" : 7862', "operations and time give"),
    ("fio/3.39--trixie", '"99.000000" : 839680', '"99.000000" : 9680', "less than a smaller percentile"),
    ("fio/3.33--bookworm-text", "err= 0", "err= 5", "err= 5: the job failed"),
    ("fio/3.33--bookworm-text", "IOPS=22.2k", "IOPS=32.2k", "operations and time give 22176.3/s, not 32200"),
    ("fio/3.33--bookworm-text", "BW=86.6MiB/s", "BW=96.6MiB/s", "amount and time give"),
    ("fio/3.33--bookworm-text", "avg=145.46", "avg=7145.46", "not between the shortest and the longest time"),
    ("fio/3.39--trixie-text", "Run status group", "Run stat", "the last line is missing"),
    ("kernel-paths/1--trixie-container", '"kernel-paths": 1', '"kernel-paths": 2', "form 2, and only 1 is known"),
    ("kernel-paths/1--trixie-container", '"clock_step_ns": 1', '"clock_step_ns": 4000001', "too short for a clock"),
    ("kernel-paths/1--trixie-container", '"batches": 64', '"batches": 4', "fewer than 5 batches"),
    ("kernel-paths/1--trixie-container", '"getpid": {', '"getppid": {', "getppid is not a path"),
    ("kernel-paths/1--trixie-container", '"least_ns": 95', '"least_ns": 995', "median is not between"),
    ("kernel-paths/1--trixie-wakeups", '"sleeps": 2948', '"sleeps": 294', "fewer than 1000 sleeps"),
    ("mpi-messages/1--trixie-host", '"mpi-messages": 1', '"mpi-messages": 2', "form 2, and only 1 is known"),
    ("mpi-messages/1--trixie-host", '"bytes": 8,', '"bytes": 9,', "not 8 bytes"),
    ("mpi-messages/1--trixie-host", '"round_trips": 3552', '"round_trips": 14', "fewer than 100 round trips"),
    ("mpi-messages/1--trixie-host", '"p99_ns": 5030468.0', '"p99_ns": 9.5', "less than a smaller quantile"),
    ("mpi-messages/1--trixie-host", '"least_byte_s": 97651669', '"least_byte_s": 997651669', "median is not between"),
    ("mpi-messages/1--trixie-host", '"windows": 9', '"windows": 4', "fewer than 5 windows"),
    ("mpi-messages/1--trixie-host", '"clock_step_ns": 18', '"clock_step_ns": 180000', "a batch of 67406541 ns is"),
    ("sockperf/3.7--trixie-text", "Summary: Latency", "Summary: Round trip", "these are whole round trips"),
    (
        "sockperf/3.7--trixie-text",
        "percentile 99.000 =   25.638",
        "percentile 99.000 =    2.638",
        "less than a smaller",
    ),
    ("netperf/2.7.0-git--trixie-columns-text", ",13.51,", ",93.51,", "the mean does not fit the rate"),
    ("netperf/2.7.0-git--trixie-columns-text", "73711.16,", "83711.16,", "the rates are 73711.2 and 83711.2"),
    ("sevenzip/25.01--trixie-text", "4764   2973", "4764   3973", "3973 is not the mean of 2559 and 3387"),
    ("openssl-speed/3.5.9--trixie-text", "+H:16384", "+H:16:16384", "1 rates for 2 sizes"),
    ("hackbench/2.6--trixie-text", "Time: 0.266", "Time: 0.26", "lines are missing"),
    ("google-benchmark/1.9.1--trixie", '"time_unit": "us"', '"time_unit": "min"', "is 'min', not one of ns, us, ms, s"),
    ("google-benchmark/1.9.1--trixie", '"threads": 1', '"error_occurred": true, "error_message": "<b>"', "failed: <b>"),
    ("google-benchmark/1.9.1--trixie", "BM_sum/4096", "BM_sum/64", "2 rows of BM_sum/64, and"),
    ("pytest-benchmark/4.0.0--one-test", '"rounds": 12', '"rounds": 13', "total and rounds give"),
    ("pytest-benchmark/4.0.0--one-test", '"ops": 2', '"ops": 3', "one over the mean is"),
    ("bmf/specification", '"value": 88.0', '"value": 89.0', "not between its lower and its upper value"),
    ("bmf/specification", '"value": 88.0,', "", 'has "lower_value", "upper_value"'),
    ("bmf/specification", '"latency"', '"latenz"', "has latency or throughput|"),
    ("bmf/specification-own-measure", "build-time", "build", "no benchmark has build-time; there is build"),
    ("openmetrics/0.26.0--openmetrics", "# EOF\n", "", "no '# EOF' shows that these are all"),
    ("openmetrics/0.26.0--openmetrics", "job_duration_seconds 12", "job_duration_seconds NaN #", "no number behind"),
    ("openmetrics/0.26.0--openmetrics", " 12.375\n", " NaN\n", "duration_seconds is 'NaN'"),
    ("openmetrics/0.26.0--openmetrics", " 12.375\n", " +Inf\n", "is '+Inf'"),
    ("openmetrics/0.26.0--openmetrics", 'code="500",path="/<i>"} 3', 'code="200",path="/a\\"b\\\\c"} 3', "twice"),
    (
        "openmetrics/0.26.0--openmetrics",
        "UNIT job_duration_seconds seconds",
        "UNIT job_duration_seconds bytes",
        "unit =",
    ),
    ("openmetrics/0.26.0--openmetrics", 'code="500"', 'code=500"', "cannot read its labels"),
    ("openmetrics/0.26.0--openmetrics", "tokens_per_second 1500.0", "!tokens 1", "not a sample"),
    (
        "openmetrics/0.26.0--prometheus",
        "tokens_per_second 1500.0\n",
        'tokens_per_second 1\ntokens_per_second{a="b"} 2\n',
        "2 sam",
    ),
    ("openmetrics/0.26.0--prometheus", "tokens_per_second 1500.0\n", "", "there is no sample tokens_per_second"),
)


@pytest.mark.parametrize(("case", "old", "new", "words"), CHANGES)
def test_an_output_that_means_something_else_is_refused(case: str, old: str, new: str, words: str) -> None:
    folder = DATA / "readers" / case
    text = text_of(folder)
    assert old in text
    found = read(folder, text.replace(old, new) if case.startswith(("google", "pyperf")) else text.replace(old, new, 1))
    if words.endswith("|"):  # one of two benchmarks has it no longer
        assert len(values(found)) < len(expected(folder))
        return
    assert any(words in one.reason for _, one in found.refusals), found.refusals


NO_OUTPUTS: tuple[str, ...] = (
    "",
    "\n",
    "{}",
    "[]",
    "null",
    '{"a": 1',
    "[" * 1000,
    '{"results": [{}]}',
    '{"jobs": [[]]}',
    "<script>\n",
)
NO_OUTPUTS += (
    "\0" * 100,
    "é漢字\n",
    "1e999\n",
    "x" * 100_000 + "\n",
    "\n" * 10_000,
    "# EOF\n",
    'a{b="<b>"} 1\n',
    "a{ 1\n",
)


@pytest.mark.parametrize("name", reader_names())
def test_what_is_no_output_of_a_tool_has_a_reason_and_no_number(name: str) -> None:
    """Also for readers of logs, which are otherwise only asked about what begins like their tool's output."""
    reader = reader_of(name)
    assert reader is not None
    keys: dict[str, object] = {
        "reader": name,
        "primary": [one.name for one in reader.metrics if one.kind not in UNDECIDED][:1],
    }
    if not reader.metrics:
        keys = {"reader": name, "name": "b", "unit": "s", "kind": "cost", "primary": True}
    table = MetricTable.model_validate_json(json.dumps(keys))
    for text in NO_OUTPUTS:
        found = extract([table], {"stdout": text}, "own")
        assert found.values == [], text[:40]
        assert found.refusals, text[:40]


def test_names_with_markup_are_labels_and_nothing_else() -> None:
    found = read(DATA / "readers" / "bmf" / "specification", text_of(DATA / "readers" / "bmf" / "specification"))
    assert {"benchmark": "<b>write</b>"} in [dict(one.labels) for one in found.values]
    assert all("<" not in one.metric.name + one.metric.unit for one in found.values)


def test_a_primary_metric_that_the_output_lacks_is_refused() -> None:
    folder = DATA / "readers" / "fio" / "3.33--bookworm-numjobs"
    table = MetricTable(reader="fio", primary=["read_iops"])
    ((_, one),) = extract([table], {"stdout": text_of(folder)}, "own").refusals
    assert (one.what, one.reason.startswith("it is primary, and the output has only write_bandwidth")) == (
        "read_iops",
        True,
    )


def test_a_result_without_a_number_for_every_repetition_is_refused() -> None:
    folder = DATA / "readers" / "google-benchmark" / "1.7.1--bookworm-repetitions"
    document = json.loads(text_of(folder))
    del document["benchmarks"][0]["items_per_second"]
    ((_, one),) = read(folder, json.dumps(document)).refusals
    assert one.reason == "only 2 of 3 repetitions have items_per_second"


# --- the readers of vtax's own tools ---------------------------------------------------------------------------------

LOGS: Mapping[str, tuple[str, str]] = {  # reader -> an output that vtax itself got from the tool
    "ping": ("ping/iputils-20240905--trixie", "1-worker1.stdout"),
    "iperf3 json": ("iperf3/3.18--trixie-tcp", "1-worker1.stdout"),
    "sysbench": ("sysbench-cpu/1.0.20--trixie-node", "0-worker1.stdout"),
    "stress-ng": ("stress-ng/0.19.02--trixie-all", "1-worker1.stdout"),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_reader_of_a_tool_reads_what_the_tool_printed_for_a_command(name: str) -> None:
    case, file = LOGS[name]
    text = (DATA / case / file).read_bytes().decode()
    found = extract([MetricTable(reader=name)], {"stdout": text}, "own")
    assert not found.refusals
    rows: list[dict[str, Any]] = json.loads((DATA / case / "expected.json").read_text())
    wanted = {(row["metric"], row["value"], row["unit"]) for row in rows}
    assert {(one.metric.name, one.value, one.metric.unit) for one in found.values} <= wanted
    assert found.values


@pytest.mark.parametrize("name", LOGS)
def test_a_cut_output_of_a_tool_is_refused(name: str) -> None:
    case, file = LOGS[name]
    text = (DATA / case / file).read_bytes().decode()
    whole = extract([MetricTable(reader=name)], {"stdout": text}, "own").values
    for end in range(0, len(text), max(1, len(text) // 100)):
        found = extract([MetricTable(reader=name)], {"stdout": text[:end]}, "own")
        assert found.refusals or found.values == whole


def test_times_of_the_processor_that_are_0_are_values_of_hyperfine() -> None:
    """Left out, the mean of the others would be too large."""
    text = json.dumps(
        {
            "results": [
                {
                    "command": "true",
                    **{"mean": 0.5, "median": 0.5, "min": 0.5, "max": 0.5, "user": 0.25, "system": 0.0},
                    **{"times": [0.5, 0.5], "exit_codes": [0, 0]},
                }
            ]
        },
        indent=1,
    )
    table = MetricTable(reader="hyperfine", primary=["time_median"])
    found = {one.metric.name: one.value for one in extract([table], {"stdout": text}, "own").values}
    assert (found["time_user"], found["time_system"]) == (0.25, 0.0)
