"""One line for each resource and environment: what its primary metrics come to. Pure.

A line covers all primary metrics of its resource. Where any of them is slower or faster, that is the result, with the
range of those that are; where none is and any is undecided, it is undecided; only where all are inside the margin is
there no difference. Each result says of how many comparisons it is true unless that is all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from vtax.analysis.records import VERDICT_FROM, Analysis, Comparison, Level, Verdict, contradicted
from vtax.report.document.answer.machine import machine_words
from vtax.report.document.answer.model import Line, Standing
from vtax.report.document.answer.wording import beyond, changes, excluded, sizes, within
from vtax.report.document.groups import Group, group_of
from vtax.report.document.numbers import plural
from vtax.tools import metrics_of
from vtax.units import format_quantity

CLAIMS = (Verdict.SLOWER, Verdict.FASTER)
WITHIN = (Verdict.EQUIVALENT, Verdict.TRIVIAL)
OPEN = (Verdict.INCONCLUSIVE, Verdict.UNADJUSTED)
EARLY = (Verdict.PILOT, Verdict.DATA_ONLY)
DECIDED = (Standing.EQUAL, Standing.SMALL, Standing.SLOWER, Standing.FASTER, Standing.MIXED)
CONTRADICT = "the machines contradict each other"
RULE = (
    "A line covers all primary metrics of its resource. Slower or faster: true of at least one, with the range of "
    "those that are. Undecided: none is slower or faster, and at least one is undecided. No difference: all are within "
    "the margin."
)


@dataclass(frozen=True)
class Scope:
    """What lines are made from. Runs that were imported are not rounds."""

    analysis: Analysis
    imported: bool = False


def lines_of(analysis: Analysis, *, imported: bool = False) -> tuple[Line, ...]:
    """The lines in the order of resources, then of environments; emulated ones have none."""
    scope = Scope(analysis, imported)
    left_out = {*analysis.emulated, analysis.baseline}
    found: list[Line] = []
    for group in Group:
        own = [item for item in analysis.comparisons if item.primary and not item.control and group_of(item) is group]
        for place, name in enumerate(analysis.environments):
            if name not in left_out:
                several = [item for item in own if item.environment == name]
                found += _of_environment(scope, group, place, name, several)
    return tuple(found)


def _of_environment(scope: Scope, group: Group, place: int, name: str, several: Sequence[Comparison]) -> Iterator[Line]:
    """A line for each baseline: the study's, and what takes its place for metrics that it cannot have."""
    analysis = scope.analysis
    started = started_text(analysis, name) if group is Group.START_UP else ""
    baselines = sorted(dict.fromkeys(item.baseline for item in several), key=lambda one: one != analysis.baseline)
    if started and not baselines:
        yield Line(group, name, place, analysis.baseline, Standing.ALONE, started, "", started=started)
    for number, baseline in enumerate(baselines):
        own = [item for item in several if item.baseline == baseline]
        yield _line(scope, group, place, name, own, started if number == 0 else "")


def _line(scope: Scope, group: Group, place: int, name: str, several: Sequence[Comparison], started: str) -> Line:
    known = [item for item in several if item.n and item.ratio is not None]
    missing = sum(item.planned and not item.n for item in several)
    standing = standing_of([item.verdict for item in known])
    word, size = _result(standing, known, len(known) + missing, scope)
    baseline = several[0].baseline
    if standing is Standing.ALONE:
        word = f"no round has results for both {name} and {baseline}" if missing else word
    return Line(
        group,
        name,
        place,
        baseline,
        standing,
        started or word,
        size,
        tuple(dict.fromkeys(item.verdict for item in _members(standing, known))),
        tuple(known),
        missing,
        started,
        substitute=baseline != scope.analysis.baseline,
        machine=machine_words(scope.analysis, known) if standing in DECIDED and not started else "",
    )


def standing_of(verdicts: Sequence[Verdict]) -> Standing:
    """What these verdicts come to. What is ruled out counts only where nothing else is known."""
    found = set(verdicts)
    if set(CLAIMS) <= found:
        return Standing.MIXED
    order = (
        (Verdict.SLOWER, Standing.SLOWER),
        (Verdict.FASTER, Standing.FASTER),
        *((word, Standing.UNDECIDED) for word in OPEN),
        *((word, Standing.EARLY) for word in EARLY),
        (Verdict.TRIVIAL, Standing.SMALL),
        (Verdict.EQUIVALENT, Standing.EQUAL),
        (Verdict.NOT_COMPARABLE, Standing.RULED_OUT),
    )
    return next((standing for word, standing in order if word in found), Standing.ALONE)


def members(line: Line) -> tuple[Comparison, ...]:
    """The comparisons that the line's result is true of."""
    return _members(line.standing, line.comparisons)


def _members(standing: Standing, several: Sequence[Comparison]) -> tuple[Comparison, ...]:
    words = {
        Standing.SLOWER: (Verdict.SLOWER,),
        Standing.FASTER: (Verdict.FASTER,),
        Standing.MIXED: CLAIMS,
        Standing.EQUAL: WITHIN,
        Standing.SMALL: WITHIN,
        Standing.UNDECIDED: OPEN,
        Standing.EARLY: EARLY,
        Standing.RULED_OUT: (Verdict.NOT_COMPARABLE,),
        Standing.ALONE: (),
    }[standing]
    return tuple(item for item in several if item.verdict in words)


def _result(standing: Standing, known: Sequence[Comparison], planned: int, scope: Scope) -> tuple[str, str]:
    """The result in words, and the number with its interval."""
    own = _members(standing, known)
    part = _part(own, known, planned)
    if standing is Standing.ALONE:
        return str(standing), ""
    if standing is Standing.MIXED:
        each = [(word, [item for item in own if item.verdict is word]) for word in CLAIMS]
        words = (f"{_claim(word, several)}{_part(several, known, planned)}" for word, several in each)
        return ", ".join(words), _size(own)
    if standing in (Standing.SLOWER, Standing.FASTER):
        return f"{_claim(own[0].verdict, own)}{part}{_times(own, scope.analysis)}", _size(own)
    if standing in (Standing.EQUAL, Standing.SMALL):
        return f"{standing}{part} (within {within(ends_of(own))})", _size(own)
    if standing is Standing.EARLY:
        return f"{standing}{part} ({early_text(own, imported=scope.imported)})", _size(own)
    if standing is Standing.UNDECIDED:
        return f"{standing}{part}: {excluded_text(own)}", _size(own)
    return f"{standing}{part}", _size(own)


def _part(own: Sequence[Comparison], known: Sequence[Comparison], planned: int) -> str:
    """What of a line a result is true of: "" of all, the entry where only one has it, otherwise how many."""
    if len(own) == planned:
        return ""
    labels = {item.label for item in own}
    others = {item.label for item in known if item not in own}
    if len(labels) == 1 and not labels & others and len(known) == planned and " " not in own[0].label:
        return f" in {own[0].label}"
    return f" in {len(own)} of {planned}"


def _claim(word: Verdict, own: Sequence[Comparison]) -> str:
    """`5 to 11 % slower`."""
    return f"{sizes([item.ratio for item in own if item.ratio is not None])} {word}"


def _times(own: Sequence[Comparison], analysis: Analysis) -> str:
    """` (13 µs, host 4.0 µs)`: a large factor of a single time may be a matter of microseconds. "" for all others."""
    first = own[0]
    if len(own) > 1 or first.unit != "s" or first.ratio is None or not beyond(first.ratio):
        return ""
    typical = {level.environment: level.median for level in analysis.levels if level.series == first.series}
    if not {first.environment, first.baseline} <= set(typical):
        return ""
    here, there = (format_quantity(typical[name], "s", 2) for name in (first.environment, first.baseline))
    return f" ({here}, {first.baseline} {there})"


def early_text(own: Sequence[Comparison], *, imported: bool) -> str:
    """Why there is no verdict."""
    rounds = max(item.n for item in own)
    if imported:
        return f"imported, {rounds} {plural(rounds, 'run')}"
    return f"{rounds} {plural(rounds, 'round')} of at least {VERDICT_FROM}"


def ends_of(own: Sequence[Comparison]) -> list[float]:
    """The ends of all intervals."""
    return [end for item in own for end in (item.low, item.high) if end is not None]


def excluded_text(own: Sequence[Comparison]) -> str:
    """What the intervals of undecided comparisons leave possible, together."""
    if any(map(contradicted, own)):
        return CONTRADICT
    ends = ends_of(own)
    return excluded(min(ends), max(ends)) if ends else "no interval"


def _size(own: Sequence[Comparison]) -> str:
    ratios, ends = [item.ratio for item in own if item.ratio is not None], ends_of(own)
    return changes(ratios, min(ends, default=None), max(ends, default=None)) if ratios else ""


def started_text(analysis: Analysis, environment: str) -> str:
    """`ready in 0.41 s, host in 0.11 s; an idle node takes 13 MB`: of the metrics about start-up the first in seconds
    and the first in bytes, primary ones before others. "" where neither was measured."""
    ready, base = (_typical(analysis, name, "s") for name in (environment, analysis.baseline))
    taken = _typical(analysis, environment, "byte")
    words = []
    if ready:
        words.append(f"ready in {ready}" + (f", {analysis.baseline} in {base}" if base else ""))
    if taken:
        words.append(f"an idle node takes {taken}")
    return "; ".join(words)


def _typical(analysis: Analysis, environment: str, unit: str) -> str:
    """The median over nodes of the first metric with this unit, as a quantity; "" without."""
    own = [one for one in analysis.levels if one.environment == environment and one.unit == unit]
    levels = [one for one in own if group_of(one) is Group.START_UP]
    if not levels:
        return ""
    first = min(levels, key=_declared)
    value = median(one.median for one in levels if one.metric == first.metric)
    return f"{value:.2g} s" if unit == "s" and 0.0095 <= value < 10 else format_quantity(value, unit, 2)


def _declared(level: Level) -> tuple[bool, int]:
    """The place of a metric among those of its tool, primary ones first."""
    known = metrics_of(level.benchmark, {})
    place = next((place for place, metric in enumerate(known) if metric.name == level.metric), len(known))
    return not (place < len(known) and known[place].primary), place
