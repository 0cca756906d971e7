"""What a `[[benchmarks.metrics]]` may say: mistakes are found in the study, before anything runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from vtax.model.metric import Direction, Kind
from vtax.tools.command.builtins import BUILTINS
from vtax.tools.command.metric_table import MetricTable, MetricTables, declared, outputs
from vtax.tools.command.readers import READERS, reader_names, reader_of

TPS = {"name": "tps", "unit": "1/s", "kind": "rate, fixed time", "regex": "tps = ([0-9.]+) ", "primary": True}
ALL = TypeAdapter(MetricTables)


def table(**keys: Any) -> MetricTable:
    """A table as a study has it: strictly, from JSON."""
    return MetricTable.model_validate_json(json.dumps(keys), strict=True)


def without(key: str, **more: Any) -> dict[str, Any]:
    return {name: value for name, value in TPS.items() if name != key} | more


def mistake(**keys: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        table(**keys)
    (error,) = caught.value.errors()
    return str(error["msg"])


def several(*tables: dict[str, Any]) -> list[MetricTable]:
    return ALL.validate_json(json.dumps(tables), strict=True)


def test_a_metric_as_the_study_writes_it() -> None:
    metric = table(**TPS).metric
    assert (metric.name, metric.unit, metric.kind, metric.primary) == ("tps", "1/s", Kind.RATE_FIXED_TIME, True)
    assert metric.direction is Direction.HIGHER


@pytest.mark.parametrize(
    ("unit", "base"),
    [
        ("ns", "s"),
        ("us", "s"),
        ("µs", "s"),
        ("ms", "s"),
        ("s", "s"),
        ("min", "s"),
        ("B", "byte"),
        ("kB", "byte"),
        ("KiB", "byte"),
        ("MB/s", "byte/s"),
        ("MiB/s", "byte/s"),
        ("Gbit/s", "bit/s"),
        ("op/s", "op/s"),
        ("1/s", "1/s"),
        ("%", "1"),
        ("J", "J"),
        ("mW", "W"),
        ("tokens/s", "tokens/s"),
    ],
)
def test_units_are_those_that_values_are_stored_in(unit: str, base: str) -> None:
    assert table(**without("unit", unit=unit)).metric.unit == base


@pytest.mark.parametrize(("unit", "hint"), [("KB", "KiB"), ("Mb/s", "Mbit/s"), ("MBps", "MB/s"), ("Gbps", "Gbit/s")])
def test_a_unit_with_two_meanings_is_a_mistake(unit: str, hint: str) -> None:
    assert hint in mistake(**without("unit", unit=unit))


@pytest.mark.parametrize("key", ["name", "unit", "kind"])
def test_name_unit_and_kind_have_no_default(key: str) -> None:
    assert f"no `{key}`" in mistake(**without(key))


@pytest.mark.parametrize("kind", ["ratio", "proportion"])
def test_a_kind_that_leaves_the_direction_open_demands_it(kind: str) -> None:
    assert 'direction = "higher" or "lower"' in mistake(**without("kind", kind=kind))
    lower = table(**without("kind", kind=kind, direction="lower")).metric
    higher = table(**without("kind", kind=kind, direction="higher")).metric
    assert (lower.direction, higher.direction) == (Direction.LOWER, Direction.HIGHER)


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        ("cost", "higher", "lower"),
        ("latency quantile", "higher", "lower"),
        ("rate, fixed time", "lower", "higher"),
        ("rate, fixed work", "lower", "higher"),
    ],
)
def test_a_direction_must_not_contradict_the_kind(kind: str, wrong: str, right: str) -> None:
    assert f"{right} is better" in mistake(**without("kind", kind=kind, direction=wrong))
    assert table(**without("kind", kind=kind, direction=right)).metric.better is None


def test_a_count_cannot_decide() -> None:
    assert "cannot be primary" in mistake(**without("kind", kind="count"))
    assert "neither" in mistake(**without("kind", kind="count", direction="lower", primary=False))
    assert table(**without("kind", kind="count", primary=False)).metric.direction is Direction.NONE


@pytest.mark.parametrize(
    "name", ["<b>", "a b", "", "tps\n", "t\x1b[31m", "1st", "a:b", "ä", "x" * 61, "../x", "--x", "a@b"]
)
def test_a_name_is_a_word(name: str) -> None:
    assert "match pattern" in mistake(**without("name", name=name))


@pytest.mark.parametrize("unit", ["<i>", "a b", "", "s\x1b", "1/s\n", "x" * 31, '"', "&amp;", "$(id)", "a\u202eb"])
def test_a_unit_is_a_word(unit: str) -> None:
    assert "match pattern" in mistake(**without("unit", unit=unit))


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", ".x", "-x", "a\nb", "", "a//b", "a/", "x" * 300])
def test_a_file_is_below_the_directory_of_the_command(name: str) -> None:
    assert mistake(**TPS, **{"from": name})


def test_a_file_may_be_in_a_folder() -> None:
    assert outputs(several({**TPS, "from": "out/result-1.txt"})) == ("out/result-1.txt",)


@pytest.mark.parametrize("name", ["usage", "usage.json"])
def test_the_report_of_vtax_is_not_a_file_of_the_command(name: str) -> None:
    assert "vtax's own report" in mistake(**TPS, **{"from": name})


def test_there_is_one_way_to_the_number() -> None:
    assert "does not say where its number is found" in mistake(**without("regex"))
    assert "has regex and json" in mistake(**TPS, json="$.a")
    assert "regex, json, csv, builtin, reader" in mistake(**TPS, json="$.a")


@pytest.mark.parametrize(("regex", "count"), [("tps", 0), ("(a)(b)", 2), ("(?P<a>a)(b(c))", 3), ("(?:a)", 0)])
def test_a_pattern_has_one_group(regex: str, count: int) -> None:
    assert f"has {count} groups" in mistake(**without("regex", regex=regex))


def test_an_unusable_pattern_is_a_mistake() -> None:
    assert "backreferences are not supported" in mistake(**without("regex", regex=r"(a)\1"))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a.b", "begins with $"),
        ("$a", "cannot read the path from 'a'"),
        ("$.a[-1]", "cannot read the path from '[-1]'"),
        ("$..a", "cannot read"),
        ("$.a[?(@.b)]", "cannot read"),
        ("$.*", "cannot read"),
        ("$['a", "cannot read"),
        ('$["\\x"]', "is not a name"),
        ("$" + ".a" * 21, "at most 20 parts"),
    ],
)
def test_a_path_that_cannot_be_read_is_a_mistake(path: str, words: str) -> None:
    assert words in mistake(**without("regex", json=path))


def test_several_numbers_need_an_aggregate() -> None:
    assert "needs an `aggregate`" in mistake(**TPS, count="all")
    assert 'needs count = "all"' in mistake(**TPS, aggregate="median")
    assert "[*] stands for several numbers" in mistake(**without("regex", json="$.a[*].b"))
    assert table(**without("regex", json="$.a[*].b", count="all", aggregate="sum"))
    assert table(**without("regex", json='$["*"]'))  # a name


@pytest.mark.parametrize("delimiter", ["", ",,", "a", "1", '"', "\n", ".", "-"])
def test_a_delimiter_is_one_character_that_no_number_has(delimiter: str) -> None:
    assert mistake(**without("regex", csv={"column": "x", "delimiter": delimiter}))


def test_an_unknown_builtin_is_a_mistake() -> None:
    assert "allowed: wall, user, system, cpu, max_rss" in mistake(builtin="rss")


def test_a_builtin_settles_its_unit() -> None:
    assert "wall is in s" in mistake(builtin="wall", unit="ms")
    assert "leave `from` out" in mistake(builtin="wall", **{"from": "stderr"})
    assert "cannot be primary" in mistake(builtin="faults", primary=True)
    assert "cannot be primary" in mistake(**{**TPS, "kind": "amount", "primary": True})
    assert table(builtin="wall", unit="s", kind="cost", primary=True).metric.primary
    assert table(builtin="max_rss", name="memory").metric.name == "memory"


def test_an_unknown_reader_is_a_mistake() -> None:
    assert "there is no reader" in mistake(reader="fyo")
    assert "google-benchmark, gups" in mistake(reader="fyo")


def test_a_reader_brings_its_metrics() -> None:
    (one,) = several({"reader": "fio", "primary": ["read_iops"]})
    metrics = {metric.name: metric for metric in one.metrics}
    assert [name for name, metric in metrics.items() if metric.primary] == ["read_iops"]
    assert metrics["write_latency_p99"].unit == "s"
    assert 'primary = ["read_bandwidth"]' in mistake(reader="fio", primary=True)
    assert "has no iops; it has read_bandwidth" in mistake(reader="fio", primary=["iops"])
    for reader, name in (("hyperfine", "time_user"), ("stress-ng", "bogo_ops")):
        assert f"{name} of the reader {reader} is a" in mistake(reader=reader, primary=[name])
    assert "names its metrics itself" in mistake(reader="fio", name="x", unit="s", kind="cost")
    assert "comes from the reader fio" in mistake(reader="fio", unit="s")


def test_a_reader_without_units_takes_those_of_the_study() -> None:
    assert "says neither unit nor direction" in mistake(reader="openmetrics")
    assert "no `unit`" in mistake(reader="openmetrics", name="x", kind="cost")
    own = table(reader="openmetrics", name="x", measure="x_total", unit="ms", kind="cost", primary=True)
    assert own.metric.unit == "s"
    assert "only for a `reader`" in mistake(**TPS, measure="x")


def test_an_unknown_key_is_a_mistake() -> None:
    assert "Extra inputs" in mistake(**TPS, pattern="x")


def test_metrics_of_an_entry_have_different_names_and_one_decides() -> None:
    with pytest.raises(ValidationError, match="two metrics are called tps"):
        several(TPS, TPS)
    with pytest.raises(ValidationError, match="called wall, which vtax always measures"):
        several(TPS, {**TPS, "name": "wall"})
    with pytest.raises(ValidationError, match="no metric decides"):
        several({**TPS, "primary": False})
    with pytest.raises(ValidationError, match="two metrics are called time_mean"):
        several({"reader": "hyperfine", "primary": ["time_mean"]}, {"reader": "pyperf"})
    with pytest.raises(ValidationError, match="the builtin wall is named twice"):
        several({"builtin": "wall", "name": "a", "primary": True}, {"builtin": "wall", "name": "b"})


def test_the_only_metric_decides() -> None:
    alone = {key: value for key, value in TPS.items() if key != "primary"}
    assert [metric.name for metric in declared(several(alone)) if metric.primary] == ["tps"]
    with pytest.raises(ValidationError, match="no metric decides"):
        several({**alone, "kind": "count"})
    with pytest.raises(ValidationError, match="no metric decides"):
        several({**alone, "kind": "amount"})
    (user,) = several({"builtin": "user"})
    assert (user.metric.primary, user.metric.kind) == (True, Kind.COST), "what decides has a ratio"


def test_what_is_always_measured_is_declared() -> None:
    names = [metric.name for metric in declared(several(TPS))]
    assert names == ["tps", "wall", "user", "system", "cpu", "max_rss", "faults", "switches"]
    assert [metric.name for metric in declared(several(TPS)) if metric.primary] == ["tps"]
    assert [metric.name for metric in declared([]) if metric.primary] == ["wall"]
    renamed = declared(several({"builtin": "max_rss", "name": "memory", "primary": True}))
    assert [metric.name for metric in renamed] == ["memory", "wall", "user", "system", "cpu", "faults", "switches"]


def test_a_table_survives_the_plan() -> None:
    for keys in (TPS, {"reader": "fio", "primary": ["read_iops"]}, {"builtin": "wall", "primary": True}):
        one = table(**keys)
        assert table(**{k: v for k, v in one.model_dump(mode="json").items() if v is not None}) == one
        assert MetricTable.model_validate(json.loads(json.dumps(one.model_dump(mode="json")))) == one


def test_every_reader_has_a_name_and_metrics_that_can_be_declared() -> None:
    assert set(READERS) == {
        "hyperfine",
        "pyperf",
        "bmf",
        "openmetrics",
        "google-benchmark",
        "pytest-benchmark",
    }
    assert {"fio", "iperf3", "iperf3 json", "ping", "stream", "sysbench", "stress-ng"} < set(reader_names())
    for name in reader_names():
        reader = reader_of(name)
        assert reader is not None
        names = [metric.name for metric in reader.metrics]
        assert len(set(names)) == len(names)
        assert names or reader.free


def test_builtins_are_not_counted_twice() -> None:
    assert all(builtin.metric.name == name for name, builtin in BUILTINS.items())
