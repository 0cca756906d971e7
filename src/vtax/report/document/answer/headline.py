"""The title of a report: what each environment costs, those that are alike in one sentence, from the lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

from vtax.analysis.records import VERDICT_FROM
from vtax.report.document.answer.lines import CLAIMS, CONTRADICT, ends_of, excluded_text, members
from vtax.report.document.answer.model import Line, Standing
from vtax.report.document.answer.wording import NOISE, shown, sizes, within
from vtax.report.document.numbers import listed, plural

ALIKE = 2.0  # intervals of which one reaches less than so much further than the other are given as one
WHOLE = 2  # environments of which the title says everything; of more, what matters most


def headline(lines: Sequence[Line], emulated: Sequence[str] = (), *, imported: bool = False) -> str:
    """`Container: no measurable cost in CPU and memory (within 2 %); network 11 % slower; ready in 0.4 s`."""
    own: dict[str, list[Line]] = {}
    for line in lines:
        own.setdefault(line.environment, []).append(line)
    if not own:
        return _nothing(emulated)
    say: Callable[..., str] = _whole if len(own) <= WHOLE else _short
    alike: dict[str, list[str]] = {}
    for name, several in own.items():
        alike.setdefault(say(several, imported=imported), []).append(name)
    return ". ".join(f"{listed([shown(names[0]), *names[1:]])}: {text}" for text, names in alike.items())


def _nothing(emulated: Sequence[str]) -> str:
    """What to say where no environment is compared."""
    if not emulated:
        return "Nothing to compare: no two environments have results of the same work"
    works = plural(len(emulated), "works", "work")
    return f"{listed([shown(name) for name in emulated])} {works} here, but emulated in software: nothing is compared"


def _whole(lines: Sequence[Line], *, imported: bool) -> str:
    """Every resource, those without a cost first."""
    if early := _early(lines, imported=imported):
        return _with_start(early, lines)
    compared = [line for line in lines if not line.started]  # of start-up the time itself is said
    by = {standing: [line for line in compared if line.standing is standing] for standing in Standing}
    parts = []
    if by[Standing.EQUAL]:
        parts.append(f"no measurable cost in {_names(by[Standing.EQUAL])} (within {_within(by[Standing.EQUAL])})")
    if by[Standing.SMALL]:
        parts.append(f"a negligible difference in {_names(by[Standing.SMALL])} (within {_within(by[Standing.SMALL])})")
    claims = [line for line in compared if line.standing in (Standing.SLOWER, Standing.FASTER, Standing.MIXED)]
    parts += [f"{_name(line)} {line.word}" for line in claims]
    parts += _undecided(by[Standing.UNDECIDED])
    for standing in (Standing.EARLY, Standing.RULED_OUT):
        if by[standing]:
            parts.append(f"{standing} in {_names(by[standing])}" if parts or len(by[standing]) > 1 else str(standing))
    if not parts:
        return _with_start("nothing to compare with", lines)
    return _with_start("; ".join(parts), lines)


def _short(lines: Sequence[Line], *, imported: bool) -> str:
    """What matters most: the largest claim, or what is not known, or that there is no cost."""
    if early := _early(lines, imported=imported):
        return early
    claims = [item for line in lines for item in members(line) if item.verdict in CLAIMS and item.ratio]
    for word, extreme in (("slower", min), ("faster", max)):
        own = [item for item in claims if item.verdict == word]
        if own:
            most = extreme(own, key=lambda item: item.ratio or 1.0)
            line = next(line for line in lines if most in line.comparisons)
            upto = "up to " if len(own) > 1 else ""
            return f"{upto}{sizes([most.ratio or 1.0])} {word} ({_name(line)})"
    undecided = [line for line in lines if line.standing is Standing.UNDECIDED]
    if undecided:
        return "; ".join(_undecided(undecided))
    known = [line for line in lines if line.standing in (Standing.EQUAL, Standing.SMALL)]
    return f"no cost above {_within(known)}" if known else str(lines[0].standing)


def _early(lines: Sequence[Line], *, imported: bool) -> str:
    """Why no resource has a verdict; "" where one may have."""
    known = [line for line in lines if line.comparisons]
    if not known or any(line.standing not in (Standing.EARLY, Standing.RULED_OUT) for line in known):
        return ""
    rounds = [item.n for line in known if line.standing is Standing.EARLY for item in members(line)]
    if not rounds:
        return ""
    if imported:
        return "no verdict, because the runs were imported"
    return f"no verdict after {max(rounds)} {plural(max(rounds), 'round')}, {VERDICT_FROM} are needed"


def _with_start(text: str, lines: Sequence[Line]) -> str:
    """How long a node takes to be ready is said of every environment that is known to start."""
    started = next((line.started for line in lines if line.started), "")
    return "; ".join(filter(None, (text, started.partition(";")[0].partition(",")[0])))


def _undecided(lines: Sequence[Line]) -> list[str]:
    """`CPU and memory undecided (at most 7 % slower or 4 % faster)`; resources that are known much less well, and
    those whose intervals say nothing, apart from them."""
    ranges = [excluded_text(members(line)) for line in lines]
    noisy = [line for line, text in zip(lines, ranges, strict=True) if text == NOISE]
    unlike = [line for line, text in zip(lines, ranges, strict=True) if text == CONTRADICT]
    quiet = [line for line in lines if line not in noisy and line not in unlike]
    parts = [
        f"{_names(alike)} undecided ({excluded_text([item for line in alike for item in members(line)])})"
        for alike in _alike(quiet)
    ]
    if unlike:
        parts.append(f"{_names(unlike)} undecided ({CONTRADICT})")
    if noisy:
        parts.append(f"{_names(noisy)} too noisy to decide")
    return parts


def _alike(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines in sets of about the same uncertainty, so that a wide interval says nothing about another resource."""
    sets: list[list[Line]] = []
    for line in sorted(lines, key=_reach):
        if sets and _reach(line) <= ALIKE * _reach(sets[-1][0]):
            sets[-1].append(line)
        else:
            sets.append([line])
    return [sorted(alike, key=lines.index) for alike in sets]


def _reach(line: Line) -> float:
    """How far from 1 the intervals of what is undecided reach, in log units."""
    return max((abs(log(end)) for end in ends_of(members(line))), default=0.0)


def _within(lines: Sequence[Line]) -> str:
    return within(ends_of([item for line in lines for item in members(line)]))


def _names(lines: Sequence[Line]) -> str:
    """`CPU, storage (2 of 3 results) and network`."""
    return listed([f"{_name(line)}{_part(line)}" for line in lines])


def _part(line: Line) -> str:
    """Of how many of its comparisons a line's result is true, where that is not all."""
    own = len(members(line))
    return f" ({own} of {line.planned} results)" if own < line.planned else ""


def _name(line: Line) -> str:
    """A resource inside a sentence, with the baseline where it is not the study's."""
    other = f" (against {line.baseline})" if line.substitute else ""
    return f"{line.group.inside}{other}"
