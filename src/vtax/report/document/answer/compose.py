"""The answer, put together once for a report; the terminal shows the same."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.records import Analysis
from vtax.model.plan import Origin
from vtax.report.document import imported
from vtax.report.document.answer.deciding import deciding
from vtax.report.document.answer.emulated import emulated_table, emulated_text
from vtax.report.document.answer.headline import headline
from vtax.report.document.answer.limits import limits_of
from vtax.report.document.answer.lines import lines_of
from vtax.report.document.answer.model import Answer, Line, Lines
from vtax.report.document.answer.wording import shown
from vtax.report.document.cells import ratio_of
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.document.numbers import ABSENT, listed, plural
from vtax.report.document.results import Results, results_of
from vtax.report.records import ReportInput

QUESTION = "What does virtualization cost, on this hardware, for this work?"


def answer_of(report: ReportInput, results: Results | None = None) -> Answer:
    """What the report says first."""
    analysis, foreign = report.analysis, report.plan.origin is Origin.IMPORTED
    emulated = analysis.emulated
    lines = lines_of(analysis, imported=foreign)
    known = [item for line in lines for item in line.comparisons]
    results = results or results_of(report)
    return Answer(
        headline=headline(lines, emulated, imported=foreign),
        question=QUESTION,
        subject=imported.subject(report) if foreign else subject(report),
        baseline=analysis.baseline,
        lines=lines,
        table=lines_table(lines, analysis.baseline),
        decide=deciding(report, lines),
        limits=limits_of(report, known),
        emulated=emulated_table(results),
        emulated_text=emulated_text(emulated),
        against=tuple(_against(one) for one in report.against),
    )


def _against(analysis: Analysis) -> Lines:
    lines = lines_of(analysis)
    return Lines(analysis.baseline, lines, lines_table(lines, analysis.baseline))


def lines_table(lines: Sequence[Line], baseline: str) -> Table:
    """The lines as a table."""
    columns = ("Resource", "Environment", "Result", f"Relative to {baseline}")
    rows = tuple(
        Row(
            (Cell(line.resource), Cell(shown(line.environment), environment=line.place), Cell(line.result), _size(line))
        )
        for line in lines
    )
    return Table("The answer", tuple(map(Column, columns)), rows)


def _size(line: Line) -> Cell:
    """The number of a line; of one comparison also as a ratio."""
    value = ratio_of(line.comparisons[0]) if len(line.comparisons) == 1 else None
    return Cell(line.size or ABSENT, value=value)


def subject(report: ReportInput) -> str:
    """What was compared, in one sentence."""
    plan, analysis = report.plan, report.analysis
    others = [name for name in analysis.environments if name not in (analysis.baseline, *analysis.emulated)]
    nodes, entries = plan.shape.nodes, plan.study.benchmarks
    against = f" against {analysis.baseline}" if others else ""
    first, *more = others or [analysis.baseline]
    compared = f"{listed([shown(first), *more])}{against}"
    machines = len(plan.study.machines)
    where = f" on {machines} {plural(machines, 'machine')}" if machines else ""
    return (
        f"{compared}{where}: {len(nodes)} {plural(len(nodes), 'node')} in each environment, "
        f"{len(entries)} benchmark {plural(len(entries), 'entry', 'entries')}, {analysis.rounds_complete} of "
        f"{analysis.rounds_planned} {plural(analysis.rounds_planned, 'round')} complete."
    )
