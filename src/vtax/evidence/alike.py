"""A condition that an environment and what it is compared with have alike, or that only one of the two has. Pure.

Where both have it, their numbers mean something else than their names say, in both alike: that is a caveat on the
numbers and not on their ratio. Where only one has it, it is part of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vtax.evidence.campaign import Evidence
from vtax.evidence.row import Failed
from vtax.model.finding import Severity
from vtax.model.plan import Origin

Scope = tuple[str, str]  # environment and entry


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
