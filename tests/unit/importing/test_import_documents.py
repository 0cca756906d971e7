"""JSON in logs: one object, one a line, several in a list or behind one another, cut ones, and what resembles it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.logs import LOGS, SYSBENCH, imported, readings, text_of
from builders.recorded import DATA
from vtax import pipeline
from vtax.store import Campaign
from vtax.tools.reading import Reading

DOCUMENT = text_of(LOGS["iperf3 json"])
VALUE = json.loads(DOCUMENT)
COMPACT = json.dumps(VALUE)
RATE = VALUE["end"]["sum_received"]["bits_per_second"]


def rates(text: str) -> list[float]:
    return [value.value for reading in readings(text) for value in reading.values if value.metric.name == "throughput"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (DOCUMENT, 1),
        (DOCUMENT * 3, 3),
        (COMPACT + "\n" + COMPACT + "\n", 2),
        (COMPACT + COMPACT, 2),
        (json.dumps([VALUE, VALUE]), 2),
        (json.dumps([VALUE, VALUE], indent=2), 2),
        (json.dumps([VALUE, VALUE], indent="\t"), 2),
        (json.dumps({"note": "another program's"}, indent=2) + "\n" + DOCUMENT, 1),
        (COMPACT[:1000] + "\n" + COMPACT + "\n", 1),
        ("int main()\n{\n  return 0;\n}\n" + DOCUMENT, 1),
        ("a title\n" + DOCUMENT + "done\n" + DOCUMENT, 2),
    ],
)
def test_every_document_is_a_run(text: str, count: int) -> None:
    assert rates(text) == [RATE] * count


def test_objects_on_one_line_are_imported(tmp_path: Path) -> None:
    """They begin on the same line of the same file, and are two trials."""
    folder = DATA / "readers" / "hyperfine" / "1.19.0--trixie"
    value = json.loads((folder / "output").read_text())
    report = imported(tmp_path, {"a.json": json.dumps([value, value]), "b.json": json.dumps(value) * 3})
    assert [(run.section[1], run.count) for run in report.runs] == [(1, 5)] * 5
    trials = Campaign.open(tmp_path / "campaign").trials()
    assert len({trial.id for trial in trials}) == 5
    found, _ = pipeline.measurements(tmp_path / "campaign")
    assert len(found) == 5 * 5


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_runs_inside_of_another_programs_object(tmp_path: Path, indent: int | str | None) -> None:
    """A list of them, or several by name: names that differ tell the runs apart, as prefixes of lines do."""
    hyperfine = json.loads((DATA / "readers/hyperfine/1.19.0--trixie/output").read_text())
    slower = {**VALUE, "title": "second"}
    report = imported(
        tmp_path,
        {
            "listed.json": json.dumps({"results": [VALUE, slower], "note": "of another program"}, indent=indent),
            "named.json": json.dumps({"suite": {"vm1": {"net": VALUE}, "vm2": {"net": slower}}}, indent=indent),
            "mixed.json": json.dumps({"cpu": [hyperfine], "net": VALUE}, indent=indent),
            "single.json": json.dumps({"output": VALUE}, indent=indent),
        },
    )
    assert {
        file.file: [(run.reading.benchmark, run.source, run.count > 0) for run in file.runs] for file in report.files
    } == {
        "listed.json": [("iperf3", "", True)] * 2,
        "mixed.json": [("hyperfine", "cpu", True), ("iperf3", "net", True)],
        "named.json": [("iperf3", "suite.vm1.net", True), ("iperf3", "suite.vm2.net", True)],
        "single.json": [("iperf3", "", True)],
    }
    before, _ = pipeline.measurements(tmp_path / "campaign")
    for file in report.files:
        if indent is not None:
            lines = (tmp_path / "logs" / file.file).read_text().count("\n") + 1
            assert file.account.lines == lines
    assert len(before) == report.taken
    assert {m.value for m in before if m.metric == "throughput"} == {RATE}


def test_what_only_resembles_runs_inside_of_an_object_is_none(tmp_path: Path) -> None:
    deep: object = VALUE
    for _ in range(200):
        deep = [deep]
    other = {"start": "test_start", "results": [{"command": "make"}, {"exit_codes": []}]}
    for text in (json.dumps({"deep": deep}), json.dumps({"x": other}), json.dumps({"a": VALUE})[:-40]):
        (reading,) = readings(text)
        assert reading.values == []
        assert reading.refusals


def test_a_document_that_was_cut_is_reported_and_the_next_one_is_read() -> None:
    lines = DOCUMENT.split("\n")
    found = readings("\n".join(lines[: len(lines) // 2]) + "\n" + DOCUMENT)
    assert [len(reading.refusals) for reading in found] == [1, 0]
    assert "not one JSON document" in found[0].refusals[0].reason
    assert rates("\n".join(lines[: len(lines) // 2]) + "\n" + DOCUMENT) == [RATE]


def test_a_line_longer_than_others_may_be(tmp_path: Path) -> None:
    long = {**VALUE, "intervals": VALUE["intervals"] * 400}
    assert len(json.dumps(long)) > 100_000
    report = imported(tmp_path, {"a.ndjson": (json.dumps(long) + "\n").encode()})
    assert report.files[0].damaged_lines == []
    assert report.runs[0].count > 0


def test_the_document_of_another_program_is_no_run_of_iperf3(tmp_path: Path) -> None:
    other = json.dumps({"results": [1, 2], "unit": "MB/s"}, indent=1)
    report = imported(tmp_path, {"other.json": other, "code.c": "void f()\n{\n  g();\n}\n", "good.txt": SYSBENCH})
    assert {file.file: len(file.runs) for file in report.files} == {"other.json": 0, "code.c": 0, "good.txt": 1}


def test_what_iperf3_says_instead_of_a_result_is_the_reason(tmp_path: Path) -> None:
    failed = {"start": {"connected": [], "version": "iperf 3.18"}, "intervals": [], "end": {}, "error": "refused"}
    text = "iperf3: error - unable to connect to server: Connection refused\n"
    report = imported(tmp_path, {"a.json": json.dumps(failed, indent=1), "b.txt": text, "good.txt": SYSBENCH})
    reasons = {run.file: run.reading.refusals[0].reason for run in report.runs if run.reading.refusals}
    assert reasons["b.txt"] == "iperf3: error - unable to connect to server: Connection refused"
    assert "refused" in reasons["a.json"]


def stream() -> str:
    """What --json-stream writes, in the form of iperf3's source: the same objects, an event a line."""
    events = [{"event": "start", "data": VALUE["start"]}]
    events += [{"event": "interval", "data": interval} for interval in VALUE["intervals"]]
    events.append({"event": "end", "data": VALUE["end"]})
    return "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)


def of_stream(text: str) -> Reading:
    (reading,) = readings(text)
    return reading


def test_a_json_stream_has_the_values_of_the_document() -> None:
    (document,) = readings(DOCUMENT)
    events = of_stream(stream())
    assert [(v.metric.name, v.value, v.labels) for v in events.values] == [
        (v.metric.name, v.value, v.labels) for v in document.values
    ]
    last = stream().count("\n")
    assert events.values[0].line == last


def test_a_json_stream_without_an_end_is_refused() -> None:
    reading = of_stream("\n".join(stream().split("\n")[:-2]))
    assert reading.values == []
    assert reading.refusals


def test_two_json_streams_are_two_runs() -> None:
    assert rates(stream() * 2) == [RATE] * 2


@pytest.mark.parametrize("reader", ["hyperfine", "pyperf", "google-benchmark"])
def test_documents_of_other_programs(reader: str, tmp_path: Path) -> None:
    folders = sorted(path for path in (DATA / "readers" / reader).iterdir())
    assert len(folders) >= 2
    files: dict[str, str | bytes] = {f"{path.name}.json": (path / "output").read_bytes() for path in folders}
    report = imported(tmp_path, files)
    assert all(file.taken or "the same bytes" in file.reason for file in report.files)
    assert {run.reading.benchmark for run in report.runs} == {reader}


def test_lines_that_end_with_carriage_returns_alone(tmp_path: Path) -> None:
    """As old spreadsheets save text."""
    report = imported(tmp_path, {"a.txt": SYSBENCH.replace("\n", "\r"), "b.txt": SYSBENCH})
    assert [file.taken for file in report.files] == [6, 6]
    assert report.files[0].account.lines == report.files[1].account.lines
