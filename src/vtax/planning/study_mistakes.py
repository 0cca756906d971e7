"""Mistakes of a study that show only when its parts are looked at together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from vtax.analysis.records import VERDICT_FROM
from vtax.errors import Mistake
from vtax.model.study import BenchmarkSpec
from vtax.planning.mistakes import unknown_choice
from vtax.planning.weights import score_mistakes

CONTROL = "control"  # the environment that repeats the baseline


def study_mistakes(
    raw: Mapping[str, Any], environments: Sequence[str], entries: Sequence[BenchmarkSpec], nodes: Sequence[str]
) -> Iterable[Mistake]:
    """What its parts say of one another: names that nothing has, loads, interim analyses, order."""
    baseline = raw.get("baseline")
    if isinstance(baseline, str) and baseline not in environments:
        yield unknown_choice("baseline", baseline, environments, "environment")
    yield from _ladder_mistakes(raw.get("ladder"), environments)
    if raw.get("control") is True and CONTROL in environments:
        hint = "rename it: that name is reserved for the control arm"
        yield Mistake(f"environments.{CONTROL}", "an environment cannot have this name when `control` is true", hint)
    yield from _look_checks(raw)
    yield from _uneven(raw, environments, entries)
    yield from score_mistakes(raw.get("scores"), entries)
    table = raw.get("nodes")
    overrides = table.get("overrides") if isinstance(table, dict) else None
    for node in overrides if isinstance(overrides, dict) else ():
        if node not in nodes:
            yield unknown_choice(f"nodes.overrides.{node}", node, nodes, "node")
    seen: set[str] = set()
    for entry in entries:
        if entry.label in seen:
            yield Mistake("benchmarks", f'two entries have the label "{entry.label}"', "give one of them another label")
        seen.add(entry.label)
    loads = {entry.label for entry in entries if not entry.load}
    for entry in entries:
        if entry.load and entry.load not in loads:
            yield unknown_choice(f"benchmarks.{entry.label}.load", entry.load, sorted(loads), "entry without a load")
        if not entry.alone and entry.label not in {other.load for other in entries}:
            yield Mistake(
                f"benchmarks.{entry.label}.alone", "no entry uses it as its load", "name it as the `load` of an entry"
            )


def _ladder_mistakes(raw: Any, environments: Sequence[str]) -> Iterable[Mistake]:
    steps = [step for step in raw if isinstance(step, str)] if isinstance(raw, list) else []
    for step in steps:
        if step not in environments:
            yield unknown_choice("ladder", step, environments, "environment")
    if len(steps) == 1:
        yield Mistake("ladder", "a single step compares nothing", "name two or more environments, or leave it out")
    for step in {step for step in steps if steps.count(step) > 1}:
        yield Mistake("ladder", f'"{step}" is listed twice', "list each environment only once")


def _look_checks(raw: Mapping[str, Any]) -> Iterable[Mistake]:
    looks, rounds = raw.get("looks"), raw.get("rounds", VERDICT_FROM)
    if raw.get("anytime") is True and looks:
        yield Mistake(
            "anytime",
            "it already analyses after every round; it cannot be combined with `looks`",
            "leave one of them out",
        )
    elif raw.get("anytime") is True and isinstance(rounds, int) and rounds <= VERDICT_FROM:
        hint = "such as `rounds = 60`: the maximum, since the campaign may end earlier"
        yield Mistake("rounds", f"{rounds} rounds leave no interim analysis before the end", hint)
    if not isinstance(looks, list) or not all(isinstance(look, int) and look is not True for look in looks):
        return  # the validation of the file has reported that
    if not looks:
        yield Mistake("looks", "the list is empty", "leave `looks` out for a fixed number of `rounds`")
        return
    if any(later <= earlier for earlier, later in pairwise(looks)):
        yield Mistake(
            "looks", f"{looks} does not increase", "list rounds after which to analyse, such as [6, 10, 16, 24]"
        )
    elif looks[0] < VERDICT_FROM:
        hint = f"start at {VERDICT_FROM} or later: fewer rounds cannot support a verdict"
        yield Mistake("looks", f"the first analysis is after {looks[0]} rounds", hint)
    if "rounds" in raw and raw["rounds"] != looks[-1]:
        hint = "leave `rounds` out, because the last of `looks` ends the campaign; or leave `looks` out"
        yield Mistake("rounds", f"{raw['rounds']} is not the last of `looks`", hint)


def _uneven(raw: Mapping[str, Any], environments: Sequence[str], entries: Sequence[BenchmarkSpec]) -> Iterable[Mistake]:
    """Iterations that cannot alternate in mirrored order: A B, B A."""
    alone = len(environments) < 2 and raw.get("control") is not True
    if alone or raw.get("interleave", "trial") != "trial":
        return
    for entry in entries:
        if entry.alone and entry.iterations > 1 and entry.iterations % 2:
            why = f"{entry.iterations} is odd: interleaved iterations run in mirrored order, in pairs"
            hint = f'such as {entry.iterations + 1}, or 1; or set interleave = "cell"'
            yield Mistake(f"benchmarks.{entry.label}.iterations", why, hint)
