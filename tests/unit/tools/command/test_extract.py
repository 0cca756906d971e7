"""From an output to numbers: exactly the one that is meant, or a refusal that says why with its line."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vtax.model.metric import Kind
from vtax.tools.command import extract as extraction
from vtax.tools.command import numbers
from vtax.tools.command.extract import Extracted, extract
from vtax.tools.command.metric_table import MetricTable
from vtax.tools.reading import Refusal

TPS: dict[str, Any] = {"name": "tps", "unit": "1/s", "kind": "rate, fixed time", "regex": "tps = ([0-9.]+) "}
LATENCY: dict[str, Any] = {"name": "latency", "unit": "ms", "kind": "cost"}
PGBENCH = """\
pgbench (15.8)
scaling factor: 50
latency average = 0.489 ms
initial connection time = 3.120 ms
tps = 2044.871733 (without initial connection time)
"""
USAGE = {
    "wall_s": 1.25,
    "user_s": 0.5,
    "system_s": 0.25,
    "max_rss_bytes": 4096000,
    "minor_faults": 100,
    "major_faults": 2,
    "voluntary_switches": 7,
    "involuntary_switches": 3,
    "status": 0,
}


def read(text: str, *tables: dict[str, Any], **texts: str) -> Extracted:
    known = [MetricTable.model_validate_json(json.dumps(one)) for one in tables]
    return extract(known, {"stdout": text, **texts}, "pgbench")


def value(text: str, **keys: Any) -> float:
    found = read(text, keys)
    assert found.refusals == []
    (one,) = found.values
    return one.value


def refusal(text: str, **keys: Any) -> Refusal:
    found = read(text, keys)
    assert found.values == []
    ((source, one),) = found.refusals
    assert source == keys.get("from", "stdout")
    return one


# --- regular expressions -------------------------------------------------------------------------------------------


def test_a_pattern_finds_its_number_and_the_line() -> None:
    found = read(PGBENCH, TPS, {**LATENCY, "regex": "latency average = ([0-9.]+) ms"})
    assert [(v.metric.name, v.value, v.metric.unit, v.line) for v in found.values] == [
        ("tps", 2044.871733, "1/s", 5),
        ("latency", 0.000489, "s", 3),
    ]
    assert found.refusals == []


def test_a_pattern_that_matches_nothing_shows_the_line_that_is_most_like_it() -> None:
    told = refusal(PGBENCH.replace("2044.871733", "nan"), **TPS)
    assert (told.line, told.what) == (5, "tps")
    assert "matches nothing; most like it is line 5: 'tps = nan (without" in told.reason


def test_a_pattern_that_matches_nothing_and_is_like_nothing() -> None:
    said = "tps = ([0-9.]+)  matches nothing; the last line is 'hello'"
    assert refusal("one\nhello\n\n", **TPS) == Refusal(0, "tps", said)
    assert refusal("\n", **TPS).reason.endswith("matches nothing: it is blank")
    assert refusal("", **TPS).reason.endswith("there is no output")


def test_a_pattern_that_matches_twice_names_both_lines() -> None:
    told = refusal("tps = 1 a\nx\ntps = 2 a\n", **TPS)
    assert told.line == 1
    assert 'matches twice, on lines 1 and 3; make the pattern say which, or use count = "all"' in told.reason
    many = refusal("tps = 1 a\n" * 9, **TPS).reason
    assert "matches 9 times, on lines 1, 2, 3, 4, 5 and more;" in many


@pytest.mark.parametrize(
    ("aggregate", "result"), [("median", 3.0), ("mean", 4.0), ("sum", 12.0), ("min", 1.0), ("max", 8.0)]
)
def test_several_numbers_are_combined_where_the_study_says_so(aggregate: str, result: float) -> None:
    assert value("tps = 1 a\ntps = 8 a\ntps = 3 a\n", **TPS, count="all", aggregate=aggregate) == result


def test_too_many_numbers_are_refused() -> None:
    text = "tps = 1 a\n" * (numbers.MOST_NUMBERS + 1)
    assert "more than 10,000 numbers" in refusal(text, **TPS, count="all", aggregate="sum").reason
    assert "matches more than 10,000 times" in refusal(text, **TPS).reason


def test_too_much_output_is_refused() -> None:
    told = refusal("x" * (extraction.LARGEST_TEXT + 1), **TPS)
    assert told.reason == "stdout has 16,777,217 characters; metrics are read from 16,777,216 at most"


def test_a_search_that_starts_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each match looks through all the rest for an exclamation mark: quadratic, with any engine."""
    monkeypatch.setattr(numbers, "SEARCH_S", 0.2)
    began = time.process_time()
    told = refusal("1 " * 500_000, **{**TPS, "regex": "(?s)(1)(?:.*!)?"}, count="all", aggregate="sum")
    assert "each match searches all the rest again" in told.reason
    assert time.process_time() - began < 5


def test_a_large_pattern_is_not_tried_on_a_large_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_WORK", 5000)
    assert "too large a pattern for 1,000 bytes" in refusal("x" * 1000, **TPS).reason


ANY = {**TPS, "regex": "n = (.*?)(?:$|;)"}


@pytest.mark.parametrize(
    "word", ["nan", "inf", "-inf", "Infinity", "-5", "1,5", "1e999", "0x10", "", "1 000", "1.2.3", "٣", "1_0", "+1"]
)
def test_what_is_not_a_number_is_refused(word: str) -> None:
    assert "not a finite number of zero or more" in refusal(f"n = {word}\n", **ANY).reason


def test_a_rate_of_zero_is_refused_and_a_count_is_not() -> None:
    assert refusal("tps = 0 a\n", **TPS).reason == "it is 0, and a rate, fixed time is above zero"
    assert value("tps = 0 a\n", **{**TPS, "kind": "count"}) == 0.0


@pytest.mark.parametrize(
    ("regex", "text", "words"),
    [
        ("tps.*([0-9]+)", "tps = 123\n", "finds 3, only a part of '123'"),  # .* takes all it can
        ("tps = ([0-9]+)", "tps = 12.5\n", "finds 12, only a part of '12.5'"),
        ("tps = ([0-9.]+)", "tps = 1.5e3\n", "finds 1.5, only a part of '"),
        ("tps = ([0-9]+)", "tps = 1,234\n", "finds 1, only a part of '"),
        (r"tps = 0*\.([0-9]+)", "tps = 0.5\n", "finds 5, only a part of '"),
        (r"tps = \.?([0-9]+)", "tps = .5\n", "finds 5, only a part of '"),
        ("tps = -?([0-9]+)", "tps = -5\n", "finds 5 behind a minus sign"),
        ("tps = .*?([0-9]+)", "tps = \u22125\n", "finds 5 behind a minus sign"),
        ("tps = ([0-9.]+)", "tps = 12.3k\n", "finds 12.3 in front of 'k': put the unit into the pattern"),
        ("took ([0-9.]+)", "took 12.3ms\n", "in front of 'ms': put the unit into the pattern"),
        ("took ([0-9.]+)", "took 12.3µs\n", "in front of 'µs': put the unit into the pattern"),
        ("tps = ([0-9.]+)", "tps = 12.5", "the last that was printed, so more of it may be missing"),
        ("tps = ([0-9]+)$", "tps = 12", "the last that was printed"),
    ],
)
def test_a_part_of_a_number_is_not_a_number(regex: str, text: str, words: str) -> None:
    assert words in refusal(text, **{**TPS, "regex": regex}).reason


@pytest.mark.parametrize(
    ("regex", "text", "number"),
    [
        ("took ([0-9.]+)ms", "took 12.5ms\n", 12.5),
        ("^[0-9]+,([0-9]+),", "12,345,678\n", 345.0),
        ("day 2026-11-([0-9]+)", "day 2026-11-22\n", 22.0),
        ("p99=([0-9.]+)", "p99=1.5e-3\n".replace("e-3", ""), 1.5),
        ("x ([0-9.e+-]+) ", "x 1.5e-3 s\n", 0.0015),
        ("a ([0-9]+)", "a 7\r\n", 7.0),
    ],
)
def test_a_whole_number_is_taken(regex: str, text: str, number: float) -> None:
    assert value(text, **{**TPS, "regex": regex}) == number


def test_a_group_that_takes_no_part_is_refused() -> None:
    assert "takes no part" in refusal("b\n", **{**TPS, "regex": "(a)|b"}).reason


def test_control_characters_and_html_are_shown_not_obeyed() -> None:
    told = refusal("tps = \x1b[31m<script>\u202e9 \n", **TPS)
    assert "\x1b" not in told.reason
    assert "\u202e" not in told.reason
    assert "\\x1b[31m<script>" in told.reason


@given(st.text(max_size=200), st.integers(0, 300))
def test_any_output_gives_a_number_or_a_refusal(noise: str, at: int) -> None:
    text = PGBENCH[:at] + noise + PGBENCH[at:]
    for keys in (TPS, {**LATENCY, "json": "$.a[0].b"}, {**LATENCY, "csv": {"column": "x"}}):
        found = read(text, keys)
        assert len(found.values) + len(found.refusals) == 1


@pytest.mark.parametrize("end", range(len(PGBENCH)))
def test_a_cut_output_gives_the_same_number_or_a_refusal(end: int) -> None:
    for keys, whole in ((TPS, 2044.871733), ({**TPS, "regex": "tps = ([0-9.]+)"}, 2044.871733)):
        found = read(PGBENCH[:end], keys)
        assert [one.value for one in found.values] in ([], [whole])


# --- JSON ----------------------------------------------------------------------------------------------------------

DOCUMENT = """
{"name": "run",
 "results": [
  {"mean": 1.5, "p 99": "2.5", "times": [1, 2, 6]},
  {"mean": NaN, "bad": -1, "huge": 1e999, "none": null, "yes": true, "text": "fast", "*": 4}
 ]}
"""


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("$.results[0].mean", 1.5),
        ('$.results[0]["p 99"]', 2.5),
        ("$['results'][0]['mean']", 1.5),
        ("$.results[1]['*']", 4.0),
    ],
)
def test_a_path_finds_its_number(path: str, number: float) -> None:
    assert value(DOCUMENT, **{**TPS, "unit": "1/s"} | {"json": path, "regex": None}) == number


def test_a_path_finds_several_numbers() -> None:
    keys = {**LATENCY, "json": "$.results[0].times[*]", "count": "all", "aggregate": "median"}
    assert value(DOCUMENT, **keys) == 0.002
    (one,) = read(DOCUMENT, {**LATENCY, "json": "$.results[0].times[2]"}).values
    assert one.line == 4


def test_a_list_may_be_the_whole_document() -> None:
    assert value("[{}, 7]", **LATENCY, json="$[1]") == 0.007


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [
        ("$.results[1].mean", 5, "$.results[1].mean is NaN, not a finite number of zero or more"),
        ("$.results[1].bad", 5, "is -1, not"),
        ("$.results[1].huge", 5, "is Infinity, not"),
        ("$.results[1].none", 5, "is null, not"),
        ("$.results[1].yes", 5, "is true, not"),
        ("$.results[1].text", 5, 'is "fast", not'),
        ("$.results[0]", 4, "is an object, not"),
        ("$.results[2].mean", 3, "there is no $.results[2]: $.results is a list of 2"),
        ("$.results[0].median", 4, 'there is no $.results[0].median: $.results[0] has "mean", "p 99", "times"'),
        ("$.name.x", 2, 'there is no $.name.x: $.name is "run"'),
        ("$.name[0]", 2, "there is no $.name[0]"),
    ],
)
def test_a_path_without_a_number_says_what_is_there(path: str, line: int, words: str) -> None:
    told = refusal(DOCUMENT, **LATENCY, json=path)
    assert (told.line, words in told.reason) == (line, True), told


@pytest.mark.parametrize(
    "text",
    ["", "x", '{"a": 1', '{"a": 1} {"a": 1}', 'note\n{"a": 1}', "1", '{"a": 1, "a": 2}', "[" * 100_000, '{"a": 1}\nx'],
)
def test_an_output_that_is_not_one_document_is_refused(text: str) -> None:
    assert "not one JSON document" in refusal(text, **LATENCY, json="$.a").reason


def test_an_empty_list_has_no_numbers() -> None:
    keys = {**LATENCY, "json": "$.a[*]", "count": "all", "aggregate": "sum"}
    assert "is a list of 0" in refusal('{"a": []}', **keys).reason


# --- CSV -----------------------------------------------------------------------------------------------------------

REDIS = """\
"test","rps","p99_latency_ms"
"GET","18181.82","0.503"
"SET","20000.00","0.311"
"""
RPS: dict[str, Any] = {**TPS, "regex": None}


def test_a_row_is_found_by_its_other_columns() -> None:
    assert value(REDIS, **RPS, csv={"column": "rps", "where": {"test": "SET"}}) == 20000.0
    (one,) = read(REDIS, {**RPS, "csv": {"column": "rps", "where": {"test": "SET"}}}).values
    assert one.line == 3


def test_the_only_row_needs_no_name() -> None:
    assert value("a;b\n1;2.5\n", **RPS, csv={"column": "b", "delimiter": ";"}) == 2.5
    assert value("\ufeffa,b\r\n1,2.5\r\n", **RPS, csv={"column": "b", "where": {"a": "1"}}) == 2.5


def test_all_rows_are_combined_where_the_study_says_so() -> None:
    assert value(REDIS, **RPS, csv={"column": "rps"}, count="all", aggregate="max") == 20000.0


@pytest.mark.parametrize(
    ("text", "csv", "line", "words"),
    [
        (REDIS, {"column": "rps"}, 2, "there are 2 rows instead of one"),
        (REDIS, {"column": "rps", "where": {"test": "DEL"}}, 0, "there are 0 rows with test = 'DEL' instead of one"),
        (REDIS, {"column": "tps"}, 1, "no column 'tps', only 'test', 'rps' and 'p99_latency_ms'"),
        (REDIS, {"column": "rps", "where": {"x": "1"}}, 1, "no column 'x'"),
        ("a,a\n1,2\n", {"column": "a"}, 1, "it has 'a' twice"),
        ("a,b\n1\n", {"column": "a"}, 2, "the header has 2 columns and this row 1"),
        ("a,b\n1,nan\n", {"column": "b"}, 2, "b is 'nan'"),
        ("a,b\n1,-2\n", {"column": "b"}, 2, "b is '-2'"),
        ("a,b\n1,\n", {"column": "b"}, 2, "b is ''"),
        ("a,b\n1,23", {"column": "b"}, 0, "does not end with a line feed"),
        ('a,b\n1,"2\n', {"column": "b"}, 0, "not a table"),
        ("a,b\n", {"column": "b"}, 0, "there are 0 rows"),
        ("", {"column": "b"}, 0, "there is no output"),
        ("\n", {"column": "b"}, 1, "no column 'b'"),
        ("a,b\n1," + "2" * 200_000 + "\n", {"column": "b"}, 0, "not a table"),
    ],
)
def test_a_table_without_the_number_is_refused(text: str, csv: dict[str, Any], line: int, words: str) -> None:
    told = refusal(text, **RPS, csv=csv)
    assert (told.line, words in told.reason) == (line, True), told


@pytest.mark.parametrize("end", range(len(REDIS)))
def test_a_cut_table_gives_the_same_number_or_a_refusal(end: int) -> None:
    found = read(REDIS[:end], {**RPS, "csv": {"column": "rps", "where": {"test": "SET"}}})
    assert [one.value for one in found.values] in ([], [20000.0])


# --- where a number comes from --------------------------------------------------------------------------------------


def test_numbers_come_from_any_output() -> None:
    found = read(
        "",
        {**TPS, "from": "stderr"},
        {**LATENCY, "from": "out/a.json", "json": "$.ms"},
        stderr="tps = 3 x\n",
        **{"out/a.json": '{"ms": 4}'},
    )
    assert {source: reading.values[0].value for source, reading in found.readings.items()} == {
        "stderr": 3.0,
        "out/a.json": 0.004,
    }


def test_an_output_that_is_not_there_is_refused() -> None:
    told = refusal("", **LATENCY, **{"from": "a.json", "json": "$.ms"})
    assert told == Refusal(0, "latency", "there is no a.json; there is stdout")


def test_an_output_that_was_not_kept_says_why() -> None:
    table = MetricTable.model_validate_json(json.dumps({**TPS, "from": "out.txt", "primary": True}))
    found = extract([table], {"stdout": "", "stderr": ""}, "pgbench", {"out.txt": "it is no regular file"})
    assert found.refusals == [("out.txt", Refusal(0, "tps", "out.txt was not kept: it is no regular file"))]


def test_what_is_always_measured_is_there_without_being_asked_for() -> None:
    found = read("", usage=json.dumps(USAGE))
    assert {v.metric.name: (v.value, v.metric.unit, v.metric.primary) for v in found.values} == {
        "wall": (1.25, "s", True),
        "user": (0.5, "s", False),
        "system": (0.25, "s", False),
        "cpu": (0.75, "s", False),
        "max_rss": (4096000.0, "byte", False),
        "faults": (102.0, "1", False),
        "switches": (10.0, "1", False),
    }
    both = read("tps = 1 a\n", {**TPS, "primary": True}, usage=json.dumps(USAGE))
    assert [v.metric.name for v in both.values if v.metric.primary] == ["tps"]


def test_a_builtin_may_be_named_and_decide() -> None:
    found = read("", {"builtin": "max_rss", "name": "memory", "primary": True}, usage=json.dumps(USAGE))
    assert [(v.metric.name, v.value) for v in found.values if v.metric.primary] == [("memory", 4096000.0)]
    assert "max_rss" not in [v.metric.name for v in found.values]
    cpu = read("", {"builtin": "cpu", "primary": True}, usage=json.dumps(USAGE))
    assert [v.value for v in cpu.values if v.metric.name == "cpu"] == [0.75]


def test_a_cpu_time_of_zero_counts_unless_it_decides() -> None:
    usage = json.dumps({**USAGE, "user_s": 0})
    for found in (read("", usage=usage), read("", {"builtin": "user"}, {**TPS, "primary": True}, usage=usage)):
        values = {v.metric.name: (v.value, v.metric.kind) for v in found.values}
        assert (values["user"], values["cpu"]) == ((0.0, Kind.AMOUNT), (0.25, Kind.COST))
    for table in ({"builtin": "user", "primary": True}, {"builtin": "user", "kind": "cost"}):
        asked = read("", table, {"builtin": "wall", "primary": "kind" in table}, usage=usage)
        assert ("usage", Refusal(1, "user", "it is 0: too short for the kernel to tell")) in asked.refusals


def test_a_metric_of_the_study_may_be_called_cpu() -> None:
    own = {**TPS, "name": "cpu", "primary": True}
    found = read("tps = 7 a\n", own, usage=json.dumps(USAGE))
    assert [v.value for v in found.values if v.metric.name == "cpu"] == [7.0]


@pytest.mark.parametrize("key", [key for key in USAGE if key != "status"])
@pytest.mark.parametrize("wrong", ["nan", "-1", "null", '"x"'])
def test_a_damaged_report_of_vtax_is_refused(key: str, wrong: str) -> None:
    text = json.dumps({**USAGE, key: 12345}).replace("12345", wrong.replace("nan", "NaN"))
    found = read("", usage=text)
    assert [source for source, _ in found.refusals] == ["usage"]
    assert found.values == []


@pytest.mark.parametrize("end", range(len(json.dumps(USAGE))))
def test_a_cut_report_of_vtax_is_refused(end: int) -> None:
    assert read("", usage=json.dumps(USAGE)[:end]).values == []


def test_a_builtin_without_a_report_is_refused() -> None:
    found = read("", {"builtin": "wall", "primary": True})
    assert found.refusals == [("usage", Refusal(0, "wall", "vtax-run left no report"))]
