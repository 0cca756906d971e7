"""What pairing needs of a campaign besides its levels: who ran when, which rounds are over, what was planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vtax.analysis.estimate.baselines import EntryPlace, substitutes
from vtax.analysis.estimate.blocks import ONE_MACHINE, Blocks
from vtax.analysis.estimate.differences import Alternation, RoundDifferences, round_differences
from vtax.analysis.estimate.failures import Lost, Place, Timeouts, lost, place_of, timeouts
from vtax.analysis.estimate.summary import Iterations, Key, empty_level, place_of_level
from vtax.analysis.records import Level
from vtax.analysis.sequential.group_sequential import Tables
from vtax.model.metric import Metric, Series, SeriesRecord
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.model.trial import Status, TrialRecord

Declared = Mapping[str, Sequence[Metric]]  # label of an entry -> the metrics that it may report


@dataclass(frozen=True)
class PairingContext:
    """What of plan and trials the pairs need. `finished` rounds are over, the first ones; `places` is who ran when,
    by block and environment.

    `planned` is where the plan has which entry, and its benchmark; `rounds` how many each environment has; `timeouts`
    and `lost` are measured runs that gave no number, and `without_loss` is where every measured run so far succeeded.
    `alternation` is None where whole cells are compared. `substitutes` take the place of the baseline for entries that
    it does not have; `emulated` environments are not compared.
    """

    study: Study
    places: Mapping[tuple[int, str], int]
    finished: int
    complete: int
    planned: Mapping[Place, str] = field(default_factory=dict)
    rounds: Mapping[str, int] = field(default_factory=dict)
    timeouts: Timeouts = field(default_factory=dict)
    lost: Lost = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)
    declared: Declared = field(default_factory=dict)
    alternation: Alternation | None = None
    without_loss: frozenset[Place] = frozenset()
    substitutes: Mapping[EntryPlace, str] = field(default_factory=dict)
    emulated: frozenset[str] = frozenset()
    blocks: Blocks = ONE_MACHINE

    def baseline_of_entry(self, label: str) -> str:
        """What an entry is compared with on the first of its targets."""
        return next((name for (entry, _), name in self.substitutes.items() if entry == label), self.study.baseline)

    def takes_part(self, environment: str, round_: int) -> bool:
        """Whether the plan has an environment in a round: some are only in the first ones."""
        return round_ <= self.rounds.get(environment, self.study.rounds)

    @property
    def look(self) -> int | None:
        """The last planned look that was reached."""
        return max((look for look in self.study.looks if look <= self.finished), default=None)

    def differences(self, level: Level, base: Level | None) -> RoundDifferences:
        """One difference a round between two levels of one series; above zero, the first is better."""
        return round_differences(level, base, self.timeouts, self.alternation, self.blocks)

    def mirrored(self, label: str) -> bool:
        """Whether the order of an entry's trials is mirrored within each round."""
        return self.alternation is not None and self.alternation.mirrored(label)


def pairing_context(
    plan: Plan,
    trials: Sequence[TrialRecord],
    measured: int,
    tables: Tables,
    declared: Declared,
    iterations: Mapping[Key, Iterations] | None,
    emulated: frozenset[str],
    blocks: Blocks,
) -> PairingContext:
    """`measured` is the last round that has a measurement; it counts where no trial was recorded. `iterations` are
    those of trials that alternated in all rounds; None where whole cells are compared.

    The last round with any record is over, and so are those before it: what has no record there is lost, like a run
    that failed. (At an interim analysis of a running campaign, the last round is the one that has just ended.)
    """
    done = {trial.id for trial in trials if trial.status is Status.OK}
    rounds: dict[int, list[str]] = {}
    places: dict[tuple[int, str], int] = {}
    for place, cell in enumerate(plan.cells):
        places[blocks.number(cell.round, cell.id), cell.environment] = place
        rounds.setdefault(cell.round, []).extend(trial.id for trial in cell.trials if not trial.warmup)
    known = {spec.name for spec in plan.environments}
    without_result = lost(trials)
    measured_at = {place_of(trial) for trial in trials if not trial.warmup}
    late = timeouts(trials, blocks)
    repeated = {spec.label: spec.iterations for spec in plan.study.benchmarks}
    return PairingContext(
        study=plan.study,
        places=places,
        finished=max((trial.round for trial in trials), default=measured),
        complete=sum(all(trial in done for trial in several) for several in rounds.values()),
        planned={
            (work.environment, work.label, work.target.label): work.benchmark
            for work in plan.work
            if work.environment in known
        },
        rounds={name: plan.rounds_of(name) for name in known},
        timeouts=late,
        lost=without_result,
        tables=tables,
        declared=declared,
        alternation=None if iterations is None else Alternation(iterations, repeated, late),
        without_loss=frozenset(measured_at - without_result.keys()),
        substitutes=substitutes(plan, emulated),
        emulated=emulated,
        blocks=blocks,
    )


def missing_levels(found: Mapping[Key, Level], context: PairingContext) -> dict[Key, Level]:
    """Each series that some environment has, in those that were to have it and do not: nothing of it succeeded there.

    Of an entry that succeeded nowhere: the metrics that its benchmark declares as primary.
    """
    known: dict[Series, SeriesRecord] = {level.series: level for level in found.values()}
    measured = {place_of_level(level)[1:] for level in found.values()}
    for place in sorted(context.lost):
        if place in context.planned and place[1:] not in measured:
            known |= {one.series: one for one in _declared(context, place)}
    planned: dict[tuple[str, str], list[str]] = {}
    for environment, label, target in sorted(context.planned):
        planned.setdefault((label, target), []).append(environment)
    return {
        (environment, series): empty_level(one, environment)
        for series, one in known.items()
        for environment in planned.get((one.label, one.labels.get("target", "")), ())
        if (environment, series) not in found
    }


def _declared(context: PairingContext, place: Place) -> list[SeriesRecord]:
    """The metrics that the benchmark of a planned entry declares as primary; none of one that is not known here."""
    benchmark, (_, label, target) = context.planned[place], place
    return [
        SeriesRecord(
            benchmark=benchmark,
            label=label,
            metric=metric.name,
            unit=metric.unit,
            kind=metric.kind,
            direction=metric.direction,
            primary=not context.study.explores(label, metric.name),
            labels={"target": target},
        )
        for metric in context.declared.get(label, ())
        if metric.primary
    ]
