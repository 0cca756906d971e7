"""The document of a report: everything that is said, put together once for a command."""

from __future__ import annotations

from collections import Counter

from vtax.analysis.records import VERDICT_FROM, Verdict
from vtax.report.document import apart, facts, imported, setup
from vtax.report.document.answer.compose import answer_of
from vtax.report.document.answer.limits import LOUD
from vtax.report.document.answer.lines import RULE
from vtax.report.document.answer.model import Answer
from vtax.report.document.conclusion import conclusion
from vtax.report.document.entries import sections
from vtax.report.document.ladder_table import ladder_table
from vtax.report.document.machine_cost import machine_table
from vtax.report.document.machines import machines_table
from vtax.report.document.model import Document
from vtax.report.document.naming import NBSP, interval
from vtax.report.document.numbers import listed
from vtax.report.document.peaks import peaks
from vtax.report.document.published import about_published
from vtax.report.document.results import results_of
from vtax.report.document.scores import score_table
from vtax.report.document.tables import overview
from vtax.report.records import ReportInput


def document_of(report: ReportInput) -> Document:
    """The whole report, but for its figures."""
    analysis = report.analysis
    results = results_of(report)
    answer = answer_of(report, results)
    compared = [item for item in analysis.findings if item.environment not in analysis.emulated]
    machine, other_machine = facts.machine(report)
    versions, other_versions = setup.versions(report)
    foreign = imported.is_imported(report)
    parts = sections(report, results)
    return Document(
        source=report,
        results=results,
        title=analysis.campaign,
        answer=answer,
        ended=analysis.ended,
        conclusion=conclusion(report, answer.comparisons) + about_published(report.asked, parts),
        intervals=interval(analysis),
        reading=f"{imported.reading(report) if foreign else _reading(report, answer)} {RULE}",
        quiet=tuple(item for item in compared if item.severity not in LOUD),
        aside=tuple(item for item in analysis.findings if item.environment in analysis.emulated),
        overview=imported.of_runs(overview(results)) if foreign else overview(results),
        scores=score_table(analysis),
        ladder=ladder_table(analysis),
        machines=machines_table(analysis),
        machine_cost=machine_table(report),
        sections=parts,
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
        claims=imported.claims(report) if report.claims else None,
    )


def _confidence(answer: Answer) -> str:
    """How many verdicts of each kind there are, and how often one may be false."""
    verdicts = Counter(item.verdict for item in answer.comparisons)
    if not any(item.n >= VERDICT_FROM for item in answer.comparisons):
        return ""
    counted = listed([f"{verdicts[word]} {word}" for word in Verdict if verdicts[word]])
    return (
        f"Of {verdicts.total()} comparisons of primary metrics: {counted}. There is at most a 5{NBSP}% chance that any "
        f"“faster” or “slower” is false, and separately at most 5{NBSP}% for any “equivalent” or “trivial” (Holm's "
        f"correction). Each interval is an individual 95{NBSP}% interval. "
    )


def _reading(report: ReportInput, answer: Answer) -> str:
    base = report.analysis.baseline
    return (
        f"{_confidence(answer)}"
        f"Relative performance: above 1 is better than {base}, below 1 is worse, for rates and for times alike "
        f"(0.5 is half the rate, or twice the time). It is the geometric mean of the ratios within each round. "
        f"{_machines(report)}"
        f"{_interval(report)}"
        f"Equivalent: the interval lies within {100 * report.analysis.margin:g}{NBSP}% of {base}. "
        "Trivial: the same, but the interval does not contain 1. "
        "Unadjusted: the interval alone supports a claim, but the correction for all comparisons does not confirm it. "
        "Inconclusive never means equal. Exploratory entries have intervals and no verdict."
    )


def _machines(report: ReportInput) -> str:
    """What it is on several machines."""
    if said := apart.pairs_sentence(report.plan):
        return f"Nodes are on {len(report.plan.study.machines)} machines: {said}. "
    if len(report.plan.study.alternatives) < 2:
        return ""
    return (
        "Each machine has every round, pairs never cross machines, each machine counts the same, and the interval is "
        "about these machines. "
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
