"""What the audit looks at, and how facts of environments are laid side by side. Pure, like every check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vtax.model.cluster import CellRecord
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.plan import Plan, Work
from vtax.model.seal import Seal
from vtax.model.trial import Status, TrialRecord

if TYPE_CHECKING:
    from vtax.analysis.prepared import Prepared

Counters = Mapping[str, Mapping[str, float]]  # node -> counter -> what was counted during the trial
UNKNOWN_REMEDY = "take it into account: this campaign's records do not tell, so the condition cannot be excluded"
SHOWN = 4  # values or names that a message lists before it says how many more


@dataclass(frozen=True)
class Evidence:
    """A campaign as it was recorded. `counters` are of trials by id, where they were read; texts need not be loaded."""

    plan: Plan
    cells: tuple[CellRecord, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    counters: Mapping[str, Counters] = field(default_factory=dict)
    seal: Seal | None = None  # what the campaign's files say of the hash of its plan; None: nobody looked
    prepared: Prepared | None = None  # what was computed of the measurements already; see `numbers`
    looks: tuple[int, ...] | None = None  # rounds after which somebody looked at results; None: no log was kept

    @cached_property
    def numbers(self) -> Prepared:
        """The levels of the measurements and their pairs with the baseline."""
        from vtax.analysis.prepared import prepare  # numpy and scipy take a while to load

        return self.prepared or prepare(self.measurements, plan=self.plan, trials=self.trials)

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
        planned = [work.label for work in self.plan.work if work.benchmark in benchmarks]
        return tuple(dict.fromkeys((*planned, *(one.label for one in self.trials if one.benchmark in benchmarks))))

    def runs(self, *benchmarks: str) -> tuple[TrialRecord, ...]:
        """The trials of these benchmarks (none: of all) that ran to their end and are no warm-ups."""
        return tuple(
            one
            for one in self.trials
            if one.status is Status.OK and not one.warmup and (not benchmarks or one.benchmark in benchmarks)
        )

    def entries(self, *benchmarks: str) -> dict[tuple[str, str], list[TrialRecord]]:
        """(environment, label) -> their `runs`."""
        found: dict[tuple[str, str], list[TrialRecord]] = {}
        for one in self.runs(*benchmarks):
            found.setdefault((one.environment, one.label), []).append(one)
        return found

    def values(self, environment: str, label: str, metric: str) -> list[float]:
        """The measured values of a metric under a label, warm-ups left out."""
        return self._values.get((environment, label, metric), [])

    @cached_property
    def _values(self) -> dict[tuple[str, str, str], list[float]]:
        found: dict[tuple[str, str, str], list[float]] = {}
        for one in self.measurements:
            if not one.warmup:
                found.setdefault((one.environment, one.label, one.metric), []).append(one.value)
        return found

    @cached_property
    def measured(self) -> dict[str, list[Measurement]]:
        """Trial -> its measurements, of those that have any."""
        found: dict[str, list[Measurement]] = {}
        for one in self.measurements:
            found.setdefault(one.trial, []).append(one)
        return found


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


def against_first(evidence: Evidence, told: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str, str, str, str]]:
    """(environment, label, theirs, first, its) where what (environment, label) told differs from the first
    environment that told anything under that label; the reference is the first where it did."""
    for label in dict.fromkeys(label for _, label in told):
        names = [environment for environment, other in told if other == label]
        first = evidence.reference if evidence.reference in names else names[0]
        for name in names:
            if told[name, label] != told[first, label]:
                yield name, label, told[name, label], first, told[first, label]


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


def blocker(
    check: str, message: str, remedy: str = "", environment: str = "", benchmark: str = "", **scope: Any
) -> Finding:
    """`scope` is `metrics` or `labels` of the finding; an empty remedy is that of the row."""
    return made(check, Severity.BLOCKER, message, remedy, environment, benchmark, **scope)


def warning(
    check: str, message: str, remedy: str = "", environment: str = "", benchmark: str = "", **scope: Any
) -> Finding:
    return made(check, Severity.WARNING, message, remedy, environment, benchmark, **scope)


def info(
    check: str, message: str, remedy: str = "", environment: str = "", benchmark: str = "", **scope: Any
) -> Finding:
    return made(check, Severity.INFO, message, remedy, environment, benchmark, **scope)


def unknown(check: str, missing: str, environment: str = "", benchmark: str = "", **scope: Any) -> Finding:
    """What could not be looked at. Its row makes it a warning where the condition would block."""
    where = f"{environment}: " if environment else ""
    message = f"{where}cannot be checked: {missing}"
    return made(check, Severity.WARNING, message, UNKNOWN_REMEDY, environment, benchmark, unknown=True, **scope)


def made(
    check: str,
    severity: Severity,
    message: str,
    remedy: str,
    environment: str,
    benchmark: str,
    metrics: tuple[str, ...] = (),
    labels: Mapping[str, tuple[str, ...]] | None = None,
    unknown: bool = False,
) -> Finding:
    return Finding(
        id=check,
        severity=severity,
        message=message,
        remedy=remedy,
        environment=environment,
        benchmark=benchmark,
        metrics=metrics,
        labels=labels or {},
        unknown=unknown,
    )
