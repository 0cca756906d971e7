"""What the audit looks at, and how facts of environments are laid side by side. Pure, like every check."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from vtax.facts.nesting import EMULATION
from vtax.model.capabilities import UNKNOWN, Capabilities
from vtax.model.cluster import CellRecord
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin, Plan, Work
from vtax.model.reading import TimeSeries, TrialReading
from vtax.model.seal import Seal
from vtax.model.trial import Status, TrialRecord
from vtax.providers.recorded import capabilities_of, started_emulation

if TYPE_CHECKING:
    from vtax.analysis.prepared import Prepared

Counters = Mapping[str, Mapping[str, float]]  # node -> counter -> what was counted during the trial
SHOWN = 4  # values or names that a message lists before it says how many more


@dataclass(frozen=True)
class Evidence:
    """A campaign as it was recorded. `counters` are of trials by id, where they were read; texts need not be loaded.
    `measurements` are those that tools printed; what trials cost the machine is in `numbers` alone."""

    plan: Plan
    cells: tuple[CellRecord, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    readings: Mapping[str, TrialReading] = field(default_factory=dict)  # trial -> what its output says
    counters: Mapping[str, Counters] = field(default_factory=dict)
    seal: Seal | None = None  # what the campaign's files say of the hash of its plan; None: not looked up
    prepared: Prepared | None = None  # what was computed of the measurements already; see `numbers`
    looks: tuple[int, ...] | None = None  # rounds after which there was an interim analysis; None: no log was kept
    compared_with: str = ""  # the reference, where this is a part of a campaign that may lack it

    def part(self, covers: Callable[[TrialRecord], bool], left_out: Collection[tuple[str, str]] = ()) -> Evidence:
        """The same campaign with the trials that are covered, and without some environments, or entries in them:
        (environment, label), where the label is "" for a whole environment."""
        made = replace(
            self,
            cells=tuple(cell for cell in self.cells if (cell.environment, "") not in left_out),
            trials=tuple(
                one
                for one in self.trials
                if covers(one) and not {(one.environment, ""), (one.environment, one.label)} & set(left_out)
            ),
            compared_with=self.reference,
        )
        # the measurements are the same, so what was worked out of them is too
        vars(made).update({name: vars(self)[name] for name in ("measured", "numbers", "_values") if name in vars(self)})
        return made

    @cached_property
    def numbers(self) -> Prepared:
        """The levels of the measurements and their pairs with the baseline."""
        from vtax.analysis.prepared import prepare  # numpy and scipy take a while to load

        return self.prepared or prepare(
            self.measurements,
            plan=self.plan,
            trials=self.trials,
            declared={},
            emulated=self.emulated,
            alternated=self.alternated,
        )

    @property
    def alternated(self) -> bool:
        """Whether no round whose trials were to alternate between environments ran as whole cells."""
        return not any(cell.not_interleaved for cell in self.cells)

    @cached_property
    def emulated(self) -> frozenset[str]:
        """The environments that ran in software emulation, so that they are not compared: all but the baseline, and
        those of which the study wants it all the same."""
        if self.plan.origin is Origin.IMPORTED:
            return frozenset()
        return frozenset(
            spec.name
            for spec in self.plan.environments
            if spec.name != self.plan.study.baseline
            and spec.options.get("allow_emulation") is not True
            and emulated(self, spec.name)
        )

    @cached_property
    def comparable(self) -> Evidence:
        """The same campaign as if it had never had the environments that are not compared because of emulation."""
        left_out = self.emulated
        if not left_out:
            return self
        plan = self.plan.model_copy(
            update={
                "environments": tuple(spec for spec in self.plan.environments if spec.name not in left_out),
                "work": tuple(work for work in self.plan.work if work.environment not in left_out),
                "cells": tuple(cell for cell in self.plan.cells if cell.environment not in left_out),
            }
        )
        return replace(
            self,
            plan=plan,
            cells=tuple(cell for cell in self.cells if cell.environment not in left_out),
            trials=tuple(trial for trial in self.trials if trial.environment not in left_out),
            measurements=tuple(one for one in self.measurements if one.environment not in left_out),
            prepared=self.numbers,
        )

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
        if self.compared_with:
            return self.compared_with
        return baseline if baseline in self.environments else next(iter(self.environments), "")

    def counterpart(self, label: str) -> str:
        """What an entry is compared with: the baseline, or, where the plan does not have it there, the first
        environment of the study that has it."""
        return self._substitutes.get(label, self.plan.study.baseline)

    @cached_property
    def _substitutes(self) -> Mapping[str, str]:
        from vtax.analysis.estimate.baselines import substitutes

        return {label: name for (label, _), name in substitutes(self.plan, self.emulated).items()}

    @property
    def compared(self) -> tuple[str, ...]:
        """The environments that are compared with the reference."""
        return tuple(name for name in self.environments if name != self.reference)

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every environment with all that it is compared with: the reference, what takes its place for some metrics,
        and the steps of the ladder. Only environments that came up."""
        numbers, ladder = self.numbers, self.plan.study.ladder
        taken = {(one.environment, numbers.baseline_of(one)) for one in numbers.levels.values()}
        steps = {(step, previous) for previous, step in (*pairwise(ladder), *zip(ladder[:1], ladder[-1:], strict=True))}
        others = (both for both in product(self.environments, repeat=2) if both in taken | steps)
        found: dict[frozenset[str], tuple[str, str]] = {}
        for one, base in (*((name, self.reference) for name in self.compared), *others):
            if one != base:
                found.setdefault(frozenset((one, base)), (one, base))  # not in both directions
        return tuple(found.values())

    def capabilities(self, environment: str) -> Capabilities:
        """What is recorded of an environment's provider; UNKNOWN when nothing is."""
        return self._capabilities.get(environment, UNKNOWN)

    @cached_property
    def _capabilities(self) -> Mapping[str, Capabilities]:
        return capabilities_of(self.plan)

    def option(self, environment: str, name: str) -> object:
        """An option of an environment as the plan has it; None when it has none of that name."""
        return next((spec.options.get(name) for spec in self.plan.environments if spec.name == environment), None)

    def host_facts(self, environment: str = "") -> Mapping[str, Any]:
        """The facts of the machine that the nodes ran on, as the first cell (of an environment) recorded them; of the
        first machine, where it was on several."""
        return next(iter(self.machines_facts(environment)), {})

    def machines_facts(self, environment: str = "") -> tuple[Mapping[str, Any], ...]:
        """The facts of every machine of the first cell (of an environment) that recorded any."""
        cells = (cell for cell in self.cells if environment in ("", cell.environment))
        known = ((cell.host_facts,) if cell.host_facts else tuple(cell.machine_facts.values()) for cell in cells)
        return next(filter(None, known), ())

    @cached_property
    def machine_of(self) -> Mapping[str, str]:
        """Cell -> the machine of its cluster, by its name in the study; "" on this machine, and where a cluster is on
        several."""
        return {cell.id: cell.machine for cell in self.plan.cells}

    @cached_property
    def identities(self) -> Mapping[str, tuple[tuple[CellRecord, Mapping[str, Any]], ...]]:
        """Machine -> what it said of itself at every cell, in the order of time: at those that failed too, after some
        trials or before any. "" is this machine."""
        found: dict[str, list[tuple[CellRecord, Mapping[str, Any]]]] = {}
        for cell in sorted(self.cells, key=lambda cell: cell.started):
            known = cell.machine_facts or {self.machine_of.get(cell.cell, ""): cell.host_facts}
            for machine, facts in known.items():
                if facts:
                    found.setdefault(machine, []).append((cell, facts))
        return {machine: tuple(several) for machine, several in found.items()}

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

    def facts_of(self, trial: TrialRecord) -> list[Mapping[str, Any]]:
        """What each output of a trial says besides its values."""
        known = self.readings.get(trial.id)
        read = [output.facts for output in known.outputs] if known else []
        if trial.imported is None:
            return read
        return [{**trial.imported.facts, **(read[0] if read else {})}]

    def facts(self, trials: Iterable[TrialRecord], *names: str) -> list[Mapping[str, Any]]:
        """The facts of every output of these trials that says all of `names`, in order."""
        every = (facts for trial in trials for facts in self.facts_of(trial))
        return [facts for facts in every if all(name in facts for name in names)]

    def raw_sha256(self, trial: TrialRecord) -> str:
        """The hash of all that a trial left; "" where that is nothing or was not read."""
        return self.readings[trial.id].raw_sha256 if trial.id in self.readings else ""

    def values_by_environment(self, fact: str, *benchmarks: str) -> dict[str, list[str]]:
        """Environment -> the different values of a fact of its runs, as text, in order; without those that lack it."""
        found: dict[str, list[str]] = {}
        for trial in self.trials:
            if not benchmarks or trial.benchmark in benchmarks:
                for facts in self.facts((trial,), fact):
                    if (text := str(facts[fact])) not in found.setdefault(trial.environment, []):
                        found[trial.environment].append(text)
        return found

    def benchmarks_with(self, fact: str, environment: str) -> tuple[str, ...]:
        """The benchmarks whose runs in an environment tell a fact."""
        mine = (trial for trial in self.trials if trial.environment == environment)
        return tuple(dict.fromkeys(trial.benchmark for trial in mine if self.facts((trial,), fact)))

    def series(self, trial: TrialRecord, name: str) -> list[TimeSeries]:
        """A time series, from every output of a trial that has it."""
        known = self.readings.get(trial.id)
        return [output.series[name] for output in known.outputs if name in output.series] if known else []

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

    def name_of(self, trial: TrialRecord) -> str:
        """How a message names a run: its id, or the file of its log, the line in it and the environment."""
        if trial.imported is None:
            return trial.id
        line = f" line {trial.imported.first_line}" if trial.imported.first_line > 1 else ""
        return f"{trial.imported.file}{line} in {trial.environment}"

    def checks(self, environment: str) -> list[str]:
        """What was verified of the clusters of an environment when they were new."""
        return [text for cell in self.provisioned if cell.environment == environment for text in cell.checks]

    def metrics(self, trial: TrialRecord) -> set[str]:
        """The metrics of which a trial has a value."""
        return {one.metric for one in self.measured.get(trial.id, ())}

    def counted(self, trial: TrialRecord) -> set[str]:
        """What was counted on any node, or on the machine, during a trial."""
        return {*trial.host_counters, *(name for node in self.counters.get(trial.id, {}).values() for name in node)}

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


def observed_in(cell: CellRecord) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Node and facts of one cell."""
    return ((facts.node, facts.values) for facts in cell.facts)


def observed(evidence: Evidence, environment: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Node and facts, of every cell of an environment that came up."""
    return (one for cell in evidence.provisioned if cell.environment == environment for one in observed_in(cell))


def values_of(evidence: Evidence, environment: str, fact: str) -> dict[str, list[Any]]:
    """Node -> the different values that a fact had there; a node where it never was observed is absent."""
    found: dict[str, dict[str, Any]] = {}
    for node, values in observed(evidence, environment):
        if fact in values:
            found.setdefault(node, {}).setdefault(canonical(values[fact]), values[fact])
    return {node: list(different.values()) for node, different in found.items()}


@dataclass(frozen=True)
class Difference:
    """A fact that differs between an environment and one that it is compared with, on the first node where it does."""

    environment: str
    base: str
    node: str
    theirs: tuple[Any, ...]
    reference: tuple[Any, ...]


def differences(evidence: Evidence, fact: str) -> Iterator[Difference]:
    """Where a node has other values of a fact than the same node in what its environment is compared with."""
    for environment, base in evidence.pairs:
        theirs, reference = values_of(evidence, environment, fact), values_of(evidence, base, fact)
        for node in (node for node in theirs if node in reference):
            if set(map(canonical, theirs[node])) != set(map(canonical, reference[node])):
                yield Difference(environment, base, node, tuple(theirs[node]), tuple(reference[node]))
                break


def against_first(evidence: Evidence, known: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str, str, str, str]]:
    """(environment, label, theirs, first, its) where what is known of (environment, label) differs from the first
    environment of which anything is known under that label; the reference comes before others."""
    for label in dict.fromkeys(label for _, label in known):
        names = [environment for environment, other in known if other == label]
        first = evidence.counterpart(label) if evidence.counterpart(label) in names else names[0]
        for name in names:
            if known[name, label] != known[first, label]:
                yield name, label, known[name, label], first, known[first, label]


def emulated(evidence: Evidence, environment: str) -> bool:
    """Whether an environment ran in software emulation: as its provider recorded it, or as its nodes see it."""
    nodes = [values for _, values in observed(evidence, environment)]
    if any(values.get("emulated") or EMULATION in " ".join(values.get("virtualization", ())) for values in nodes):
        return True
    if any("emulated" in values for values in nodes):
        return False
    return any(started_emulation(cell.commands) for cell in evidence.provisioned if cell.environment == environment)


def canonical(value: object) -> str:
    """A value as text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, default=str)


def shown(values: tuple[Any, ...] | list[Any]) -> str:
    """Values or names in a message, the first few of them."""
    texts = [str(value) for value in values]
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
