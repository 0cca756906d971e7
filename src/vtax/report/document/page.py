"""What the report says, in order, before it is HTML or Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import VERDICT_FROM, Verdict
from vtax.model.finding import Finding, Severity
from vtax.model.metric import Kind
from vtax.report.document import imported, setup
from vtax.report.document.answers import NBSP, Answer, answers, compared, resolution
from vtax.report.document.conclusion import Paragraph, conclusion
from vtax.report.document.findings import Box, anchored, boxes, tally, warned
from vtax.report.document.groups import Group
from vtax.report.document.ladder_table import rung_table
from vtax.report.document.matrices import matrices, matrix_table
from vtax.report.document.numbers import labels_text, listed, plural
from vtax.report.document.peaks import peak_flops, peaks
from vtax.report.document.published import published
from vtax.report.document.scores import score_table
from vtax.report.document.tables import Context, Results, Table, benchmark_table, overview, results_of
from vtax.report.records import ReportInput

QUESTION = "What does virtualization cost, on this hardware, for this work?"
LOUD = (Severity.BLOCKER, Severity.WARNING)
NAMED = 3  # places that a note names before it counts
PILOT = "R01"  # too few rounds: the page says so first of all, in its own words


@dataclass(frozen=True)
class Sources:
    """Raw files of one target: of each environment (round, file) in order. `anchor` is where numbers link to."""

    anchor: str
    target: str
    files: tuple[tuple[tuple[int, str], ...], ...]


@dataclass(frozen=True)
class Entry:
    """One benchmark entry of the study in one group."""

    label: str
    benchmark: str
    series: tuple[Series, ...]
    table: Table | None
    counts: Table | None  # what has no better and worse
    matrices: tuple[Table, ...]
    sources: tuple[Sources, ...]
    findings: tuple[Box, ...]  # that name this entry, and metrics of this part of the machine if any
    tally: str  # how many they are
    notes: tuple[str, ...]  # what its numbers say besides the verdicts
    peak: float | None = None  # of its nodes, flop/s
    published: Table | None = None  # figures of other machines, where they were asked for
    published_anchor: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the machine: the tables of its benchmarks."""

    group: Group
    entries: tuple[Entry, ...]

    @property
    def anchor(self) -> str:
        return self.group.name.lower()

    def anchored(self) -> tuple[tuple[str, Entry], ...]:
        """The entries, each with its id in the page."""
        return tuple((f"{self.anchor}{number}", entry) for number, entry in enumerate(self.entries, 1))


@dataclass(frozen=True)
class Page:
    title: str
    question: str
    subject: str
    caution: str
    resolution: str
    ended: str
    answers: tuple[Answer, ...]
    conclusion: tuple[Paragraph, ...]
    reading: str
    stopping: tuple[Box, ...]  # blockers that make numbers not comparable, for the top of the page
    warned: str  # what the audit warns of, in few words
    loud: tuple[Box, ...]
    quiet: tuple[Finding, ...]
    overview: Table
    scores: Table
    ladder: Table
    sections: tuple[Section, ...]
    failures: Table
    matched: Table
    other_facts: Table
    machine: Table
    other_machine: Table
    peaks: Table
    versions: Table
    other_versions: Table
    built: tuple[tuple[str, str], ...]
    plan: Table
    work: Table
    commands: tuple[tuple[str, str], ...]
    image: Table
    cells: Table
    environments: tuple[str, ...]
    baseline: str
    imported: bool = False
    files: Table | None = None  # that were imported

    @property
    def anchors(self) -> dict[str, str]:
        """Where in the page what each row of the audit found stands."""
        return {box.id: box.anchor for box in self.loud if box.anchor}


def page_of(report: ReportInput) -> Page:
    """The whole page, but for the figures."""
    analysis = report.analysis
    results = results_of(report)
    machine, other_machine = setup.machine(report)
    versions, other_versions = setup.versions(report)
    foreign = imported.is_imported(report)
    loud = anchored(boxes(item for item in analysis.findings if item.severity in LOUD))
    return Page(
        title=analysis.campaign,
        question=QUESTION,
        subject=imported.subject(report) if foreign else _subject(report),
        caution=imported.caution(report) if foreign else _caution(report),
        resolution=imported.RESOLUTION if foreign else resolution(analysis),
        ended=analysis.ended,
        answers=answers(analysis, planned=not foreign),
        conclusion=conclusion(report),
        reading=imported.reading(report) if foreign else _reading(report),
        loud=loud,
        stopping=tuple(box for box in loud if box.severity is Severity.BLOCKER and box.id != PILOT),
        warned=warned(analysis.findings),
        quiet=tuple(item for item in analysis.findings if item.severity not in LOUD),
        overview=imported.of_runs(overview(results)) if foreign else overview(results),
        scores=score_table(analysis),
        ladder=rung_table(analysis),
        sections=_sections(report, results),
        failures=setup.failures(report),
        matched=setup.matched(report),
        other_facts=setup.other_facts(report),
        machine=machine,
        other_machine=other_machine,
        peaks=peaks(report),
        versions=versions,
        other_versions=other_versions,
        built=setup.built(report),
        plan=imported.plan(report) if foreign else setup.plan(report),
        work=setup.frozen_work(report),
        commands=setup.commands(report),
        image=setup.image(report),
        cells=setup.cells(report),
        environments=analysis.environments,
        baseline=analysis.baseline,
        imported=foreign,
        files=imported.files(report) if foreign else None,
    )


def _subject(report: ReportInput) -> str:
    plan, analysis = report.plan, report.analysis
    others = [name for name in analysis.environments if name != analysis.baseline]
    nodes = plan.shape.nodes
    return (
        f"{listed(others)} against {analysis.baseline}: "
        f"{len(nodes)} {plural(len(nodes), 'node')} in each environment, "
        f"{len(plan.study.benchmarks)} benchmark {plural(len(plan.study.benchmarks), 'entry', 'entries')}, "
        f"{analysis.rounds_complete} of {analysis.rounds_planned} "
        f"{plural(analysis.rounds_planned, 'round')} complete."
    )


def _caution(report: ReportInput) -> str:
    """How far the answer may be trusted, in one paragraph."""
    analysis = report.analysis
    known = compared(analysis)
    verdicts = Counter(item.verdict for item in known)
    if not verdicts:
        return "There is nothing to compare: no primary metric was measured in two environments."
    if set(verdicts) == {Verdict.NOT_COMPARABLE}:
        many = f"all {len(known)} comparisons" if len(known) > 1 else "the one comparison"
        return f"Not comparable: blockers of the audit rule out {many} of primary metrics."
    if any(item.n >= VERDICT_FROM for item in known):
        told = listed([f"{verdicts[word]} {word}" for word in Verdict if verdicts[word]])
        return (
            f"Of {verdicts.total()} comparisons of primary metrics: {told}. There is at most a 5{NBSP}% chance "
            f"that any “faster” or “slower” is false, and separately at most 5{NBSP}% for any “equivalent” or "
            f"“trivial” (Holm's correction). Each interval is an individual 95{NBSP}% interval; "
            "inconclusive never means equal."
        )
    return (
        f"Pilot only: a verdict needs at least {VERDICT_FROM} rounds in which both environments have a result. "
        "The ratios describe these runs; they do not show that anything is faster, slower or the same."
    )


def _reading(report: ReportInput) -> str:
    base = report.analysis.baseline
    return (
        f"Relative performance: above 1 is better than {base}, below 1 is worse, for rates and for times alike "
        f"(0.5 is half the rate, or twice the time). It is the geometric mean of the ratios within each round. "
        f"{_interval(report)}"
        f"Equivalent: the interval lies within {100 * report.analysis.margin:g}{NBSP}% of {base}. "
        "Trivial: it does, without 1 in it. "
        "Unadjusted: its own interval makes the claim, the correction for all comparisons does not confirm it."
    )


def _interval(report: ReportInput) -> str:
    """What the brackets hold."""
    level, more = report.analysis.a_look, report.analysis.anytime_wider
    if report.plan.study.anytime:
        cost = f", here {100 * more:.0f}{NBSP}% wider than intervals of six planned looks" if more is not None else ""
        return (
            f"Brackets hold its anytime-valid interval over rounds: wider than a 95{NBSP}% t interval{cost}, so that "
            f"the campaign may be looked at after every round, and it misses at any of them in 5{NBSP}% of campaigns. "
        )
    if level is None or len(report.analysis.looks) < 2:
        return f"Brackets hold its 95{NBSP}% t interval over rounds, shown from three rounds on. "
    return (
        f"Brackets hold its {100 * (1 - level):.4g}{NBSP}% t interval over rounds: wider than 95{NBSP}%, so that at "
        f"whatever planned look the campaign stops, it misses in 5{NBSP}% of campaigns. "
    )


def _sections(report: ReportInput, results: Results) -> tuple[Section, ...]:
    sections = []
    seen: set[tuple[str, str]] = set()
    for group in Group:
        members = [series for series in results.levels if results.group(series) is group]
        by_label: dict[tuple[str, str], list[Series]] = {}
        for series in members:
            by_label.setdefault((series.benchmark, series.label), []).append(series)
        entries = tuple(_entry(report, results, *key, several, again=key in seen) for key, several in by_label.items())
        seen.update(by_label)
        if entries:
            sections.append(Section(group, entries))
    return tuple(sections)


def _entry(
    report: ReportInput, results: Results, benchmark: str, label: str, several: Sequence[Series], *, again: bool
) -> Entry:
    """An entry in one part of the machine; `again` when an earlier part has it too."""
    found = matrices(several)
    inside = {series for matrix in found for series in matrix.members}
    flat = [series for series in several if series not in inside]
    counted = {series for series in flat if results.first(series).kind is Kind.COUNT}
    meanings = report.meanings.get(benchmark, {})
    peak = peak_flops(report, label) if any(series.metric == "HPL" for series in several) else None
    names = report.plan.names_of(benchmark, label)
    about = boxes(f for f in report.analysis.findings if f.benchmark in names and _belongs(f, several, again=again))
    context = Context({} if peak is None else {label: peak}, report.references)
    return Entry(
        label=label,
        benchmark=benchmark,
        series=tuple(several),
        table=benchmark_table(results, [s for s in flat if s not in counted], meanings, context),
        counts=benchmark_table(results, [s for s in flat if s in counted], meanings),
        matrices=tuple(matrix_table(results, m) for m in found),
        sources=_sources(results, several),
        findings=about,
        tally=tally(about),
        notes=_notes(results, several),
        peak=peak,
        published=published(results, several, context),
        published_anchor=results.published(several[0]),
    )


def _belongs(finding: Finding, several: Sequence[Series], *, again: bool) -> bool:
    """Whether a finding about an entry stands in a part of the machine: the one with its metrics, else the first."""
    if not finding.metrics and not finding.labels:
        return not again
    everywhere = (finding.environment,)
    return any(finding.touches(everywhere, (finding.benchmark,), s.metric, dict(s.labels)) for s in several)


def _notes(results: Results, several: Sequence[Series]) -> tuple[str, ...]:
    """What the comparisons of an entry say besides their verdicts, one sentence each, with all that it is true of."""
    found: dict[str, list[str]] = {}
    for series in several:
        for environment, item in results.comparisons.get(series, {}).items():
            for note in item.notes:
                where = ", ".join(word for word in (item.metric, labels_text(item.labels), environment) if word)
                found.setdefault(f"{note.id}: {note.message}", []).append(where)
    return tuple(f"{text} ({_first(places)})" for text, places in found.items())


def _first(places: Sequence[str]) -> str:
    more = len(places) - NAMED
    return "; ".join(places[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _sources(results: Results, several: Sequence[Series]) -> tuple[Sources, ...]:
    """The raw files of an entry, by target and environment, each once."""
    found: dict[str, tuple[str, list[dict[tuple[int, str], None]]]] = {}
    for series in several:
        target = dict(series.labels).get("target", "")
        _, files = found.setdefault(results.raw(series), (target, [{} for _ in results.environments]))
        for environment, level in results.levels[series].items():
            own = files[results.environments.index(environment)]
            for cell in level.cells:
                own.update(dict.fromkeys((cell.round, source) for source in cell.sources))
    return tuple(
        Sources(anchor, target, tuple(tuple(sorted(own)) for own in files)) for anchor, (target, files) in found.items()
    )
