"""What costs and gains the most, and why, by rule from verdicts, findings and the ladder. Pure; no markup.

Nothing is explained that the audit or a step of the ladder does not support.
"""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.records import Comparison, Verdict
from vtax.model.finding import Finding, Severity
from vtax.report.document.answer.lines import CLAIMS, WITHIN
from vtax.report.document.answer.wording import capitalised
from vtax.report.document.model import Paragraph
from vtax.report.document.naming import NBSP
from vtax.report.document.numbers import interval_text, labels_text, listed, ratio_text
from vtax.report.document.results import PLACES
from vtax.report.figures.waterfall import steps_of
from vtax.report.records import ReportInput

FEW = 4  # metrics that a sentence names


def conclusion(report: ReportInput, compared: Sequence[Comparison]) -> tuple[Paragraph, ...]:
    """One paragraph for each two environments that are `compared`, one about the next campaign."""
    analysis = report.analysis
    found = []
    pairs: dict[tuple[str, str], list[Comparison]] = {}
    for item in compared:
        pairs.setdefault((item.environment, item.baseline), []).append(item)
    for (name, baseline), own in pairs.items():
        if sentences := _about(report, name, own):
            found.append(Paragraph(f"{name} against {baseline}", tuple(sentences)))
    if analysis.advice:
        found.append(Paragraph("For the next campaign", tuple(f"{capitalised(text)}." for text in analysis.advice)))
    return tuple(found)


def _about(report: ReportInput, name: str, own: Sequence[Comparison]) -> list[str]:
    analysis = report.analysis
    sentences = []
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
    return sentences + _causes(report, name, [item for item in own if item.verdict in CLAIMS])


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
