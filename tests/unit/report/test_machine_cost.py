"""What trials cost the machine in the report: a table of its own, words in a line, and no place anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders.pages import html, markdown, report_input
from builders.quick import quick, quick_analysis
from builders.synthetic import Campaign
from vtax.analysis.records import Analysis, Verdict
from vtax.model.finding import Finding, Severity
from vtax.model.machine_cost import CPU_TIME, ENERGY, RUN, SECOND, UnitOfWork, metric_of
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind
from vtax.model.reading import ReadValue, TrialReading
from vtax.report.document.answer.lines import lines_of
from vtax.report.document.answer.machine import machine_words
from vtax.report.document.answer.model import Line
from vtax.report.document.compose import document_of
from vtax.report.document.groups import Group
from vtax.report.document.results import results_of

NOISE = (1.0, 1.004, 0.997, 1.002, 0.995, 1.003)


def costing(made: Campaign, unit: UnitOfWork = RUN, metric: str = CPU_TIME, **factors: float) -> Campaign:
    """The campaign in which an entry (`_` for a dash in its name) costs the container so many times the host's."""
    labels = {name.replace("_", "-"): factor for name, factor in factors.items()}
    more: list[Measurement] = []
    for trial in made.trials:
        if trial.warmup or trial.label not in labels:
            continue
        factor = labels[trial.label] if trial.environment == "container" else 1.0
        value = 4.0 * factor * NOISE[(trial.round + trial.round * (trial.environment == "host")) % 6]
        more.append(Measurement.of(trial, metric_of(metric, unit), value, source="record.json"))
    return replace(made, measurements=(*made.measurements, *more))


def line_of(analysis: Analysis, group: Group, environment: str = "container") -> Line:
    return next(line for line in lines_of(analysis) if (line.group, line.environment) == (group, environment))


@pytest.fixture(scope="module")
def plain() -> Campaign:
    return quick()


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.38, "38 % more CPU time"), (0.8, "20 % less CPU time"), (3.2, "3.2 times the CPU time"), (1.0, "")],
)
def test_a_line_says_what_the_same_speed_cost(plain: Campaign, factor: float, words: str) -> None:
    found = line_of(quick_analysis(costing(plain, sysbench_cpu=factor), ()), Group.COMPUTE)
    assert found.machine.partition(" in ")[0] == words
    assert found.result == (f"{found.word}, but {found.machine}" if words else found.word)
    assert "CPU time" not in found.word


def test_it_is_a_cost_of_the_entries_that_it_names(plain: Campaign) -> None:
    analysis = quick_analysis(costing(plain, sysbench_cpu=1.38), ())
    several = [item for item in analysis.comparisons if item.primary and item.environment == "container"]
    own = [item for item in several if item.label == "sysbench-cpu"]
    assert machine_words(analysis, own) == "38 % more CPU time"
    compute = line_of(analysis, Group.COMPUTE)
    others = {item.label for item in compute.comparisons} - {"sysbench-cpu"}
    assert bool(others) is compute.machine.endswith(" in sysbench-cpu")


def test_only_what_is_certain_is_said(plain: Campaign) -> None:
    """A pilot, a correction that takes it back, and what cannot be compared leave the line as it was."""
    costly = costing(plain, sysbench_cpu=1.38)
    blocker = Finding(id="C05", severity=Severity.BLOCKER, message="stolen", remedy="none", metrics=(CPU_TIME,))
    assert line_of(quick_analysis(costly, (blocker,)), Group.COMPUTE).machine == ""
    analysis = quick_analysis(costly, ())
    for verdict in Verdict:
        changed = tuple(
            item.model_copy(update={"verdict": verdict}) if item.metric == CPU_TIME else item
            for item in analysis.comparisons
        )
        said = line_of(analysis.model_copy(update={"comparisons": changed}), Group.COMPUTE).machine
        assert bool(said) is (verdict in (Verdict.SLOWER, Verdict.FASTER)), verdict
    wide = tuple(
        item.model_copy(update={"high": 1.01}) if item.metric == CPU_TIME else item for item in analysis.comparisons
    )
    assert line_of(analysis.model_copy(update={"comparisons": wide}), Group.COMPUTE).machine == ""


def test_a_line_without_a_verdict_says_nothing_of_it() -> None:
    analysis = quick_analysis(costing(quick(rounds=4), sysbench_cpu=1.38), ())
    assert line_of(analysis, Group.COMPUTE).machine == ""


def test_no_other_claim_changes(plain: Campaign) -> None:
    """Its family is its own: whatever it adds, the corrections of all other metrics stay as they are."""
    before = quick_analysis(plain)
    factors = {one.label: 1.0 for one in plain.plan.study.benchmarks}
    after = quick_analysis(costing(plain, RUN, CPU_TIME, **factors))
    rest = tuple(item for item in after.comparisons if item.metric != CPU_TIME)
    assert rest == before.comparisons
    assert after.family == before.family
    assert len(after.comparisons) > len(before.comparisons)
    claimed = [item.p_adjusted for item in after.comparisons if item.metric == CPU_TIME]
    assert any(p is not None for p in claimed)
    assert all(item.sentence.endswith("(exploratory)") for item in after.comparisons if item.metric == CPU_TIME)


def test_an_entry_whose_runs_are_too_short_has_a_row_that_says_so(plain: Campaign) -> None:
    """The readings name the step that was measured; its counts are of less than half a second."""
    report = report_input(plain, quick_analysis(plain))
    counted = {"seconds": 0.49, "busy_ticks": 50.0, "steal_ticks": 0.0, "vtax_cpu_s": 0.0}
    short = next(trial for trial in report.trials if trial.label == "sysbench-cpu" and not trial.warmup)
    steps = {step.step: counted for step in short.steps}
    value = ReadValue(metric="x", value=1.0, unit="s", kind=Kind.COST, primary=True, file=short.steps[-1].stdout)
    reading = TrialReading(trial=short.id, values=(value,))
    trials = tuple(one.model_copy(update={"step_counters": steps}) if one is short else one for one in report.trials)
    changed = report.model_copy(update={"trials": trials, "readings": {**report.readings, short.id: reading}})
    rows = document_of(changed).machine_cost.rows
    (row,) = (row for row in rows if row.cells[0].text == "sysbench-cpu")
    assert "a run took less than 0.5 s" in row.cells[0].note
    assert {cell.text for cell in row.cells[1:]} == {"–"}
    assert document_of(report).machine_cost.rows == ()


def test_it_is_in_its_own_table_and_nowhere_else(plain: Campaign) -> None:
    made = costing(costing(plain, sysbench_cpu=1.38), UnitOfWork("operation", "byte"), ENERGY, storage=1.2)
    report = report_input(made, quick_analysis(made))
    table = document_of(report).machine_cost
    assert [row.cells[0].text for row in table.rows] == [
        "CPU time of the whole machine",
        "sysbench-cpu",
        "Energy of processors and memory",
        "storage",
    ]
    assert table.rows[1].cells[0].note.startswith("per run, s")
    assert table.rows[3].cells[0].note.partition(";")[0] == "J/GB"
    ratio = table.rows[1].cells[3]
    assert ratio.text.startswith("0.72")
    assert ratio.verdict == "exploratory"
    assert all(series.metric not in (CPU_TIME, ENERGY) for series in results_of(report).levels)
    assert all(series.metric not in (CPU_TIME, ENERGY) for series in results_of(report).comparisons)
    for text in (html(report), markdown(report)):
        assert "What it cost the machine" in text
        assert "38 % more CPU time" in text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("unit", "clocked_s", "says"),
    [(RUN, 0.0, "per run, s"), (UnitOfWork("operation"), 5.0, "per operation, s"), (SECOND, 5.0, "CPUs in use")],
)
def test_what_a_unit_of_work_is_called(plain: Campaign, unit: UnitOfWork, clocked_s: float, says: str) -> None:
    work = tuple(one.model_copy(update={"clocked_s": clocked_s}) for one in plain.plan.work)
    made = costing(replace(plain, plan=plain.plan.model_copy(update={"work": work})), unit, sysbench_cpu=1.38)
    table = document_of(report_input(made, quick_analysis(made))).machine_cost
    assert table.rows[1].cells[0].note.partition(";")[0] == says


def test_without_it_a_report_is_as_before(plain: Campaign) -> None:
    report = report_input(plain, quick_analysis(plain))
    assert document_of(report).machine_cost.rows == ()
    assert "What it cost the machine" not in html(report) + markdown(report)


@pytest.mark.parametrize("labels", [{}, {"target": "nowhere"}])
def test_an_entry_elsewhere_says_nothing_about_a_line(plain: Campaign, labels: Mapping[str, str]) -> None:
    analysis = quick_analysis(costing(plain, ping=1.38), ())
    compute = line_of(analysis, Group.COMPUTE)
    several = [item.model_copy(update={"labels": {**item.labels, **labels}}) for item in compute.comparisons]
    assert machine_words(analysis, several) == ""


def test_what_ran_only_in_emulation_has_no_row() -> None:
    made = costing(quick(), sysbench_cpu=1.38)
    only = [one for one in made.measurements if one.metric != CPU_TIME or one.environment == "vm"]
    assert any(one.metric == CPU_TIME for one in only)
    made = replace(made, measurements=tuple(only))
    report = report_input(made, quick_analysis(made))
    assert report.analysis.emulated == ("vm",)
    assert document_of(report).machine_cost.rows == ()
