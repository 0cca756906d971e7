"""The published figures: read, in base units, beside what was printed, and found for a metric."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from builders.logs import taken, text_of
from builders.pages import whole
from builders.recorded import DATA
from unit.importing.test_import_more_tools import GUPS
from vtax.cli.app import app
from vtax.errors import UsageError
from vtax.model.names import STUDY_NAME as NAME
from vtax.reference import Figure, figures, report, reports
from vtax.report.document.compose import document_of
from vtax.report.records import Reference
from vtax.tools import benchmarks

NOT_PRINTED = (".toml", ".json", ".xls", ".gz")
PER_BIT, PER_BYTE = "bit/s", "byte/s"


def one(key: str, environment: str, benchmark: str, metric: str, **labels: str) -> Figure:
    found = [
        figure
        for figure in report(key).figures
        if (figure.environment, figure.benchmark, figure.metric) == (environment, benchmark, metric)
        and labels.items() <= figure.labels.items()
    ]
    assert len(found) == 1
    return found[0]


def test_every_published_report_is_there() -> None:
    assert {known.key: len(known.figures) for known in reports()} == {
        "cited": 31,
        "felter-2015": 82,
        "firecracker-2020": 41,
        "i3-1315u": 109,
        "i5-10600k": 6,
        "i7-8550u": 132,
        "m2": 57,
        "slides": 42,
    }
    assert all(re.match(NAME, known.key) for known in reports())


@pytest.mark.parametrize("known", reports(), ids=lambda known: known.key)
def test_figures_are_of_known_metrics_in_their_units(known: object) -> None:
    units = {(name, metric.name): metric.unit for name, tool in benchmarks().items() for metric in tool.metrics}
    extra = {
        ("hpcc", "PTRANS_time"): "s",
        ("iperf3", "transfer"): "byte",
        ("iperf3", "transfer_interval"): "byte",
        ("sysbench-memory", "latency_avg"): "s",
        ("gups", "GUPS"): "update/s",  # of tools that vtax does not run
        ("nuttcp", "throughput"): "bit/s",
        ("netperf", "latency_mean"): "s",
        ("sysbench-oltp", "transactions_rate"): "1/s",
        ("boot", "first_process_p99"): "s",
        ("peak", "memory_bandwidth"): "byte/s",
        ("peak", "flop_rate"): "flop/s",
    }
    for figure in known.figures:  # type: ignore[attr-defined]
        if figure.benchmark != "cited":  # of programs that are not named
            assert {**units, **extra}[figure.benchmark, figure.metric] == figure.unit
        assert figure.environment in {*known.environments, "machine"}  # type: ignore[attr-defined]
        assert figure.printed


@pytest.mark.parametrize(
    ("figure", "value", "unit", "printed"),
    [
        (one("i7-8550u", "vm", "hpcc", "HPL"), 5.128e9, "flop/s", "5.128 ± 0.013 Gflops"),
        (one("i7-8550u", "container", "hpcc", "MPIRandomAccess"), 2.6e6, "update/s", "2.60 ± 0.54 MUP/s"),
        (one("i7-8550u", "host", "hpcc", "AvgPingPongLatency"), 0.211e-6, "s", "0.211 ± 0.005 µs"),
        (one("i5-10600k", "container", "hpl", "HPL", nb="256", n="17664"), 170.7e9, "flop/s", "170.7 GFLOPs"),
        (one("m2", "vm", "sysbench-cpu", "events_rate", target="node01", load="hpcc"), 1869.82, "1/s", "1869.82 event"),
        (one("m2", "container", "sysbench-memory", "operations_rate"), 357_449.0, "1/s", "3574.49e2 events"),
        (one("i3-1315u", "vm", "hpcc", "PTRANS"), 1.127e9, "byte/s", "1.127 GB/s"),
        (one("slides", "container", "sysbench-cpu", "events_rate"), 3303.0, "1/s", "3,303.00 Ops/s"),
    ],
)
def test_a_figure_is_the_printed_one_in_base_units(figure: Figure, value: float, unit: str, printed: str) -> None:
    assert figure.value == pytest.approx(value, rel=1e-12)
    assert figure.unit == unit
    assert figure.printed.startswith(printed)
    assert not figure.corrected


def test_units_that_are_proven_wrong_are_corrected_and_both_are_kept() -> None:
    memory = one("i7-8550u", "vm", "sysbench-memory", "throughput")
    assert memory.value == pytest.approx(3.88 * 2**30)
    assert memory.printed == "3.88 ± 0.02 Gib/s"
    assert 10 / (5.51 / 8) > 10  # what the correction says: 10 GiB at 5.51 Gibit/s outlast the 10 s of a run
    assert memory.corrected
    network = one("slides", "vm", "iperf3", "throughput", between="master-worker1")
    assert (network.value, network.unit, network.printed) == (1.79e9, PER_BIT, "1.79 GB/s")
    assert "Gbits/sec" in network.corrected
    transpose = one("slides", "vm", "hpcc", "PTRANS")
    assert (transpose.value, transpose.unit, transpose.printed) == (0.55e9, PER_BYTE, "0.550 s")
    disk = one(
        "i3-1315u", "vm", "iozone", "operations_rate", operation="read", file_bytes="33554432", record_bytes="65536"
    )
    assert (disk.value, disk.unit) == (49_975.0, "1/s")
    assert "-O" in disk.corrected


def test_what_a_report_expects_is_a_range() -> None:
    expected = one("i3-1315u", "workstation", "hpcc", "HPL")
    assert (expected.value, expected.low, expected.high) == (None, 50e9, 200e9)


def test_figures_are_found_for_a_metric_under_the_same_conditions() -> None:
    found = figures("iperf3", "throughput", {"protocol": "udp", "direction": "forward", "client": "worker1"})
    assert {(known.key, figure.environment) for known, figure in found} == {
        ("i7-8550u", "vm"),
        ("i7-8550u", "container"),
    }
    assert {known.key for known, _ in figures("hpl", "HPL")} == {
        *("felter-2015", "i3-1315u", "i5-10600k", "i7-8550u", "m2", "slides")
    }
    assert not figures("stress-ng", "bogo_ops_rate_real", {"stressor": "matrix"})
    assert not [figure for _, figure in figures("sysbench-cpu", "events_rate") if "load" in figure.labels]


def test_a_figure_says_something() -> None:
    with pytest.raises(ValueError, match="neither a value nor a range"):
        Figure(environment="vm", benchmark="hpl", metric="HPL", unit="flop/s", place="p", printed="x")


def test_the_command_lists_and_shows() -> None:
    listed = CliRunner().invoke(app, ["reference", "list", "--json"])
    assert [item["key"] for item in json.loads(listed.stdout)] == [known.key for known in reports()]
    shown = CliRunner().invoke(app, ["reference", "show", "i7-8550u", "--metric", "HPL"])
    assert "5.128 ± 0.013 Gflop/s" in shown.stdout
    again = CliRunner().invoke(app, ["reference", "show", "slides", "--benchmark", "iperf3", "--json"])
    assert {figure["benchmark"] for figure in json.loads(again.stdout)["figures"]} == {"iperf3"}
    bare = CliRunner().invoke(app, ["reference", "show", "i3-1315u"])
    assert "50.00 to 200.0 Gflop/s" in bare.stdout
    assert "at least 1.000 Tflop/s" in bare.stdout


@pytest.mark.parametrize("words", [["nope"], ["m2", "--metric", "nope"]])
def test_what_is_not_there_is_a_usage_error(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["reference", "show", *words])
    assert isinstance(result.exception, UsageError)


def test_a_report_takes_every_figure_that_is_not_under_load() -> None:
    from vtax.publishing.files import references

    taken = references([known.key for known in reports()])
    kept = [figure for known in reports() for figure in known.figures if "load" not in figure.labels]
    assert len(taken) == len(kept) + sum(figure.metric == "HPL" for figure in kept)
    assert all(one.ends for one in taken)
    assert {one.unit for one in taken if one.metric == "HPL"} == {"flop/s"}
    assert any(one.source == "slides" and one.corrected and one.benchmark == "iperf3" for one in taken)


def test_published_figures_are_a_range_beside_the_numbers_and_a_table_below() -> None:
    others = (
        Reference(benchmark="hpcc", metric="HPL", value=4e9, unit="flop/s", source="one", environment="vm"),
        Reference(benchmark="hpcc", metric="HPL", value=9e9, unit="flop/s", source="two", corrected="it was GB"),
        Reference(benchmark="hpcc", metric="HPL", low=1e9, high=2e9, unit="flop/s", source="two", caution="a guess"),
        Reference(benchmark="hpcc", metric="HPL", low=1e12, unit="flop/s", source="two"),
        Reference(benchmark="hpcc", metric="HPL", value=1.0, unit="flop/s", source="x", labels={"operation": "other"}),
    )
    page = document_of(whole(rounds=3).model_copy(update={"references": others}))
    entry = next(entry for section in page.sections for entry in section.entries if entry.published)
    assert entry.table is not None
    assert entry.published is not None
    cell = next(row for row in entry.table.rows if row.cells[0].text == "HPL (Gflop/s)").cells[-1]
    assert (cell.text, cell.note, cell.raw) == ("4.000 to 9.000", "4 results", entry.published_anchor)
    told = [tuple(cell.text for cell in row.cells) for row in entry.published.rows]
    others_told = [row for row in told if row[-2:-1] != ("this campaign",)]
    assert others_told == [
        ("HPL (Gflop/s)",),
        ("vm", "4.000", "–", "–", "one", ""),
        ("not stated", "9.000", "–", "–", "two", "corrected: it was GB"),
        ("not stated", "1.000–2.000", "–", "–", "two", "a guess"),
        ("not stated", "from 1,000", "–", "–", "two", ""),
    ]


@pytest.mark.parametrize(
    ("environment", "benchmark", "metric", "labels", "ratio"),
    [  # what is printed, divided by hand
        ("vm", "hpl", "HPL", {}, 284.20 / 290.83),
        ("vm", "redis-benchmark", "requests_rate", {"connections": "1"}, 9390 / 16421),
        ("vm", "fio", "read_iops", {"depth": "16", "jobs": "8"}, 42543 / 84044),
        ("vm", "netperf", "latency_mean", {"protocol": "tcp"}, 67.9 / 37.6),
    ],
)
def test_a_figure_has_a_ratio_to_the_baseline_of_its_report(
    environment: str, benchmark: str, metric: str, labels: dict[str, str], ratio: float
) -> None:
    known = report("felter-2015")
    figure = one("felter-2015", environment, benchmark, metric, **labels)
    assert known.ratio(figure) == pytest.approx(ratio, rel=1e-12)
    native = one("felter-2015", "native", benchmark, metric, **labels)
    assert known.ratio(native) is None


def test_a_study_with_raw_data_names_where_they_are_and_what_is_wrong_with_them() -> None:
    for key in ("felter-2015", "firecracker-2020"):
        known = report(key)
        assert known.repository
        assert known.commit
        assert known.remarks
        assert known.baseline in known.environments
    shown = CliRunner().invoke(app, ["reference", "show", "felter-2015", "--benchmark", "fio"])
    assert "thewmf/kvm-docker-comparison, commit 6820500b" in shown.stdout
    assert "what is wrong with it:" in shown.stdout


def test_a_corrected_unit_of_an_old_version_is_proven_by_its_own_total() -> None:
    write = one("felter-2015", "native", "fio", "write_bandwidth")
    assert write.printed == "750994 KB/s"
    assert write.value == pytest.approx(16384 * 2**20 / 22.340, rel=1e-3)  # its total and its time


def test_own_results_are_next_to_those_of_others() -> None:
    others = (
        Reference(benchmark="hpcc", metric="HPL", value=8e9, ratio=0.5, n=10, unit="flop/s", source="one"),
        Reference(benchmark="hpcc", metric="RandomlyOrderedRingLatency", value=2e-6, ratio=2.0, unit="s", source="one"),
    )
    page = document_of(whole(rounds=3).model_copy(update={"references": others, "asked": ("one",)}))
    tables = [entry.published for section in page.sections for entry in section.entries if entry.published]
    rows = [tuple(cell.text for cell in row.cells) for table in tables for row in table.rows if not row.heading]
    assert [row[4] for row in rows].count("this campaign") >= 2
    assert ("not stated", "8.000", "0.500", "10", "one", "") in rows
    assert [row[2] for row in rows if row[4] == "one"] == ["0.500", "0.500"]  # twice the time is half as good
    said = next(paragraph for paragraph in page.conclusion if paragraph.title == "Published results")
    assert "which no verdict here uses" in said.sentences[0]


def test_nothing_found_is_said() -> None:
    page = document_of(whole(rounds=3).model_copy(update={"references": (), "asked": ("one",)}))
    said = next(paragraph for paragraph in page.conclusion if paragraph.title == "Published results")
    assert said.sentences[0].startswith("Nothing in one is about the same metric under the same conditions")
    assert not [paragraph for paragraph in document_of(whole(rounds=3)).conclusion if "Published" in paragraph.title]


@pytest.mark.parametrize(
    ("words", "error"),
    [(["nope", "--with-reference"], "there is no report 'nope'"), (["felter-2015"], "one argument too many")],
)
def test_a_report_that_is_not_there_is_a_usage_error(words: list[str], error: str) -> None:
    result = CliRunner().invoke(app, ["report", "somewhere", *words])
    assert isinstance(result.exception, UsageError)
    assert error in str(result.exception)


NO_LOGS = {  # programs that are not named, times that only vtax itself measures, and peaks, which are computed
    "cited",
    "boot",
    "startup",
    "peak",
}


def test_an_import_takes_every_metric_of_the_published_figures() -> None:
    """From what the tools printed: everything that has a name here is read from some recorded log."""
    named = {(one.benchmark, one.metric) for known in reports() for one in known.figures}
    texts = [text_of(path) for path in sorted(DATA.rglob("*")) if path.is_file() and path.suffix not in NOT_PRINTED]
    found = {(one.benchmark, one.metric) for text in [*texts, GUPS] for one in taken(text)}
    assert {(benchmark, metric) for benchmark, metric in named - found if benchmark not in NO_LOGS} == set()
    assert len(named) > 50
