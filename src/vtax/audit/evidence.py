"""What the audit looks at, and how facts of environments are laid side by side. Pure, like every check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from vtax.model import CellRecord, Finding, Measurement, Plan, Severity, Status, TrialRecord, Work

Counters = Mapping[str, Mapping[str, float]]  # node -> counter -> what was counted during the trial
SHOWN = 4  # values or names that a message lists before it says how many more


@dataclass(frozen=True)
class Evidence:
    """A campaign as it was recorded. `counters` are of trials by id, where they were read; texts need not be loaded."""

    plan: Plan
    cells: tuple[CellRecord, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    counters: Mapping[str, Counters] = field(default_factory=dict)

    @property
    def provisioned(self) -> tuple[CellRecord, ...]:
        """The cells whose cluster came up."""
        return tuple(cell for cell in self.cells if cell.status is Status.OK)

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments that came up at least once, in the order of the plan."""
        up = {cell.environment for cell in self.provisioned}
        return tuple(spec.name for spec in self.plan.environments if spec.name in up)

    @property
    def reference(self) -> str:
        """What the others are compared with: the baseline, or the first environment that came up; "" when none did."""
        baseline = self.plan.study.baseline
        return baseline if baseline in self.environments else next(iter(self.environments), "")

    @property
    def compared(self) -> tuple[str, ...]:
        """The environments that are compared with the reference."""
        return tuple(name for name in self.environments if name != self.reference)

    def provider(self, environment: str) -> str:
        """The provider of an environment; "" when the plan has none of that name."""
        return next((spec.provider for spec in self.plan.environments if spec.name == environment), "")

    def option(self, environment: str, name: str) -> object:
        """An option of an environment as the plan has it; None when it has none of that name."""
        return next((spec.options.get(name) for spec in self.plan.environments if spec.name == environment), None)

    def host_facts(self, environment: str = "") -> Mapping[str, Any]:
        """The facts of the machine that vtax ran on, as the first cell (of an environment) recorded them."""
        cells = (cell for cell in self.cells if environment in ("", cell.environment))
        return next((cell.host_facts for cell in cells if cell.host_facts), {})

    def labels_of(self, *benchmarks: str) -> tuple[str, ...]:
        """The labels under which the plan runs any of these benchmarks."""
        return tuple(dict.fromkeys(work.label for work in self.plan.work if work.benchmark in benchmarks))


def works(evidence: Evidence, *benchmarks: str) -> Iterator[Work]:
    """The planned work of these benchmarks, of every environment."""
    return (work for work in evidence.plan.work if work.benchmark in benchmarks)


def observed(evidence: Evidence, environment: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Node and facts, of every cell of an environment that came up."""
    cells = (cell for cell in evidence.provisioned if cell.environment == environment)
    return ((facts.node, facts.values) for cell in cells for facts in cell.facts)


def values_of(evidence: Evidence, environment: str, fact: str) -> dict[str, list[Any]]:
    """Node -> the different values that a fact had there; a node where it never was observed is absent."""
    found: dict[str, dict[str, Any]] = {}
    for node, values in observed(evidence, environment):
        if fact in values:
            found.setdefault(node, {}).setdefault(canonical(values[fact]), values[fact])
    return {node: list(different.values()) for node, different in found.items()}


@dataclass(frozen=True)
class Difference:
    """A fact that one environment has otherwise than the reference, on the first node where it does."""

    environment: str
    node: str
    theirs: tuple[Any, ...]
    reference: tuple[Any, ...]


def differences(evidence: Evidence, fact: str) -> Iterator[Difference]:
    """The environments in which a node has other values of a fact than the same node has in the reference."""
    reference = values_of(evidence, evidence.reference, fact)
    for environment in evidence.compared:
        theirs = values_of(evidence, environment, fact)
        for node in (node for node in theirs if node in reference):
            if set(map(canonical, theirs[node])) != set(map(canonical, reference[node])):
                yield Difference(environment, node, tuple(theirs[node]), tuple(reference[node]))
                break


def unobserved(evidence: Evidence, fact: str) -> tuple[str, ...]:
    """The environments that came up, but in which no node told a fact."""
    return tuple(name for name in evidence.environments if not values_of(evidence, name, fact))


def emulated(evidence: Evidence, environment: str) -> bool:
    """Whether an environment ran in software emulation: by the command lines that made it, or by what its nodes see."""
    cells = [cell for cell in evidence.provisioned if cell.environment == environment]
    accelerators = {
        following.partition(",")[0]
        for cell in cells
        for line in cell.commands
        for word, following in pairwise(line)
        if word in ("-accel", "--vm-execution-engine")
    }
    inside = [layer for _, values in observed(evidence, environment) for layer in values.get("virtualization", ())]
    return bool({"tcg", "interpreter"} & accelerators) or any("software emulation" in layer for layer in inside)


def canonical(value: object) -> str:
    """A value as text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, default=str)


def shown(values: tuple[Any, ...] | list[Any]) -> str:
    """Values or names in a message, the first few of them."""
    texts = [str(value) for value in values]
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def blocker(check: str, message: str, remedy: str, environment: str = "", benchmark: str = "") -> Finding:
    return made(check, Severity.BLOCKER, message, remedy, environment, benchmark)


def warning(check: str, message: str, remedy: str, environment: str = "", benchmark: str = "") -> Finding:
    return made(check, Severity.WARNING, message, remedy, environment, benchmark)


def info(check: str, message: str, remedy: str, environment: str = "", benchmark: str = "") -> Finding:
    return made(check, Severity.INFO, message, remedy, environment, benchmark)


def unknown(check: str, missing: str, environment: str = "", benchmark: str = "") -> Finding:
    """What would be a blocker if it were so, and could not be seen, is a warning."""
    where = f"{environment}: " if environment else ""
    remedy = "read the cell's record, and repeat with a root file system that has the tools of the image recipe"
    return made(check, Severity.WARNING, f"{where}cannot be checked: {missing}", remedy, environment, benchmark)


def made(
    check: str, severity: Severity, message: str, remedy: str, environment: str = "", benchmark: str = ""
) -> Finding:
    return Finding(
        id=check, severity=severity, message=message, remedy=remedy, environment=environment, benchmark=benchmark
    )
