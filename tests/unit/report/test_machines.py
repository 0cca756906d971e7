"""The report of a campaign on several machines: how many in the answer, a table and a figure of each, the exports."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vtax.analysis.records import Analysis
from vtax.cli.analyse import lines_of
from vtax.export.tables import COLUMNS, export, read_table
from vtax.figures.figure import Medium
from vtax.report.document.answer.headline import headline
from vtax.report.document.answer.lines import lines_of as lines_about
from vtax.report.document.machines import machines_table
from vtax.report.figures.machines import machine_figure
from vtax.selftest.objects import Simulated, plan_of, simulated

NAMES = ("a", "b", "c")


def campaign(effects: tuple[float, ...]) -> Simulated:
    random = np.random.default_rng(3)
    values = np.exp(0.002 * random.standard_normal((len(effects), 2, 6, 1)))
    values[:, 1] *= np.exp(effects)[:, None, None]
    return simulated(plan_of(3, (6,), 1, machines=NAMES[: len(effects)]), values)


@pytest.fixture(scope="module")
def unlike() -> Analysis:
    return campaign((0.06, 0.0, -0.04)).analysis


def test_a_row_for_each_metric_and_a_column_for_each_machine(unlike: Analysis) -> None:
    table = machines_table(unlike)
    assert [column.title for column in table.columns] == ["Metric", "a", "b", "c", "mean", "others like them"]
    (row,) = table.rows
    assert row.cells[0].note == "other; the machines differ"
    assert [round(float(cell.text.split()[0]), 2) for cell in row.cells[1:4]] == [0.94, 1.0, 1.04]
    assert {cell.note for cell in row.cells[1:4]} == {"6 rounds"}
    assert row.cells[5].text.startswith("[")


def test_no_table_and_no_figure_for_one_machine() -> None:
    alone = campaign((0.02,)).analysis
    assert machines_table(alone).rows == ()
    assert machine_figure(alone) is None


def test_two_machines_say_nothing_about_others() -> None:
    (row,) = machines_table(campaign((0.02, 0.03)).analysis).rows
    assert row.cells[-1].text == "–"


def test_the_figure_has_each_machine_and_their_mean(unlike: Analysis) -> None:
    figure = machine_figure(unlike)
    assert figure is not None
    (panel,) = figure.panels
    names = [str(name).rpartition(", ")[2] for name in panel.y.values]
    assert names == ["a", "b", "c", "mean (differ)"]
    assert {Medium.TERMINAL, Medium.PAPER} <= figure.media
    assert figure.alt


def test_the_terminal_names_each_machine(unlike: Analysis) -> None:
    lines = list(lines_of(unlike))
    (each,) = (line for line in lines if line.startswith("  on each machine: "))
    assert each.count("%") == 3
    assert any("on 3 machines, which differ" in line for line in lines)
    assert any(line.startswith("note MACHINES_DIFFER: ") for line in lines)


def test_the_answer_says_that_machines_contradict_each_other(unlike: Analysis) -> None:
    lines = lines_about(unlike)
    assert headline(lines) == "Other: CPU undecided (the machines contradict each other)"
    (line,) = lines
    assert line.result == "undecided: the machines contradict each other"
    alike = lines_about(campaign((0.05, 0.05, 0.05)).analysis)
    assert "4.9 % slower" in headline(alike) or "5 % slower" in headline(alike)


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_exports_have_the_machine_of_each_trial(format: str) -> None:
    several, alone = campaign((0.0, 0.0)).measurements, campaign((0.0,)).measurements
    made = export(several, format)
    assert read_table(made, format, "t") == several
    assert {one.machine for one in read_table(made, format, "t")} == {"a", "b"}
    assert read_table(export(alone, format), format, "t") == alone


def test_tables_of_one_machine_are_what_they_were() -> None:
    here = tuple(one.model_copy(update={"machine": ""}) for one in campaign((0.0,)).measurements)
    assert export(here, "csv").decode().splitlines()[0] == ",".join(COLUMNS)
    assert list(json.loads(export(here, "jsonl").decode().splitlines()[0])) == list(COLUMNS)
    assert b"machine" not in export(here, "openmetrics")
    assert b'machine="a"' in export(campaign((0.0, 0.0)).measurements, "openmetrics")
