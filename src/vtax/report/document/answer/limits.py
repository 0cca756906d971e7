"""What limits the answer: each condition once, in one line, the most important first. Pure; no markup."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import median

from vtax.analysis.estimate.machines import GENERAL_FROM
from vtax.analysis.records import Analysis, Comparison, Verdict, contradicted
from vtax.analysis.verdict import UNPLANNED
from vtax.model.finding import Finding, Severity
from vtax.model.plan import Origin
from vtax.report.document.answer.lines import OPEN
from vtax.report.document.answer.model import Limit
from vtax.report.document.answer.wording import NOISE_FROM, capitalised, excluded
from vtax.report.document.audit_phrases import WORDS
from vtax.report.document.findings import boxes
from vtax.report.document.model import Box, Message
from vtax.report.document.numbers import labels_text, listed, plural
from vtax.report.records import ReportInput

LOUD = (Severity.BLOCKER, Severity.WARNING)


def limits_of(report: ReportInput, known: Sequence[Comparison]) -> tuple[Limit, ...]:
    """The conditions; `known` are the comparisons that the lines of the answer cover."""
    aside = report.analysis.emulated
    found = [one for one in report.analysis.findings if one.severity in LOUD and one.environment not in aside]
    touched = _touched(report, found, known)
    several = sorted(boxes(found), key=lambda box: (box.severity.rank, *_weight(box, known, touched[box.id])))
    blockers = [box for box in several if box.severity is Severity.BLOCKER]
    first = [box for box in blockers if touched[box.id] or box.id in UNPLANNED]
    said = {box.id for box in blockers}
    warnings = [box for box in several if box.severity is not Severity.BLOCKER]
    return (
        *(_condition(box, known, touched[box.id], box.id) for box in first),
        *_own(report, known),
        *(_condition(box, known, touched[box.id], "" if box.id in said else box.id) for box in warnings),
        *(_condition(box, known, (), box.id) for box in blockers if box not in first),
        _resolution(report, known),
        _scope(report),
    )


def _touched(report: ReportInput, findings: Sequence[Finding], known: Sequence[Comparison]) -> dict[str, set[int]]:
    """Of each row of the audit the places of the comparisons that its findings are about."""
    found: dict[str, set[int]] = {one.id: set() for one in findings}
    for place, item in enumerate(known):
        both, names = (item.environment, item.baseline), report.plan.names_of(item.benchmark, item.label)
        for one in findings:
            if one.touches(both, names, item.metric, item.labels):
                found[one.id].add(place)
    return found


def _weight(box: Box, known: Sequence[Comparison], touched: Collection[int]) -> tuple[bool, int, int, str]:
    """Sorts first what keeps every verdict away, then what rules out or touches the most comparisons."""
    return box.id not in UNPLANNED, -sum(item.ruled_out_by == box.id for item in known), -len(touched), box.id


def _condition(box: Box, known: Sequence[Comparison], touched: Collection[int], id: str) -> Limit:
    """What a row of the audit found, as one line, with all its messages behind it. `id` makes it a place to link to."""
    names = list(dict.fromkeys(name for one in box.messages for name in one.environments))
    if len(box.messages) == 1:
        text = box.messages[0].text.rstrip(".")
    else:
        text = WORDS.get(box.id, f"{box.count} findings") + (f" in {listed(names)}" if names else "")
    ruled = sum(item.ruled_out_by == box.id for item in known)
    effect = ""
    if box.severity is Severity.BLOCKER and box.id not in UNPLANNED:
        if ruled:
            effect = f": rules out {ruled} of {len(known)} comparisons"
        elif touched:
            effect = f": would rule out {len(touched)} {plural(len(touched), 'comparison')} as well"
        else:
            effect = ": of no metric above"
    return Limit(str(box.severity), f"{capitalised(text)}{effect}", box.messages, box.remedies, id, box.id)


def _own(report: ReportInput, known: Sequence[Comparison]) -> Iterator[Limit]:
    """What is undecided, not measured, missing or failed."""
    analysis, foreign = report.analysis, report.plan.origin is Origin.IMPORTED
    undecided = [item for item in known if item.verdict in OPEN]
    if undecided:
        verb = "is" if len(undecided) == 1 else "are"
        text = f"{len(undecided)} of {len(known)} comparisons {verb} undecided, which does not mean equal"
        yield Limit(
            "open", text, tuple(Message((item.environment,), item.label, _undecided(item)) for item in undecided)
        )
    for text in report.plan.left_out:
        if not text.startswith(tuple(f"{name} " for name in analysis.emulated)):  # they have a part of their own
            yield Limit("open", capitalised(text))
    lone = [item for item in analysis.comparisons if item.primary and not item.control and not item.n]
    if lone:
        text = f"{len(lone)} primary {plural(len(lone), 'result has', 'results have')} nothing to compare with"
        yield Limit("open", text, _messages(lone, _lone))
    unlike = [item for item in known if any(note.id == "MACHINES_DIFFER" for note in item.notes)]
    if unlike:
        text = f"The machines differ in {len(unlike)} of {len(known)} comparisons; their numbers are means"
        yield Limit("open", text, _messages(unlike, _unlike))
    if analysis.failures:
        count = len(analysis.failures)
        text = (
            f"{count} {plural(count, 'run' if foreign else 'trial')} failed; the numbers come from those that did not"
        )
        yield Limit("open", text, tuple(Message((), "", f"{one.trial}: {one.reason}") for one in analysis.failures))
    if analysis.rounds_complete < analysis.rounds_planned and not foreign:
        text = f"{analysis.rounds_complete} of {analysis.rounds_planned} planned rounds are complete"
        yield Limit("open", text, (Message((), "", f"The campaign ended {analysis.ended}."),) if analysis.ended else ())


def _messages(several: Sequence[Comparison], words: Callable[[Comparison], str]) -> tuple[Message, ...]:
    return tuple(Message((item.environment,), item.label, words(item)) for item in several)


def _undecided(item: Comparison) -> str:
    ends = "" if item.low is None or item.high is None or contradicted(item) else f": {excluded(item.low, item.high)}"
    where = labels_text(item.labels)
    return f"{item.metric}{f' ({where})' if where else ''}{ends}{f'; {item.remark}' if item.remark else ''}"


def _unlike(item: Comparison) -> str:
    where = labels_text(item.labels)
    said = next(note.message for note in item.notes if note.id == "MACHINES_DIFFER")
    return f"{item.metric}{f' ({where})' if where else ''}: {said}"


def _lone(item: Comparison) -> str:
    where = labels_text(item.labels)
    why = "no round has results for both" if item.planned else f"{item.baseline} has no such result"
    return f"{item.metric}{f' ({where})' if where else ''}: {why}"


def _resolution(report: ReportInput, known: Sequence[Comparison]) -> Limit:
    """The smallest differences that this experiment can show."""
    if report.plan.origin is Origin.IMPORTED:
        why = "the environments were not made fresh and the order was not random, so no interval is meaningful"
        return Limit("scope", "What differences could be seen is unknown", (Message((), "", why),))
    text, more = resolution(report.analysis, known)
    return Limit("scope", text, (Message((), "", more),))


def resolution(analysis: Analysis, known: Sequence[Comparison]) -> tuple[str, str]:
    """The smallest visible difference, from the control arm or from the intervals; and what that is."""
    if analysis.resolution is not None:
        text = f"Differences below {width(analysis.resolution)} cannot be seen here"
        return text, f"This is the widest interval of {analysis.baseline} against itself ({analysis.control})."
    valid = [item for item in known if item.verdict is not Verdict.NOT_COMPARABLE]
    widths = [(item.high / item.low) ** 0.5 - 1 for item in valid if item.low and item.high]
    if not widths:
        few = "an interval needs at least three rounds"
        why = few if valid else "no comparison is valid" if known else "there is nothing to compare"
        return "What differences could be seen is unknown", f"The resolution is unknown, because {why}."
    text = f"Half of the comparisons cannot show differences below {width(median(widths))}"
    return text, (
        f"Half of the {len(widths)} intervals are no wider than {width(median(widths))}, the widest is "
        f"{width(max(widths))}. Without a control arm this is what the noise allows, not what identical systems showed."
    )


def width(share: float) -> str:
    """Half of an interval: `±3.1 %`, `a factor of 4.8`, or that it says nothing."""
    if share >= NOISE_FROM - 1:
        return "a factor of ten (the noise hides any difference)"
    if share >= 1:
        return f"a factor of {1 + share:.2g}"
    return f"±{100 * share:.2g} %"


def _others(report: ReportInput) -> tuple[Message, ...]:
    """What is known of machines like these."""
    machines = len(report.plan.study.alternatives)
    if machines < 2:
        why = "Each cluster is spread over all machines, so nothing is known of any other set of machines."
    elif machines < GENERAL_FROM:
        why = "Two machines say nothing about how much others like them would differ: that takes three or more."
    else:
        why = "How much others like them may differ is in the table of machines, from these as a sample."
    return (Message((), "", why),)


def _scope(report: ReportInput) -> Limit:
    if report.plan.origin is Origin.IMPORTED:
        return Limit("scope", "The answer applies only to the machines, the work and the versions in these logs")
    machines = len(report.plan.study.machines)
    if existing := [name for name, one in report.plan.capabilities.items() if one.existing]:
        text = "The answer applies to this machine, these nodes, this work and these versions"
        why = f"The nodes of {listed(existing)} existed before: vtax did not create them anew for each round."
        return Limit("scope", text, (Message((), "", why),))
    if machines > 1:
        text = f"The answer applies to these {machines} machines, this work and these versions"
        return Limit("scope", f"{text}; other hardware needs its own campaign", _others(report))
    return Limit(
        "scope",
        "The answer applies to this machine, this work and these versions; other hardware needs its own campaign",
    )
