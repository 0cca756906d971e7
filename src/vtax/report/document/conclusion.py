"""The conclusion in sentences, by rule from verdicts, findings and the ladder. Pure; no markup.

Nothing is explained that the audit or a step of the ladder does not support.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vtax.analysis.records import Comparison, Verdict
from vtax.analysis.verdict import FEW_ROUNDS, UNPLANNED
from vtax.model.finding import Finding, Severity
from vtax.model.plan import Origin
from vtax.report.document.answers import CLAIMS, NBSP, WITHIN, is_control
from vtax.report.document.audit_phrases import named
from vtax.report.document.model import Paragraph
from vtax.report.document.numbers import interval_text, labels_text, listed, plural, ratio_text
from vtax.report.document.results import PLACES
from vtax.report.figures.waterfall import steps_of
from vtax.report.records import ReportInput

FEW = 4  # metrics that a sentence names


def conclusion(report: ReportInput) -> tuple[Paragraph, ...]:
    """One paragraph for each environment, one about what the answer does not say."""
    analysis = report.analysis
    found = []
    pairs: dict[tuple[str, str], list[Comparison]] = {}
    for item in analysis.comparisons:
        if item.primary and not is_control(item):
            pairs.setdefault((item.environment, item.baseline), []).append(item)
    for name, baseline in sorted(pairs, key=lambda pair: tuple(map(analysis.environments.index, pair))):
        own = pairs[name, baseline]
        found.append(Paragraph(f"{name} against {baseline}", tuple(_about(report, name, baseline, own))))
    found.append(Paragraph("What this does not say", tuple(_limits(report))))
    if analysis.advice:
        found.append(Paragraph("For the next campaign", analysis.advice))
    return tuple(found)


def _about(report: ReportInput, name: str, baseline: str, own: Sequence[Comparison]) -> list[str]:
    analysis = report.analysis
    met = [item for item in own if item.n]
    counts = Counter(item.verdict for item in met)
    counted = listed([f"{counts[word]} {word}" for word in Verdict if counts[word]])
    sentences = [f"Of {len(met)} {plural(len(met), 'comparison')} of primary metrics: {counted}."] if met else []
    lost = sum(item.planned and not item.n for item in own)
    if lost:
        have = plural(lost, "primary metric has", "primary metrics have")
        sentences.append(f"{lost} {have} no round with results for both {name} and {baseline}.")
    if lone := len(own) - len(met) - lost:
        have = plural(lone, "result has", "results have")
        sentences.append(f"{lone} {have} no counterpart in {baseline}.")
    sentences += _blockers(report, met)
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


def _blockers(report: ReportInput, met: Sequence[Comparison]) -> list[str]:
    """What rules out comparisons of an environment and what to do about it, and what would if that were fixed."""
    counts = Counter(item.ruled_out_by for item in met if item.ruled_out_by)
    besides = UNPLANNED if report.plan.origin is Origin.IMPORTED else {FEW_ROUNDS}
    touched: dict[str, set[int]] = {id: set() for id, _ in counts.most_common()}
    remedies: dict[str, dict[str, None]] = {}
    for finding in report.analysis.findings:
        if finding.severity is not Severity.BLOCKER or finding.id in besides:
            continue
        places = {place for place, item in enumerate(met) if _touches(report, finding, item)}
        if places:
            touched.setdefault(finding.id, set()).update(places)
            remedies.setdefault(finding.id, {}).setdefault(finding.remedy)
    sentences = []
    for id, places in touched.items():
        many = f"rules out {counts[id]}" if counts[id] else f"would rule out {len(places)} as well"
        fixed = "; ".join(remedy for remedy in remedies.get(id, ()) if remedy)
        sentences.append(f"{_capital(named(id))} {many}{f': {fixed}' if fixed else ''}.")
    return sentences


def _touches(report: ReportInput, finding: Finding, item: Comparison) -> bool:
    names = report.plan.names_of(item.benchmark, item.label)
    return finding.touches((item.environment, item.baseline), names, item.metric, item.labels)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
        touching = touches(report.analysis.findings, name, report.plan.names_of(benchmark, label))
        if touching:
            explained.add(label)
            said = listed(list(dict.fromkeys(f"{item.id} ({item.message.rstrip('.')})" for item in touching))[:FEW])
            sentences.append(f"For {label} the audit found: {said}. This may explain the difference, at least in part.")
    for step in steps_of(report.analysis, name):
        explained.add(step.label)
        sentences.append(step.sentence)
    silent = [label for label in labels if label not in explained]
    if silent:
        sentences.append(f"No audit finding or ladder step explains {listed(silent)}, so no cause is given.")
    return sentences


def touches(findings: Sequence[Finding], environment: str, names: Sequence[str]) -> list[Finding]:
    """Blockers and warnings that name this entry, of this environment or of all.

    One that is about everything explains nothing.
    """
    return [
        item
        for item in findings
        if item.severity is not Severity.INFO and item.benchmark in names and item.environment in ("", environment)
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
            f"{count} {plural(count, 'run' if foreign else 'trial')} failed; the numbers come from those that did not."
        )
    if analysis.rounds_complete < analysis.rounds_planned and not foreign:
        sentences.append(f"{analysis.rounds_complete} of {analysis.rounds_planned} planned rounds are complete.")
    sentences.append(
        "The answer applies only to the machines, the work and the versions in these logs."
        if foreign
        else "The answer applies to this machine, this work and these versions; other hardware needs its own campaign."
    )
    return list(dict.fromkeys(sentences))
