"""The sections of the report: one for each part of the machine, in it the entries of the study."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.estimate.summary import Series
from vtax.model.finding import Finding
from vtax.model.metric import Kind
from vtax.report.document.findings import boxes, tally
from vtax.report.document.groups import Group
from vtax.report.document.matrices import matrices, matrix_table
from vtax.report.document.model import Entry, Section, Sources
from vtax.report.document.numbers import labels_text
from vtax.report.document.peaks import has_peak, peak_flops
from vtax.report.document.published import published
from vtax.report.document.results import Results
from vtax.report.document.tables import Context, benchmark_table, shown_of
from vtax.report.records import ReportInput

NAMED = 3  # series that a note names before it counts
MANY = 24  # notes of one kind: more of them are counted


def sections(report: ReportInput, results: Results) -> tuple[Section, ...]:
    found = []
    seen: set[tuple[str, str]] = set()
    for group in Group:
        members = [series for series in results.levels if results.group(series) is group]
        by_label: dict[tuple[str, str], list[Series]] = {}
        for series in members:
            by_label.setdefault((series.benchmark, series.label), []).append(series)
        entries = tuple(_entry(report, results, *key, several, again=key in seen) for key, several in by_label.items())
        seen.update(by_label)
        if entries:
            found.append(Section(group, entries))
    return tuple(found)


def _entry(
    report: ReportInput, results: Results, benchmark: str, label: str, several: Sequence[Series], *, again: bool
) -> Entry:
    """An entry in one part of the machine; `again` when an earlier part has it too."""
    found = matrices(several)
    inside = {series for matrix in found for series in matrix.members}
    flat = [series for series in several if series not in inside]
    shown = set(shown_of(results, flat))
    counted = {series for series in flat if results.first(series).kind is Kind.COUNT}
    meanings = report.meanings.get(label, {})
    peak = peak_flops(report, label) if any(has_peak(results.first(series)) for series in several) else None
    names = report.plan.names_of(benchmark, label)
    about = boxes(
        one
        for one in report.analysis.findings
        if one.benchmark in names and one.environment not in results.emulated and _belongs(one, several, again=again)
    )
    context = Context({} if peak is None else {label: peak}, report.references, _words(report, label))
    return Entry(
        label=label,
        benchmark=benchmark,
        series=tuple(several),
        table=benchmark_table(results, [s for s in flat if s not in counted], meanings, context),
        counts=benchmark_table(results, [s for s in flat if s in counted], meanings),
        matrices=tuple(matrix_table(results, m) for m in found),
        sources=_sources(results, [s for s in several if s in inside or s in shown]),
        findings=about,
        tally=tally(about),
        notes=_notes(results, several),
        peak=peak,
        published=published(results, several, context),
        published_anchor=results.published(several[0]),
    )


def _words(report: ReportInput, label: str) -> dict[str, str]:
    """What an entry of the study says about its work, by which published results are found."""
    spec = next((one for one in report.plan.study.benchmarks if one.label == label), None)
    if spec is None:
        return {}
    values = spec.params.get("values")
    own = {**(values if isinstance(values, dict) else {}), **spec.point}
    return {key: str(value) for key, value in own.items()} | ({"workload": spec.workload} if spec.workload else {})


def _belongs(finding: Finding, several: Sequence[Series], *, again: bool) -> bool:
    """Whether a finding about an entry belongs to a part of the machine: the one with its metrics, else the first."""
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
    by_id: dict[str, list[str]] = {}
    for text in found:
        by_id.setdefault(text.partition(":")[0], []).append(text)
    sentences = []
    for several_texts in by_id.values():
        shown = several_texts if len(several_texts) <= MANY else several_texts[:NAMED]
        sentences += [f"{text} ({_first(found[text])})" for text in shown]
        if more := len(several_texts) - len(shown):
            sentences.append(f"{shown[0].partition(':')[0]}: the same, with other numbers, of {more} more comparisons")
    return tuple(sentences)


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
