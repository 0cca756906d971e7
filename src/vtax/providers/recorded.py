"""What a stored campaign records about its providers, and what replaces it for campaigns of format 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from vtax.model.capabilities import UNKNOWN, Capabilities
from vtax.model.plan import Plan
from vtax.providers import built_in

EMULATORS = {
    "-accel": "tcg",
    "--vm-execution-engine": "interpreter",
}  # option of a hypervisor -> its software emulation


def capabilities_of(plan: Plan) -> Mapping[str, Capabilities]:
    """Environment -> capabilities, as recorded in the plan; in format 1, those that the built-in provider of that name
    declares today, and UNKNOWN for any other provider."""
    if plan.capabilities:
        return {spec.name: plan.capabilities.get(spec.name, UNKNOWN) for spec in plan.environments}
    known = {name: kind.capabilities for name, kind in built_in().items()}
    return {spec.name: known.get(spec.provider, UNKNOWN) for spec in plan.environments}


def started_emulation(commands: Iterable[Sequence[str]]) -> bool:
    """Whether these command lines started software emulation: for cells of format 1, whose nodes have no such fact."""
    words = (pair for line in commands for pair in pairwise(line))
    return any(EMULATORS.get(option) == value.partition(",")[0] for option, value in words if option in EMULATORS)
