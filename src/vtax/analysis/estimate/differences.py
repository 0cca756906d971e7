"""One difference a round between two environments: of their cells, or of the trials that alternated in it.

By cells: the difference of the two cells' numbers. By trials: iteration i of one and iteration i of the other ran one
right after the other, so the difference of the round is the median of these paired differences. Their order is
mirrored from one iteration to the next (AB, BA, AB, BA), so that what the first leaves to the second cancels; where one
of the two iterations of such a couple is missing, the other would count alone, and both are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vtax.analysis.estimate.blocks import ONE_MACHINE, Blocks, round_of
from vtax.analysis.estimate.columns import Bools, Floats, Ints
from vtax.analysis.estimate.failures import SPEEDS, Timeouts
from vtax.analysis.estimate.machines import covered, pooled
from vtax.analysis.estimate.paired import log_differences
from vtax.analysis.estimate.summary import Iterations, Key, place_of_level
from vtax.analysis.records import Level
from vtax.model.metric import Direction

Rounds = frozenset[int]
Values = tuple[tuple[Floats, ...], tuple[Floats, ...]]
NEVER: Rounds = frozenset()
PLACES = 1 << 32  # more than any campaign has iterations in a round
NO_ITERATIONS = Iterations(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True)
class RoundDifferences:
    """One difference for each round that both have, in order of rounds: above zero is better than the other.

    `slow` are further rounds in which one of the two ran into its time limit and not both, so that its difference has
    no bound. `late`: a run that ran into it is part of these rounds. By trials, `pairs` is how many paired iterations
    each round has, and `values` are their values in both environments, round by round; by cells both are None.

    On several machines that each have whole rounds, `alone` are the differences on each of them that the estimate is
    about, and `differences` are these `pooled`; `few` are machines with too few rounds for that.
    """

    rounds: Ints
    differences: Floats
    slow: tuple[Rounds, Rounds] = (NEVER, NEVER)
    late: bool = False
    pairs: Ints | None = None
    values: Values | None = None
    alone: Mapping[str, RoundDifferences] = field(default_factory=dict)
    few: Mapping[str, int] = field(default_factory=dict)


NOTHING = RoundDifferences(np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True)
class Alternation:
    """How trials alternated in a campaign: the iterations of every series, how many were planned by label, and which
    hit their time limit."""

    iterations: Mapping[Key, Iterations]
    planned: Mapping[str, int]
    timeouts: Timeouts

    def mirrored(self, label: str) -> bool:
        """Whether an entry repeats its work, so that the order of its pairs is mirrored."""
        return self.planned.get(label, 1) > 1


def round_differences(
    level: Level,
    base: Level | None,
    timeouts: Timeouts,
    alternation: Alternation | None,
    blocks: Blocks = ONE_MACHINE,
) -> RoundDifferences:
    """The differences of two levels of one series; by trials where there is an `alternation` and a ratio."""
    if base is None or level.direction is Direction.NONE:
        return NOTHING
    if alternation is None or not level.kind.has_ratio or not (level.cells and base.cells):
        found = _by_cells(level, base, timeouts, blocks)
    else:
        found = _by_trials(level, base, alternation)
    return over_machines(_alone(found, blocks)) if blocks.machines else found


def _alone(found: RoundDifferences, blocks: Blocks) -> dict[str, RoundDifferences]:
    """The differences of blocks as those of rounds on each machine."""
    several = {}
    for machine in blocks.machines:
        mine = np.array([blocks.machine(block) == machine for block in found.rounds.tolist()], bool)
        slow = [frozenset(round_of(one) for one in side if blocks.machine(one) == machine) for side in found.slow]
        chosen = np.flatnonzero(mine).tolist()
        several[machine] = RoundDifferences(
            rounds=round_of(found.rounds[mine]),
            differences=found.differences[mine],
            slow=(slow[0], slow[1]),
            late=found.late,
            pairs=None if found.pairs is None else found.pairs[mine],
            values=None if found.values is None else _chosen(found.values, chosen),
        )
    return several


def _chosen(values: Values, places: Sequence[int]) -> Values:
    mine, theirs = ([side[place] for place in places] for side in values)
    return tuple(mine), tuple(theirs)


def over_machines(alone: Mapping[str, RoundDifferences]) -> RoundDifferences:
    """The differences of machines as one difference a round; see `machines.pooled`.

    A round that hit a time limit on one machine has no mean over them: it is slower by an unknown factor.
    """
    slow = [frozenset[int]().union(*(one.slow[side] for one in alone.values())) for side in (0, 1)]
    without = slow[0] | slow[1]
    known = {name: within(one, frozenset(one.rounds.tolist()) - without) for name, one in alone.items()}
    used = {name: one for name, one in known.items() if one.rounds.size}
    grid, _ = grid_of(used)
    enough = dict(zip(used, covered(~np.isnan(grid)).tolist(), strict=True))
    about = {name: one for name, one in used.items() if enough[name]}
    few = {name: int(one.rounds.size) for name, one in known.items() if name not in about}
    grid, rounds = grid_of(about)
    several = [one for one in about.values() if one.pairs is not None]
    pairs = [sum(int(one.pairs[one.rounds == r].sum()) for one in several if one.pairs is not None) for r in rounds]
    return RoundDifferences(
        rounds=rounds,
        differences=pooled(grid) if rounds.size else np.empty(0),
        slow=(slow[0] - slow[1], slow[1] - slow[0]),
        late=any(one.late for one in about.values()),
        pairs=np.array(pairs, np.int64) if several else None,
        alone=about,
        few=few,
    )


def within(found: RoundDifferences, rounds: Rounds) -> RoundDifferences:
    """Only these of the rounds."""
    kept = np.array([number in rounds for number in found.rounds.tolist()], bool)
    if found.alone:
        return over_machines({name: within(one, rounds) for name, one in found.alone.items()})
    return replace(
        found,
        rounds=found.rounds[kept],
        differences=found.differences[kept],
        pairs=None if found.pairs is None else found.pairs[kept],
        values=None if found.values is None else _chosen(found.values, np.flatnonzero(kept).tolist()),
    )


def grid_of(alone: Mapping[str, RoundDifferences]) -> tuple[Floats, Ints]:
    """The differences by machine and round, NaN where there is none, and the rounds in which any machine has one."""
    rounds = np.unique(np.concatenate([one.rounds for one in alone.values()] or [np.empty(0, np.int64)]))
    grid = np.full((len(alone), rounds.size), np.nan)
    for row, one in zip(grid, alone.values(), strict=True):
        row[np.searchsorted(rounds, one.rounds)] = one.differences
    return grid, rounds


def _by_cells(level: Level, base: Level, timeouts: Timeouts, blocks: Blocks) -> RoundDifferences:
    theirs = {blocks.on(cell.machine, cell.round): cell.value for cell in base.cells}
    mine_at = {blocks.on(cell.machine, cell.round): cell.value for cell in level.cells}
    both = [(block, value, theirs[block]) for block, value in mine_at.items() if block in theirs]
    rounds = np.array([number for number, _, _ in both], np.int64)
    mine, other = np.array([a for _, a, _ in both]), np.array([b for _, _, b in both])
    if not level.kind.has_ratio:  # a plain difference keeps its sign: more is more
        return RoundDifferences(rounds, mine - other)
    differences = log_differences(mine, other, higher_is_better=level.direction is Direction.HIGHER)
    common = set(rounds.tolist())
    every = (cell for one in (level, base) for cell in one.cells)
    late = any(cell.timed_out for cell in every if blocks.on(cell.machine, cell.round) in common)
    return RoundDifferences(rounds, differences, _slow_cells(level, base, timeouts, blocks), late)


def _slow_cells(level: Level, base: Level, timeouts: Timeouts, blocks: Blocks) -> tuple[Rounds, Rounds]:
    """Blocks in which one of both ran into its time limit and the other has a value, for metrics that say how fast
    something was."""
    if level.kind not in SPEEDS:
        return NEVER, NEVER
    mine, theirs = (frozenset(timeouts.get(place_of_level(one), {})) for one in (level, base))
    ours, others = ({blocks.on(cell.machine, cell.round) for cell in one.cells} for one in (level, base))
    return (mine - ours) & others, (theirs - others) & ours


def _by_trials(level: Level, base: Level, alternation: Alternation) -> RoundDifferences:
    higher = level.direction is Direction.HIGHER
    mine, theirs = (_with_timeouts(one, alternation, higher) for one in (level, base))
    _, at, of = np.intersect1d(_keys(mine), _keys(theirs), return_indices=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # both hit their limit: nothing is known of their difference
        apart = log_differences(mine.values[at], theirs.values[of], higher_is_better=higher)
    rounds, known = mine.blocks[at], ~np.isnan(apart)
    if alternation.mirrored(level.label):
        known &= _in_couples(rounds, mine.numbers[at], known)
    rounds, apart, at, of = rounds[known], apart[known], at[known], of[known]
    numbers, starts, sizes = np.unique(rounds, return_index=True, return_counts=True)
    medians = _medians(apart, starts, sizes)
    finite = np.isfinite(medians)
    chosen = [slice(start, start + size) for start, size in zip(starts[finite], sizes[finite], strict=True)]
    return RoundDifferences(
        rounds=numbers[finite],
        differences=medians[finite],
        slow=(frozenset(numbers[medians == -np.inf].tolist()), frozenset(numbers[medians == np.inf].tolist())),
        late=not np.isfinite(apart[np.isin(rounds, numbers[finite])]).all(),
        pairs=sizes[finite],
        values=(
            tuple(mine.values[at][one] for one in chosen),
            tuple(theirs.values[of][one] for one in chosen),
        ),
    )


def _with_timeouts(level: Level, alternation: Alternation, higher: bool) -> Iterations:
    """The iterations of a level; those that ran into their time limit as endless, if that is a matter of speed."""
    known = alternation.iterations.get((level.environment, level.series), NO_ITERATIONS)
    late = alternation.timeouts.get(place_of_level(level), {}) if level.kind in SPEEDS else {}
    more = [(round_, number) for round_, several in late.items() for number in several]
    if not more:
        return known
    rounds, numbers = np.array(more, np.int64).T
    endless = np.full(len(more), 0.0 if higher else np.inf)
    return Iterations(
        np.concatenate((known.blocks, rounds)),
        np.concatenate((known.numbers, numbers)),
        np.concatenate((known.values, endless)),
    )


def _keys(iterations: Iterations) -> Ints:
    """Round and iteration as one number, which rises as they do."""
    return np.asarray(iterations.blocks * PLACES + iterations.numbers)


def _in_couples(rounds: Ints, numbers: Ints, known: Bools) -> Bools:
    """Whether the other iteration of its couple is known too: of 1 and 2, of 3 and 4, ..."""
    couples = rounds * PLACES + (numbers - 1) // 2
    _, place = np.unique(couples, return_inverse=True)
    return np.asarray(np.bincount(place, weights=known)[place] == 2)


def _medians(apart: Floats, starts: Ints, sizes: Ints) -> Floats:
    """The median of each run of differences, all runs of one length at once."""
    found = np.empty(starts.size)
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        found[which] = median_of_pairs(apart[starts[which][:, None] + np.arange(size)])
    return found


def median_of_pairs(differences: Floats | Sequence[float]) -> Floats:
    """The difference of a round from those of its pairs (shape (..., m) to (...)); it changes its sign with theirs."""
    ordered = np.sort(np.asarray(differences, float), axis=-1)
    size = ordered.shape[-1]
    with np.errstate(invalid="ignore"):  # slower and faster without bound: nothing is known of this round
        return np.asarray((ordered[..., (size - 1) // 2] + ordered[..., size // 2]) / 2)
