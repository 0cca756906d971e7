"""The numbers of a campaign as far as no finding matters to them: computed once, read by the audit and the analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from vtax.analysis.estimate.baselines import candidates, substitutes
from vtax.analysis.estimate.blocks import Blocks, round_of
from vtax.analysis.estimate.columns import columns
from vtax.analysis.estimate.context import Declared, PairingContext, missing_levels, pairing_context
from vtax.analysis.estimate.pairs import Pair, pair
from vtax.analysis.estimate.summary import Key, Runs, iterations_of, levels_of, measured
from vtax.analysis.multiplicity import ControlArm, control_arm
from vtax.analysis.records import Level
from vtax.analysis.sequential.group_sequential import Tables
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, SeriesRecord
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
    planned_control: ControlArm | None = None  # of the planned baseline, where this is an analysis against another

    @cached_property
    def environments(self) -> tuple[str, ...]:
        """In the order of the plan; one that the plan does not know comes last."""
        planned = tuple(environment.name for environment in self.plan.environments)
        return planned + tuple(sorted({name for name, _ in self.levels} - set(planned)))

    def in_order(self, levels: Iterable[Level]) -> tuple[Level, ...]:
        """By series, and by environment as the plan has them."""
        return tuple(sorted(levels, key=lambda level: (level.series, self.environments.index(level.environment))))

    def against(self, plan: Plan, emulated: frozenset[str]) -> Prepared:
        """The same numbers under a plan that has another baseline."""
        taking = substitutes(plan, emulated)
        context = replace(self.context, study=plan.study, substitutes=taking, emulated=emulated)
        return replace(self, plan=plan, context=context, planned_control=self.control)

    def baseline_of(self, one: SeriesRecord) -> str:
        """What a series is compared with: the study's baseline, or, where that cannot have it, the first environment of
        the study that has it.

        It cannot have what the plan does not have there, nor what its runs, which all succeeded, never gave.
        """
        place = (one.label, one.labels.get("target", ""))
        baseline = self.context.substitutes.get(place, self.plan.study.baseline)
        if (baseline, one.series) in self.levels or (baseline, *place) not in self.context.without_loss:
            return baseline
        others = candidates(self.plan, self.context.emulated)
        return next((name for name in others if (name, one.series) in self.levels), baseline)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every series of every environment next to what it is compared with, also where no run gave a number."""
        every = {**self.levels, **missing_levels(self.levels, self.context)}
        aside = {self.plan.study.baseline, *self.context.emulated}
        return tuple(
            pair(level, baseline, every, self.context)
            for level in self.in_order(every.values())
            if level.direction is not Direction.NONE
            and level.environment not in aside
            and level.environment != (baseline := self.baseline_of(level))
        )

    @cached_property
    def control(self) -> ControlArm:
        """The planned baseline against itself, whatever else environments are compared with here."""
        return self.planned_control or control_arm(self.pairs)


def prepare(
    measurements: Iterable[Measurement],
    *,
    plan: Plan,
    trials: Sequence[TrialRecord],
    declared: Declared,
    tables: Tables | None = None,
    emulated: frozenset[str] = frozenset(),
    alternated: bool = True,
) -> Prepared:
    """The levels of `measurements`, in an order that does not depend on theirs.

    `declared` are the metrics that entries may report, by label, for those of which no run succeeded. `tables` saves
    the simulation of the plan's looks (`calibration_cache`), and changes no bit. Environments that are `emulated` have
    levels and are not compared. Unless all rounds `alternated` as planned, whole cells are compared in all of them:
    runs that are not adjacent are not pairs, and what one cell leaves to the next is adjusted for. Raises ParseError,
    naming the file, for numbers that cannot be: a rate of zero, two values for one thing.
    """
    table = columns(measurements, Blocks.of(plan))
    found, last = measured(table), int(round_of(table.block).max(initial=0))
    iterations = iterations_of(table, found) if plan.interleave == "trial" and alternated else None
    context = pairing_context(plan, trials, last, tables or {}, declared, iterations, emulated, table.blocks)
    if plan.origin is Origin.IMPORTED:  # no clock of vtax and no planned cells: nothing to say when, or what is lost
        return Prepared(plan, trials, *levels_of(table, found, {}), context)
    levels, runs = levels_of(table, found, {trial.id: trial.started for trial in trials}, context.timeouts)
    return Prepared(plan, trials, levels, runs, context)
