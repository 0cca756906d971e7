"""The numbers of a campaign as far as no finding matters to them: computed once, read by the audit and the analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from vtax.analysis.estimate.columns import columns
from vtax.analysis.estimate.context import Declared, PairingContext, missing_levels, pairing_context
from vtax.analysis.estimate.pairs import Pair, pair
from vtax.analysis.estimate.summary import Key, Runs, iterations_of, levels_of, measured
from vtax.analysis.multiplicity import ControlArm, control_arm
from vtax.analysis.records import Level
from vtax.analysis.sequential.group_sequential import Tables
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction
from vtax.model.plan import Origin, Plan
from vtax.model.trial import TrialRecord


@dataclass(frozen=True)
class Prepared:
    """Levels by environment and series, the iterations behind them, and (once asked for) pairs with the baseline."""

    plan: Plan
    trials: Sequence[TrialRecord]
    levels: Mapping[Key, Level]
    runs: Runs
    context: PairingContext

    @cached_property
    def environments(self) -> tuple[str, ...]:
        """In the order of the plan; one that the plan does not know comes last."""
        planned = tuple(environment.name for environment in self.plan.environments)
        return planned + tuple(sorted({name for name, _ in self.levels} - set(planned)))

    def in_order(self, levels: Iterable[Level]) -> tuple[Level, ...]:
        """By series, and by environment as the plan has them."""
        return tuple(sorted(levels, key=lambda level: (level.series, self.environments.index(level.environment))))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every series of every environment next to the baseline, also where no run gave a number."""
        every = {**self.levels, **missing_levels(self.levels, self.context)}
        return tuple(
            pair(level, every, self.context)
            for level in self.in_order(every.values())
            if level.environment != self.plan.study.baseline and level.direction is not Direction.NONE
        )

    @cached_property
    def control(self) -> ControlArm:
        """The baseline against itself."""
        return control_arm(self.pairs)


def prepare(
    measurements: Iterable[Measurement],
    *,
    plan: Plan,
    trials: Sequence[TrialRecord],
    tables: Tables | None = None,
    declared: Declared | None = None,
) -> Prepared:
    """The levels of `measurements`, in an order that does not depend on theirs.

    `tables` saves the simulation of the plan's looks (`calibration_cache`), and changes no bit. `declared` are the
    metrics that benchmarks may report, for entries of which no run succeeded. Raises ParseError, naming the file, for
    numbers that cannot be: a rate of zero, two values for one thing.
    """
    table = columns(measurements)
    found, last = measured(table), int(table.round.max(initial=0))
    iterations = iterations_of(table, found) if plan.interleave == "trial" else {}
    context = pairing_context(plan, trials, last, tables or {}, declared or {}, iterations)
    if plan.origin is Origin.IMPORTED:  # no clock of vtax and no planned cells: nothing to say when, or what is lost
        return Prepared(plan, trials, *levels_of(table, found, {}), context)
    levels, runs = levels_of(table, found, {trial.id: trial.started for trial in trials}, context.timeouts)
    return Prepared(plan, trials, levels, runs, context)
