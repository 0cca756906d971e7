"""The checks as rows: goal, what was measured, bound, replicates. Of checks that differ in scenario only, the worst."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from vtax.selftest.check import Check
from vtax.selftest.noise import TRIAL_SCENARIOS

HEADER = ("goal", "what", "measured", "goal is", "tolerance", "campaigns", "")
SCENARIO = re.compile(rf"^({'|'.join(scenario.name for scenario in TRIAL_SCENARIOS)})\b[,:]? *")


def kind(check: Check) -> tuple[str, str, bool]:
    """Goal and subject without the scenario, and whether it is a reference."""
    what = SCENARIO.sub("", check.what)
    return check.goal, re.sub(r": [\d.]+ %, published.*", "", what), check.bound is None


def rows(checks: Sequence[Check], *, every: bool = False) -> list[tuple[str, ...]]:
    """All checks, or the worst of each kind."""
    if every:
        return [row(check, check.what) for check in checks]
    found: list[tuple[str, ...]] = []
    for (_, what, plain), several in groupby(sorted(checks, key=order(checks)), key=kind):
        group = list(several)
        chosen = max(group, key=badness)
        if plain and len(group) > 1:
            span = f"{min(c.measured for c in group):.1f} to {max(c.measured for c in group):.1f} {chosen.unit}"
            found.append((chosen.goal, what, span, "(reference)", "", f"{chosen.replicates:,}", ""))
        else:
            scenario = SCENARIO.match(chosen.what)
            where = f" (worst of {len(group)}: {scenario.group(1)})" if scenario and len(group) > 1 else ""
            found.append(row(chosen, f"{what}{where}"))
    return found


def order(checks: Sequence[Check]) -> Callable[[Check], int]:
    """A sorting key that keeps kinds together, in the order in which they first come."""
    first: dict[tuple[str, str, bool], int] = {}
    for place, check in enumerate(checks):
        first.setdefault(kind(check), place)
    return lambda check: first[kind(check)]


def badness(check: Check) -> float:
    """How near a check is to missing its goal: larger is worse."""
    if check.bound is None:
        return check.measured
    return check.measured - check.bound if check.at_most else check.bound - check.measured


def row(check: Check, what: str) -> tuple[str, ...]:
    measured = f"{check.measured:.2f} {check.unit}"
    if check.bound is None:
        return check.goal, what, measured, "(reference)", "", f"{check.replicates:,}", ""
    bound = f"{'at most' if check.at_most else 'at least'} {check.bound:g}"
    met = "met" if check.met else "MISSED"
    return check.goal, what, measured, bound, f"{check.tolerance:.2f}", f"{check.replicates:,}", met
