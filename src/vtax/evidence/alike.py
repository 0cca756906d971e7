"""A condition that an environment and what it is compared with have alike, or that only one of the two has. Pure.

Where both have it, their numbers mean something else than their names say, in both alike: that is a caveat on the
numbers and not on their ratio. Where only one has it, it is part of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from vtax.evidence.campaign import Evidence, against_first
from vtax.evidence.row import Failed, Result
from vtax.model.finding import Severity
from vtax.model.plan import Origin

Scope = tuple[str, str]  # environment and entry
A_NOTE = "a note where an environment and what it is compared with are alike"  # of rows that are judged like that


class Condition(NamedTuple):
    """What was seen of an entry in an environment, and whether that is a failure, of all its metrics or of some."""

    said: str
    fails: bool
    metrics: tuple[str, ...] = ()


def judged(
    evidence: Evidence,
    found: Mapping[Scope, Condition],
    unequal: Severity,
    alike: Severity = Severity.INFO,
) -> Iterator[Result]:
    """The failures among conditions, weighed, and what was seen of the others."""
    said = {scope: f"{scope[1]} in {scope[0]}: {one.said}" for scope, one in found.items()}
    checked = {
        scope: Failed(said[scope], *scope, metrics=one.metrics) if one.fails else None for scope, one in found.items()
    }
    yield from (said[scope] for scope, one in found.items() if not one.fails)
    yield from weighed(evidence, checked, unequal, alike)


def same(evidence: Evidence, known: Mapping[Scope, str]) -> Iterator[Result]:
    """What has to be the same in all environments that have an entry, and is not; or what it is."""
    unequal = list(against_first(evidence, known))
    for name, label, theirs, first, its in unequal:
        yield Failed(f"{label}: {theirs} in {name}, {its} in {first}", name, label, against=first)
    labels = {label for _, label, *_ in unequal}
    yield from (f"{label} in {name}: {text}" for (name, label), text in known.items() if label not in labels)


def weighed(
    evidence: Evidence,
    checked: Mapping[Scope, Failed | None],
    unequal: Severity,
    alike: Severity = Severity.INFO,
) -> Iterator[Failed]:
    """The failures of a condition, which was checked for some entries (None: it was not met).

    A failure has the severity `alike` where the counterpart fails too, or where there is none. Where only one of the
    two fails, `unequal` is that of the environment that is compared. Of imported logs nothing is compared in rounds, so
    every failure is `unequal`.
    """
    imported = evidence.plan.origin is Origin.IMPORTED
    for (environment, label), mine in checked.items():
        base = (evidence.counterpart(label), label)
        theirs = checked.get(base)
        if imported:
            yield from () if mine is None else (replace(mine, severity=mine.severity or unequal),)
        elif (environment, label) == base or base not in checked or (mine and theirs):
            yield from () if mine is None else (replace(mine, severity=alike),)
        elif mine or theirs:
            failing, other = (mine, base[0]) if mine else (theirs, environment)
            assert failing is not None
            message = f"{failing.message}; not so in {other}"
            yield replace(failing, message=message, environment=environment, severity=unequal)
