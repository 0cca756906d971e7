"""What the report says, in order, before it is HTML or Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vtax.analysis.records import VERDICT_FROM, Comparison, Level, Verdict
from vtax.analysis.summary import Series
from vtax.model import Finding, Severity
from vtax.report import setup
from vtax.report.groups import Group
from vtax.report.matrices import matrices, matrix_table
from vtax.report.numbers import labels_text, unit_for
from vtax.report.records import ReportInput
from vtax.report.rungs import rung_table
from vtax.report.tables import (
    PLACES,
    Cell,
    Results,
    Table,
    benchmark_table,
    bundles,
    overview,
    range_cell,
    ratio_cell,
    results_of,
    span,
)
from vtax.units import format_number

QUESTION = "What does virtualization cost, on this hardware, for this work?"
NBSP = "\u00a0"
LOUD = (Severity.BLOCKER, Severity.WARNING)
PILOT = "R01"  # too few rounds: the page says so first of all, in its own words


@dataclass(frozen=True)
class Answer:
    """One metric of one environment, in short."""

    environment: int
    name: str
    metric: str
    result: Cell


@dataclass(frozen=True)
class Link:
    text: str
    href: str


@dataclass(frozen=True)
class Sources:
    """Raw files of one environment in one round."""

    environment: str
    round: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One benchmark entry of the study in one group."""

    label: str
    benchmark: str
    table: Table | None
    matrices: tuple[Table, ...]
    sources: tuple[Sources, ...]


@dataclass(frozen=True)
class Section:
    """One part of the machine: the answer in short, and the tables of its benchmarks."""

    group: Group
    answers: tuple[Answer, ...]
    entries: tuple[Entry, ...]

    @property
    def anchor(self) -> str:
        return self.group.name.lower()


@dataclass(frozen=True)
class Page:
    title: str
    question: str
    subject: str
    caution: str
    reading: str
    stopping: tuple[Finding, ...]  # blockers that make numbers not comparable, for the top of the page
    warned: str  # the warnings in a word each
    loud: tuple[Finding, ...]
    quiet: tuple[Finding, ...]
    overview: Table
    ladder: Table
    sections: tuple[Section, ...]
    failures: Table
    matched: Table
    other_facts: Table
    machine: Table
    other_machine: Table
    versions: Table
    built: tuple[tuple[str, str], ...]
    plan: Table
    work: Table
    environments: tuple[str, ...]


def page_of(report: ReportInput) -> Page:
    """The whole page, but for the figures."""
    analysis = report.analysis
    results = results_of(report)
    machine, other_machine = setup.machine(report)
    return Page(
        title=analysis.campaign,
        question=QUESTION,
        subject=_subject(report),
        caution=_caution(report),
        reading=_reading(report),
        loud=tuple(item for item in analysis.findings if item.severity in LOUD),
        stopping=tuple(item for item in analysis.findings if item.severity is Severity.BLOCKER and item.id != PILOT),
        warned=_warned(analysis.findings),
        quiet=tuple(item for item in analysis.findings if item.severity not in LOUD),
        overview=overview(results),
        ladder=rung_table(analysis),
        sections=_sections(report, results),
        failures=setup.failures(report),
        matched=setup.matched(report),
        other_facts=setup.other_facts(report),
        machine=machine,
        other_machine=other_machine,
        versions=setup.versions(report),
        built=setup.built(report),
        plan=setup.plan(report),
        work=setup.frozen_work(report),
        environments=analysis.environments,
    )


def _warned(findings: Sequence[Finding]) -> str:
    """The warnings by id: `C04, H03 (4 times)`."""
    counts = Counter(item.id for item in findings if item.severity is Severity.WARNING)
    return ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in sorted(counts.items()))


def _subject(report: ReportInput) -> str:
    plan, analysis = report.plan, report.analysis
    others = [name for name in analysis.environments if name != analysis.baseline]
    nodes = plan.shape.nodes
    return (
        f"{_listed(others)} against {analysis.baseline}: "
        f"{len(nodes)} {_plural(len(nodes), 'node')} in each environment, "
        f"{len(plan.study.benchmarks)} benchmark {_plural(len(plan.study.benchmarks), 'entry', 'entries')}, "
        f"{analysis.rounds_complete} of {analysis.rounds_planned} "
        f"{_plural(analysis.rounds_planned, 'round')} complete."
    )


def _caution(report: ReportInput) -> str:
    """How far the answer may be trusted, in one paragraph."""
    analysis = report.analysis
    verdicts = Counter(item.verdict for item in analysis.comparisons if item.primary)
    if not verdicts:
        return "There is nothing to compare: no primary metric was measured in two environments."
    if any(item.n >= VERDICT_FROM for item in analysis.comparisons if item.primary):
        told = _listed([f"{verdicts[word]} {word}" for word in Verdict if verdicts[word]])
        return (
            f"Of {verdicts.total()} comparisons of primary metrics: {told}. There is at most a 5{NBSP}% chance "
            f"that any “faster” or “slower” is false, and separately at most 5{NBSP}% for any “equivalent” or "
            f"“trivial” (Holm's correction). Each interval is an individual 95{NBSP}% interval; "
            "inconclusive never means equal."
        )
    if set(verdicts) == {Verdict.NOT_COMPARABLE}:
        return "Not comparable: the findings below rule out every comparison."
    return (
        f"Pilot only: a verdict needs at least {VERDICT_FROM} rounds in which both environments have a result. "
        "The ratios describe these runs; they do not show that anything is faster, slower or the same."
    )


def _reading(report: ReportInput) -> str:
    base = report.analysis.baseline
    return (
        f"Relative performance: above 1 is better than {base}, below 1 is worse, for rates and for times alike "
        f"(0.5 is half the rate, or twice the time). It is the geometric mean of the ratios within each round; "
        f"brackets hold its 95{NBSP}% t interval over rounds, shown from three rounds on. "
        f"Equivalent: the interval lies within {100 * report.analysis.margin:g}{NBSP}% of {base}. "
        "Trivial: it does, without 1 in it. "
        "Unadjusted: its own interval makes the claim, the correction for all comparisons does not confirm it."
    )


def _sections(report: ReportInput, results: Results) -> tuple[Section, ...]:
    sections = []
    for group in Group:
        members = [series for series in results.levels if results.group(series) is group]
        by_label: dict[tuple[str, str], list[Series]] = {}
        for series in members:
            by_label.setdefault((series.benchmark, series.label), []).append(series)
        entries = tuple(_entry(report, results, *key, several) for key, several in by_label.items())
        if entries:
            sections.append(Section(group, _answers(results, members), entries))
    return tuple(sections)


def _entry(report: ReportInput, results: Results, benchmark: str, label: str, several: Sequence[Series]) -> Entry:
    found = matrices(several)
    inside = {series for matrix in found for series in matrix.members}
    flat = [series for series in several if series not in inside]
    table = benchmark_table(results, flat, report.meanings.get(benchmark, {})) if flat else None
    return Entry(label, benchmark, table, tuple(matrix_table(results, m) for m in found), _sources(results, several))


def _sources(results: Results, several: Sequence[Series]) -> tuple[Sources, ...]:
    files: dict[tuple[int, int], dict[str, None]] = {}
    for series in several:
        for environment, level in results.levels[series].items():
            for cell in level.cells:
                key = (results.environments.index(environment), cell.round)
                files.setdefault(key, {}).update(dict.fromkeys(cell.sources))
    return tuple(
        Sources(results.environments[place], number, tuple(sorted(names)))
        for (place, number), names in sorted(files.items())
    )


def _answers(results: Results, members: Sequence[Series]) -> tuple[Answer, ...]:
    """Each primary metric of each environment on one line: a ratio with its interval, or a range over places."""
    answers = []
    for environment in results.others:
        for several in bundles(series for series in members if results.first(series).primary):
            found = [
                results.comparisons[series].get(environment) for series in several if series in results.comparisons
            ]
            there = [item for item in found if item is not None]
            if there:
                kept = {
                    k: v for k, v in several[0].labels if len(several) == 1 or (k not in PLACES and not v.isdecimal())
                }
                words = (several[0].metric, labels_text(kept))
                name = ", ".join(word for word in words if word)
                place = results.environments.index(environment)
                alone = [results.levels[series][environment] for series in several]
                answers.append(Answer(place, environment, f"{several[0].label}: {name}", _short(there, alone)))
    return tuple(answers)


def _short(found: Sequence[Comparison], levels: Sequence[Level]) -> Cell:
    """A ratio, a range of ratios, or, where the baseline has nothing to compare with, what was measured."""
    if all(item.ratio is None for item in found) and all(item.verdict is Verdict.DATA_ONLY for item in found):
        factor, unit = unit_for(levels)
        means = span([level.mean / factor for level in levels], format_number)
        return Cell(f"{means} {unit}".rstrip(), "no counterpart in the baseline")
    if len(found) > 1:
        cell = range_cell(found)
        return Cell(cell.text, f"{len(found)} results{'; ' if cell.note else ''}{cell.note}", cell.badge)
    return ratio_cell(found[0], explain=True)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nothing"


def _plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"
