"""What environments are compared with: the study's baseline or another one, and what takes its place where the plan
does not have an entry there."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from vtax.errors import UsageError
from vtax.model.plan import Plan
from vtax.model.study import Study

EntryPlace = tuple[str, str]  # label, target


def with_baseline(study: Study, name: str) -> Study:
    """The study with another baseline. Raises UsageError for an environment that it does not have."""
    names = [spec.name for spec in study.environments]
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        meant = f'did you mean "{close[0]}"? ' if close else ""
        raise UsageError(f"there is no environment {name!r}", remedy=f"{meant}there are {', '.join(names)}")
    return study.model_copy(update={"baseline": name})


def candidates(plan: Plan, emulated: Collection[str]) -> tuple[str, ...]:
    """The environments that may take the baseline's place, in the order of the study."""
    names = (spec.name for spec in plan.environments)
    return tuple(name for name in names if name != plan.study.baseline and name not in emulated)


def substitutes(plan: Plan, emulated: Collection[str] = ()) -> dict[EntryPlace, str]:
    """For each entry and target that the plan does not have in the baseline: the first environment that has it."""
    having: dict[EntryPlace, set[str]] = {}
    for work in plan.work:
        having.setdefault((work.label, work.target.label), set()).add(work.environment)
    found: dict[EntryPlace, str] = {}
    for place, names in having.items():
        first = next((name for name in candidates(plan, emulated) if name in names), None)
        if plan.study.baseline not in names and first is not None:
            found[place] = first
    return found
