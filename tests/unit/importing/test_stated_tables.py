"""Tables of others (`--table`): every row is a value or a refusal with its line. Expectations are made by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from vtax import pipeline
from vtax.cli import main
from vtax.errors import UsageError
from vtax.importing.campaign import import_logs
from vtax.importing.recipe import Step
from vtax.importing.report import Report
from vtax.importing.request import Request
from vtax.store import Campaign
from vtax.tools.stated import Unclear, statement_of

RATE = "benchmark=cache value=rps unit=1/s kind=rate-fixed-work"
PLACED = f"{RATE} environment=host label=clients"
LATENCY = "value='p99 time' metric=p99 unit=ms kind=latency-quantile"
CSV = """\
host,clients,rps,p99 time
vm,10,1000.5,2.5
box,10,900,3
vm,10,990,2.75
vm,20,1.5e3,4
"""


def taken(folder: Path, text: str | bytes, *table: str, into: str = "campaign", **options: Any) -> Report:
    path = folder / f"{into}.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_logs(Request(paths=(path,), table=table, **options), folder / into)


def values(directory: Path) -> set[tuple[str, int, str, str, float, str]]:
    """Environment, round, clients, metric, value, unit."""
    return {
        (one.environment, one.round, one.labels.get("clients", ""), one.metric, one.value, one.unit)
        for one in pipeline.measurements(directory)[0]
    }


def refused(report: Report) -> list[tuple[int, str, str]]:
    return [(one.line, one.what, one.reason) for run in report.runs for one in run.reading.refusals]


def why_nothing(folder: Path, text: str | bytes, *table: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        taken(folder, text, *table, **options)
    assert not (folder / "campaign").exists()
    return f"{caught.value.message} {caught.value.detail}"


EXPECTED = {
    ("vm", 1, "10", "rps", 1000.5, "1/s"),
    ("vm", 1, "10", "p99", 0.0025, "s"),
    ("box", 1, "10", "rps", 900.0, "1/s"),
    ("box", 1, "10", "p99", 0.003, "s"),
    ("vm", 2, "10", "rps", 990.0, "1/s"),
    ("vm", 2, "10", "p99", 0.00275, "s"),
    ("vm", 1, "20", "rps", 1500.0, "1/s"),
    ("vm", 1, "20", "p99", 0.004, "s"),
}


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        CSV.replace("\n", "\r\n"),
        "\ufeff" + CSV,
        CSV.replace(",", ";"),
        CSV.replace(",", "\t"),
        CSV.replace(",", "|"),
        CSV.replace("p99 time", '"p99 time"').replace("vm,", '"vm",'),
        CSV.replace("\n", "\n\n"),
        CSV.encode("utf-16"),
    ],
)
def test_all_forms_of_one_table_have_the_same_values(tmp_path: Path, text: str | bytes) -> None:
    report = taken(tmp_path, text, PLACED, LATENCY)
    assert values(tmp_path / "campaign") == EXPECTED
    assert report.taken == 8
    assert refused(report) == []


def test_the_first_metric_is_the_headline_and_the_statement_is_kept(tmp_path: Path) -> None:
    taken(tmp_path, CSV, PLACED, LATENCY)
    found = pipeline.measurements(tmp_path / "campaign")[0]
    assert {one.metric for one in found if one.primary} == {"rps"}
    for trial in Campaign.open(tmp_path / "campaign").trials():
        assert trial.imported
        assert trial.imported.table == (PLACED, LATENCY)
        assert trial.texts["log.txt"].split("\n")[0] == "host,clients,rps,p99 time"
    (file,) = json.loads((tmp_path / "campaign/imports.json").read_text())[0]["files"]
    assert file["runs"][0]["stated"] == {"clients": "10", "table": f"{PLACED}; {LATENCY}"}
    assert file["lines"]["all"] == 5


def test_it_is_in_report_and_analysis(tmp_path: Path) -> None:
    taken(tmp_path, CSV, PLACED, LATENCY, baseline="box")
    analysis = pipeline.analyse(tmp_path / "campaign")
    levels = {(one.environment, one.labels["clients"], one.metric): one for one in analysis.levels}
    assert levels["vm", "10", "rps"].n == 2
    assert levels["vm", "20", "rps"].n == 1
    assert not analysis.failures
    (page,) = pipeline.reports(tmp_path / "campaign", ("md",))
    assert "table, 4 rows (stated: benchmark=cache" in page.read_text()


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("", "empty"),
        ("NaN", "not a finite number"),
        ("inf", "not a finite number"),
        ("-5", "not a finite number"),
        ("1e999", "not a finite number"),
        ("NA", "stands for no value"),
        ('"1,234"', "separator"),
        ('"1,5"', "separator"),
        ("1 234", "separator"),
        ("1'234", "separator"),
        ("1.234.567", "separator"),
        ("12ms", "more than a number"),
        ("12 %", "more than a number"),
        ("0", "above zero"),
        ("0x10", "not a finite number"),
        ("1_000", "separator"),
        ("١٢", "not a finite number"),
    ],
)
def test_a_cell_that_is_not_a_number_is_refused_with_its_line(tmp_path: Path, cell: str, reason: str) -> None:
    report = taken(tmp_path, f"host,clients,rps\nvm,10,1\nvm,10,{cell}\nvm,10,3\n", PLACED)
    assert {one[4] for one in values(tmp_path / "campaign")} == {1.0, 3.0}
    ((line, what, said),) = refused(report)
    assert (line, what) == (3, "rps")
    assert reason in said


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("vm,10", "2 cells, and the header 3"),
        ("vm,10,2,", "4 cells, and the header 3"),
        (",10,2", "environment is ''"),
        ("vm,,2", "its clients is empty"),
        ("v m,10,2", "cannot be told apart from 'v-m'"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_line(tmp_path: Path, row: str, reason: str) -> None:
    report = taken(tmp_path, f"host,clients,rps\nv-m,10,1\n{row}\nv-m,10,3\n", PLACED)
    assert {one[4] for one in values(tmp_path / "campaign")} == {1.0, 3.0}
    ((line, what, said),) = refused(report)
    assert (line, what) == (3, "the row")
    assert reason in said


def test_a_number_that_may_be_cut_off_is_not_taken(tmp_path: Path) -> None:
    report = taken(tmp_path, CSV.removesuffix("\n"), PLACED, LATENCY)
    assert report.taken == 6
    assert [one[0] for one in refused(report)] == [5]
    report = taken(tmp_path, CSV.removesuffix("\n"), PLACED, into="other")  # its last column is not used
    assert report.taken == 4


def test_what_is_not_csv_ends_the_table_with_its_line(tmp_path: Path) -> None:
    report = taken(tmp_path, 'host,clients,rps\nvm,10,1\nvm,10,2\n"vm,10,3\nvm,10,4\n', PLACED)
    assert {one[4] for one in values(tmp_path / "campaign")} == {1.0, 2.0}
    assert report.files[0].reason.startswith("line 4: not a row of a table")


def test_returns_inside_of_lines_are_not_guessed(tmp_path: Path) -> None:
    assert "line 2: a carriage return" in why_nothing(tmp_path, "host,clients,rps\nvm,1,1\rvm,1,2\nvm,1,3\n", PLACED)


def test_cells_with_line_breaks_are_one_row(tmp_path: Path) -> None:
    taken(tmp_path, 'host,note,clients,rps\nvm,"10,5\nvm,x,10,7",10,1\nvm,,10,2\n', PLACED)
    assert {one[:5] for one in values(tmp_path / "campaign")} == {
        ("vm", 1, "10", "rps", 1.0),
        ("vm", 2, "10", "rps", 2.0),
    }
    assert not pipeline.analyse(tmp_path / "campaign").failures


def test_units_in_a_column_are_checked_row_by_row(tmp_path: Path) -> None:
    text = "host,time,unit\nvm,5,ms\nvm,2,s\nvm,3,MB\nvm,4,KB\n"
    table = "benchmark=boot value=time unit=s unit-column=unit kind=cost environment=host"
    report = taken(tmp_path, text, table)
    assert {one[4] for one in values(tmp_path / "campaign")} == {0.005, 2.0}
    assert [(line, what) for line, what, _ in refused(report)] == [(4, "time"), (5, "time")]


def test_rows_of_several_metrics_are_told_apart_by_where(tmp_path: Path) -> None:
    text = "host,name,n\nvm,rps,5\nvm,p99,7\nvm,rps,6\nvm,other,9\n"
    tables = (
        "benchmark=cache value=n metric=rps where=name:rps unit=1/s kind=rate-fixed-time environment=host",
        "value=n metric=p99 where=name:p99 unit=us kind=latency-quantile",
    )
    report = taken(tmp_path, text, *tables)
    assert {(one[1], *one[3:5]) for one in values(tmp_path / "campaign")} == {
        (1, "rps", 5.0),
        (2, "rps", 6.0),
        (1, "p99", 7e-6),
    }
    ((line, _, reason),) = refused(report)
    assert line == 5
    assert "no --table" in reason


def test_a_column_orders_the_runs_and_none_counts_twice(tmp_path: Path) -> None:
    text = "host,clients,rps,run\nvm,10,30,3\nvm,10,10,1\nvm,10,11,01\nvm,10,20,x\n"
    report = taken(tmp_path, text, f"{PLACED} round=run")
    assert {one[4]: one[1] for one in values(tmp_path / "campaign")}[10.0] < 3
    assert sorted(one[4] for one in values(tmp_path / "campaign")) == [10.0, 30.0]
    found = {line: reason for line, _, reason in refused(report)}
    assert set(found) == {4, 5}
    assert "is in line 3" in found[4]


def test_environment_from_the_command_line_and_more_of_it_later(tmp_path: Path) -> None:
    taken(tmp_path, "rps,x\n5,a\n6,b\n", RATE, environment="vm", labels={"site": "here"})
    path = tmp_path / "second.csv"
    path.write_text("rps,x\n7,c\n")
    report = import_logs(
        Request(paths=(path,), table=(RATE,), environment="vm", labels={"site": "here"}), tmp_path / "campaign"
    )
    assert {one[1]: one[4] for one in values(tmp_path / "campaign")} == {1: 5.0, 2: 6.0, 3: 7.0}
    assert report.files[0].reason == "columns that are not taken: x"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("host,clients,rate\nvm,1,2\n", "no column 'rps'; it has 'host', 'clients', 'rate'"),
        ("host,clients,rps,rps\nvm,1,2,3\n", "'rps' is there twice"),
        ("host,clients,rps\n", "a table without rows"),
        ("\n\n", "it is empty"),
    ],
)
def test_a_header_that_lacks_a_column_imports_nothing(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in why_nothing(tmp_path, text, PLACED)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("value=a unit=s",), "no kind"),
        (("value=a kind=cost benchmark=b",), "no unit"),
        (("value=a unit=s kind=rate benchmark=b",), "rate-fixed-work"),
        (("value=a unit=KB/s kind=cost benchmark=b",), "more than one meaning"),
        (("value=a unit=1 kind=ratio benchmark=b",), "which is better"),
        (("value=a unit=s kind=cost better=higher benchmark=b",), "lower is better"),
        (("value=a unit=s kind=cost",), "benchmark=NAME"),
        (("value=a unit=s kind=cost benchmark=b", "value=a unit=s kind=cost"), "two metrics are called a"),
        (("value=a unit=s kind=cost benchmark=b", "value=c unit=s kind=cost benchmark=d"), "'b' and 'd'"),
        (("value='a b' unit=s kind=cost benchmark=b",), "metric=NAME"),
        (("value=a value=b unit=s kind=cost benchmark=b",), "there twice"),
        (("value=a size=b unit=s kind=cost benchmark=b",), "'size=b'"),
        (("value='a unit=s kind=cost benchmark=b",), "No closing quotation"),
        (("value=a unit=s kind=cost benchmark=b delimiter=x",), "delimiter=x"),
        (("value=a unit=s kind=cost benchmark=b where=x",), "COLUMN:TEXT"),
    ],
)
def test_statements_that_are_wrong(options: tuple[str, ...], reason: str) -> None:
    with pytest.raises(Unclear) as caught:
        statement_of(options)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("table", "options", "reason"),
    [
        (RATE, {}, "the environment of the rows"),
        (PLACED, {"environment": "vm"}, "the environment of the rows"),
        (PLACED, {"labels": {"clients": "3"}}, "clients is in --table"),
        (PLACED.replace("cache", "iperf3"), {}, "benchmark=iperf3"),
        (PLACED.replace("=clients", "=round:clients"), {}, "measurements have themselves"),
    ],
)
def test_statements_that_contradict_others(tmp_path: Path, table: str, options: dict[str, Any], reason: str) -> None:
    assert reason in why_nothing(tmp_path, CSV, table, **options)


def test_the_command_ends_with_2_and_names_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(text: str) -> tuple[object, str]:
        (tmp_path / "t.csv").write_text(text)
        monkeypatch.setattr(sys, "argv", ["vtax", "import", "t.csv", "--table", PLACED, "--into", "c"])
        with pytest.raises(SystemExit) as left:
            main.main()
        printed = capsys.readouterr()
        return left.value.code, printed.out + printed.err

    code, printed = said("host,clients,rate\nvm,1,2\n")
    assert code == 2
    assert "no column 'rps'; it has 'host', 'clients', 'rate'" in printed
    assert "state columns that the files have" in printed
    code, printed = said(CSV.replace(",", ";") + "vm;10;n/a;2\n")
    assert code == 0
    assert "5 rows, ';' between columns" in printed
    assert "line 6: refused: rps: the cell is 'n/a'" in printed


def test_a_recipe_may_state_columns() -> None:
    step = Step.model_validate({"paths": ["a.csv"], "table": [PLACED]})
    assert statement_of(step.table).environment == "host"
