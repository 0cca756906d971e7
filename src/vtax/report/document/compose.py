"""The document of a report: everything that is said, put together once for a command."""

from __future__ import annotations

from collections import Counter

from vtax.analysis.records import VERDICT_FROM, Verdict
from vtax.model.finding import Severity
from vtax.report.document import facts, imported, setup
from vtax.report.document.answers import NBSP, answers, compared, resolution
from vtax.report.document.conclusion import conclusion
from vtax.report.document.entries import sections
from vtax.report.document.findings import anchored, boxes, warned
from vtax.report.document.ladder_table import ladder_table
from vtax.report.document.model import Document
from vtax.report.document.naming import interval
from vtax.report.document.numbers import listed, plural
from vtax.report.document.peaks import peaks
from vtax.report.document.results import results_of
from vtax.report.document.scores import score_table
from vtax.report.document.tables import overview
from vtax.report.records import ReportInput

QUESTION = "What does virtualization cost, on this hardware, for this work?"
LOUD = (Severity.BLOCKER, Severity.WARNING)
PILOT = "R01"  # too few rounds: the page says so first of all, in its own words


def document_of(report: ReportInput) -> Document:
    """The whole report, but for its figures."""
    analysis = report.analysis
    results = results_of(report)
    machine, other_machine = facts.machine(report)
    versions, other_versions = setup.versions(report)
    foreign = imported.is_imported(report)
    loud = anchored(boxes(item for item in analysis.findings if item.severity in LOUD))
    return Document(
        source=report,
        results=results,
        title=analysis.campaign,
        question=QUESTION,
        subject=imported.subject(report) if foreign else _subject(report),
        caution=imported.caution(report) if foreign else _caution(report),
        resolution=imported.RESOLUTION if foreign else resolution(analysis),
        ended=analysis.ended,
        answers=answers(analysis, planned=not foreign),
        conclusion=conclusion(report),
        intervals=interval(analysis),
        reading=imported.reading(report) if foreign else _reading(report),
        loud=loud,
        stopping=tuple(box for box in loud if box.severity is Severity.BLOCKER and box.id != PILOT),
        warned=warned(analysis.findings),
        quiet=tuple(item for item in analysis.findings if item.severity not in LOUD),
        overview=imported.of_runs(overview(results)) if foreign else overview(results),
        scores=score_table(analysis),
        ladder=ladder_table(analysis),
        sections=sections(report, results),
        failures=setup.failures(report),
        matched=facts.matched(report),
        other_facts=facts.other_facts(report),
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
        counted = listed([f"{verdicts[word]} {word}" for word in Verdict if verdicts[word]])
        return (
            f"Of {verdicts.total()} comparisons of primary metrics: {counted}. There is at most a 5{NBSP}% chance "
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
        "Trivial: the same, but the interval does not contain 1. "
        "Unadjusted: the interval alone supports a claim, but the correction for all comparisons does not confirm it."
    )


def _interval(report: ReportInput) -> str:
    """What the brackets hold."""
    level, more = report.analysis.a_look, report.analysis.anytime_wider
    if report.plan.study.anytime:
        cost = (
            f", here {100 * more:.0f}{NBSP}% wider than intervals with six planned interim analyses"
            if more is not None
            else ""
        )
        return (
            f"Brackets hold its anytime-valid interval over rounds: wider than a 95{NBSP}% t interval{cost}, so that "
            f"the campaign may be analysed after every round, and it misses at any of them in 5{NBSP}% of campaigns. "
        )
    if level is None or len(report.analysis.looks) < 2:
        return f"Brackets hold its 95{NBSP}% t interval over rounds, shown from three rounds on. "
    return (
        f"Brackets hold its {100 * (1 - level):.4g}{NBSP}% t interval over rounds: wider than 95{NBSP}%, so that at "
        f"whatever planned interim analysis the campaign stops, it misses in 5{NBSP}% of campaigns. "
    )
