"""The answer and the conclusion in sentences, by rule from verdicts, findings and the ladder. Pure; no markup.

Nothing is explained that the audit or a step of the ladder does not support, and no numbers are merged into a score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from vtax.analysis.records import VERDICT_FROM, Analysis, Comparison, Verdict
from vtax.model.finding import Finding, Severity
from vtax.model.plan import Origin
from vtax.report.groups import Group, group_of
from vtax.report.ladder import steps_of
from vtax.report.numbers import interval_text, labels_text, listed, plural, ratio_text
from vtax.report.records import ReportInput
from vtax.report.tables import PLACES

NBSP = "\u00a0"
CLAIMS = (Verdict.SLOWER, Verdict.FASTER)
WITHIN = (Verdict.EQUIVALENT, Verdict.TRIVIAL)
FEW = 4  # metrics that a sentence names


@dataclass(frozen=True)
class Clause:
    """What is said of one environment: `verdicts` are the words that it comes to, both claims if it has both."""

    environment: int
    name: str
    verdicts: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Answer:
    """One sentence about one part of the machine, in clauses of one environment each."""

    group: Group
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Paragraph:
    title: str
    sentences: tuple[str, ...]


def answers(analysis: Analysis, *, planned: bool = True) -> tuple[Answer, ...]:
    """For each part of the machine that a primary metric is about, what each environment costs there.

    Runs that were not `planned` are no rounds, and get no verdict.
    """
    found = []
    for group in Group:
        own = [item for item in analysis.comparisons if item.primary and group_of(item) is group]
        clauses = tuple(
            clause(analysis, place, name, several, planned=planned)
            for place, name in enumerate(analysis.environments)
            if (several := [item for item in own if item.environment == name and not is_control(item)])
        )
        if clauses:
            found.append(Answer(group, clauses))
    return tuple(found)


def is_control(item: Comparison) -> bool:
    """Whether it compares the baseline with itself."""
    return item.control


def clause(analysis: Analysis, place: int, name: str, several: Sequence[Comparison], *, planned: bool = True) -> Clause:
    """Of the primary metrics of an environment: how many have which verdict, and between which ratios they lie."""
    told = _clause(analysis, place, name, several, planned=planned)
    lost = sum(item.planned and item.n == 0 for item in several)
    if not lost or lost == len(several):
        return told
    text = f"{told.text}; {lost} of {len(several)} primary metrics have no round with a result in both"
    return replace(told, text=text, verdicts=tuple(dict.fromkeys((*told.verdicts, str(Verdict.DATA_ONLY)))))


def _clause(analysis: Analysis, place: int, name: str, several: Sequence[Comparison], *, planned: bool) -> Clause:
    base = analysis.baseline
    compared = [item for item in several if item.ratio is not None]
    if all(item.verdict is Verdict.NOT_COMPARABLE for item in several):
        return Clause(place, name, (Verdict.NOT_COMPARABLE,), f"not comparable with {base}: a finding rules it out")
    if not compared and any(item.planned for item in several):
        text = f"nothing to compare: no round has a result in both it and {base}"
        return Clause(place, name, (Verdict.DATA_ONLY,), text)
    if not compared:
        return Clause(place, name, (Verdict.DATA_ONLY,), f"no counterpart in {base} to compare with")
    counts = Counter(item.verdict for item in compared)
    if not any(counts[word] for word in Verdict if word not in (Verdict.PILOT, Verdict.DATA_ONLY)):
        rounds = max(item.n for item in compared)
        told = f"{ratios(compared)} of {base} over {rounds} {plural(rounds, 'round')}; no verdict before {VERDICT_FROM}"
        if not planned:
            known = [item for item in compared if item.verdict is not Verdict.NOT_COMPARABLE]
            left = len(compared) - len(known)
            beside = f"; {left} not comparable" if left else ""
            runs = f"up to {rounds} {plural(rounds, 'run')} on each side"
            told = f"{ratios(known)} of {base}, {runs}; imported, so no verdict{beside}"
        return Clause(place, name, (str(compared[0].verdict),), told)
    if len(compared) == 1:
        return Clause(place, name, (str(compared[0].verdict),), _one(analysis, compared[0]))
    words = [word for word in (*CLAIMS, *WITHIN, *Verdict) if counts[word]]
    parts = []
    for word in dict.fromkeys(words):
        own = [item for item in compared if item.verdict is word]
        many = f"all {len(own)}" if len(own) == len(compared) else f"{len(own)} of {len(compared)}"
        sized = word is not Verdict.NOT_COMPARABLE and (word not in WITHIN or len(own) == len(compared))
        size = f" ({ratios(own)} of {base})" if sized else ""
        parts.append(f"{word} in {many}{size}")
    claims = tuple(word for word in CLAIMS if counts[word]) if not counts[Verdict.NOT_COMPARABLE] else ()
    text = f"{listed(parts)} primary metrics" if len(parts) == 1 else listed(parts)
    return Clause(place, name, tuple(map(str, claims or (_worst(counts),))), text)


def _one(analysis: Analysis, item: Comparison) -> str:
    assert item.ratio is not None
    size = f"{ratio_text(item.ratio)}{interval_text(item)} of {analysis.baseline} in {item.metric}"
    return f"{item.verdict}: {size}"


def _worst(counts: Counter[Verdict]) -> Verdict:
    """The verdict that a reader must not miss: a cost first, then what is not known."""
    order = (Verdict.NOT_COMPARABLE, Verdict.SLOWER, Verdict.FASTER, Verdict.UNADJUSTED, Verdict.INCONCLUSIVE)
    return next((word for word in order if counts[word]), next(word for word in Verdict if counts[word]))


def ratios(several: Sequence[Comparison]) -> str:
    """`0.93` or `0.03 to 0.93`."""
    known = [item.ratio for item in several if item.ratio is not None]
    low, high = ratio_text(min(known)), ratio_text(max(known))
    return low if low == high else f"{low} to {high}"


def resolution(analysis: Analysis) -> str:
    """The smallest differences that this experiment can tell, from its control arm or from its own intervals."""
    if analysis.resolution is not None:
        return (
            f"Resolution: ±{percent(analysis.resolution)}{NBSP}%, the widest interval of {analysis.baseline} against "
            f"itself ({analysis.control}). Smaller differences are not told apart."
        )
    known = [item for item in analysis.comparisons if item.primary and item.verdict is not Verdict.NOT_COMPARABLE]
    widths = [_half_width(item) for item in known if item.low and item.high]
    if not widths:
        return "Resolution: unknown, since an interval needs at least three rounds."
    typical, widest = percent(median(widths)), percent(max(widths))
    return (
        f"Resolution: half of the {len(widths)} intervals are no wider than ±{typical}{NBSP}%, the widest is "
        f"±{widest}{NBSP}%. Without a control arm this is what the noise allows, not what identical systems showed."
    )


def _half_width(item: Comparison) -> float:
    """Half of an interval as a share: the factor from its middle to its ends, less one."""
    assert item.low is not None and item.high is not None
    return float((item.high / item.low) ** 0.5 - 1)


def percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.0f}"


def conclusion(report: ReportInput) -> tuple[Paragraph, ...]:
    """One paragraph for each environment, one about what the answer does not say."""
    analysis = report.analysis
    found = []
    for name in analysis.environments:
        own = [
            item for item in analysis.comparisons if item.environment == name and item.primary and not is_control(item)
        ]
        if own and name != analysis.baseline:
            found.append(Paragraph(f"{name} against {analysis.baseline}", tuple(_about(report, name, own))))
    found.append(Paragraph("What this does not say", tuple(_limits(report))))
    if analysis.advice:
        found.append(Paragraph("For the next campaign", analysis.advice))
    return tuple(found)


def _about(report: ReportInput, name: str, own: Sequence[Comparison]) -> list[str]:
    analysis = report.analysis
    counts = Counter(item.verdict for item in own)
    told = listed([f"{counts[word]} {word}" for word in Verdict if counts[word]])
    sentences = [f"Of {len(own)} comparisons of primary metrics: {told}."]
    for word, said in ((Verdict.SLOWER, "The largest costs"), (Verdict.FASTER, "The largest gains")):
        claims = sorted(
            (item for item in own if item.verdict is word and item.effect), key=lambda i: -abs(i.effect or 0)
        )
        if claims:
            sentences.append(f"{said}: {listed([_named(item) for item in claims[:FEW]])}.")
    within = [item for item in own if item.verdict in WITHIN]
    if within:
        names = listed(list(dict.fromkeys(f"{item.label} {item.metric}" for item in within))[:FEW])
        margin = f"{100 * analysis.margin:g}{NBSP}%"
        sentences.append(f"Within the margin of {margin}: {names}{' and others' if len(within) > FEW else ''}.")
    sentences += _causes(report, name, [item for item in own if item.verdict in CLAIMS])
    return sentences


def _named(item: Comparison) -> str:
    assert item.ratio is not None
    kept = {k: v for k, v in item.labels.items() if k not in PLACES or k in ("client", "server")}
    where = labels_text(kept)
    return f"{item.label} {item.metric}{f' ({where})' if where else ''} {ratio_text(item.ratio)}{interval_text(item)}"


def _causes(report: ReportInput, name: str, claims: Sequence[Comparison]) -> list[str]:
    """A cause for what was claimed, where a finding or a step of the ladder touches it; else that none is known."""
    if not claims:
        return []
    sentences = []
    labels = list(dict.fromkeys(item.label for item in claims))
    explained: set[str] = set()
    for label in labels:
        benchmark = next(item.benchmark for item in claims if item.label == label)
        touching = touches(report.analysis.findings, name, label, benchmark)
        if touching:
            explained.add(label)
            said = listed(list(dict.fromkeys(f"{item.id} ({item.message.rstrip('.')})" for item in touching))[:FEW])
            sentences.append(f"The audit saw at {label}: {said}. That may be a cause, or part of one.")
    for step in steps_of(report.analysis, name):
        explained.add(step.label)
        sentences.append(step.sentence)
    silent = [label for label in labels if label not in explained]
    if silent:
        sentences.append(
            f"No finding about {listed(silent)} and no step of a ladder supports a cause, so none is named here."
        )
    return sentences


def touches(findings: Sequence[Finding], environment: str, label: str, benchmark: str) -> list[Finding]:
    """Blockers and warnings that name this benchmark, of this environment or of all.

    One that is about everything explains nothing.
    """
    return [
        item
        for item in findings
        if item.severity is not Severity.INFO
        and item.benchmark in (label, benchmark)
        and item.environment in ("", environment)
    ]


def _limits(report: ReportInput) -> list[str]:
    analysis = report.analysis
    sentences = []
    undecided = sum(item.verdict is Verdict.INCONCLUSIVE for item in analysis.comparisons if item.primary)
    pilot = sum(item.verdict in (Verdict.PILOT, Verdict.DATA_ONLY) for item in analysis.comparisons if item.primary)
    if undecided:
        sentences.append(f"{undecided} primary comparisons are inconclusive: that is not evidence of equality.")
    foreign = report.plan.origin is Origin.IMPORTED
    if pilot and foreign:
        sentences.append(f"{pilot} primary comparisons are of imported runs, which support no verdict.")
    elif pilot:
        sentences.append(f"{pilot} primary comparisons have too few rounds, or nothing to compare with, for a verdict.")
    for item in analysis.findings:
        if item.severity is Severity.WARNING and not item.benchmark:
            sentences.append(f"{item.id}: {item.message.rstrip('.')}.")
    if analysis.failures:
        count = len(analysis.failures)
        sentences.append(
            f"{count} {plural(count, 'run' if foreign else 'trial')} failed; the numbers are of those that did not."
        )
    if analysis.rounds_complete < analysis.rounds_planned and not foreign:
        sentences.append(f"{analysis.rounds_complete} of {analysis.rounds_planned} planned rounds are complete.")
    sentences.append(
        "The answer is about the machines, the work and the versions of these logs, and of no others."
        if foreign
        else "The answer is about this machine, this work and these versions; other hardware needs its own campaign."
    )
    return list(dict.fromkeys(sentences))
