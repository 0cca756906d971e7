"""The order of everything in a round: balanced, random, and the same for the same seed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator

    from vtax.model.plan import Cell, Plan, PlannedTrial

ENVIRONMENTS, BENCHMARKS = 0, 1  # what is put in order: each has its own random stream
ALLOCATIONS = 2  # orders that could have been drawn instead, for the randomisation test
RESAMPLES = 3  # rounds and iterations of a bootstrap
GUESTS = 4  # and from here on: environments of fewer rounds, two streams for each number of rounds


def orders_of_rounds(seed: int, rounds: Sequence[int], machine: int = 0) -> list[list[int]]:
    """For every round, the order of the environments that take part in it; `rounds` is in how many each one does.
    Several machines, numbered from 1, each have their own orders.

    Environments of equally many rounds are balanced among themselves. Those of fewer rounds come together, before all
    that have more or after them, which is balanced as the order of two environments is: so the order of the others
    is the same as without them.
    """
    orders: list[list[int]] = [[] for _ in range(max(rounds, default=0))]
    for place, count in enumerate(sorted(set(rounds), reverse=True)):
        members = [i for i, own in enumerate(rounds) if own == count]
        stream = GUESTS + 2 * place
        among = environment_orders(seed, count, len(members), stream if place else ENVIRONMENTS, machine)
        sides = environment_orders(seed, count, 2, stream + 1, machine)
        for number, (own, side) in enumerate(zip(among, sides, strict=True)):
            group = [members[i] for i in own]
            orders[number] = [*group, *orders[number]] if side[0] else [*orders[number], *group]
    return orders


def exchangeable(a: int, b: int, rounds: Sequence[int]) -> int:
    """Of how many environments the square is that puts two environments in order, one of `a` rounds and one of `b`."""
    return sum(own == a for own in rounds) if a == b else 2


def environment_orders(
    seed: int, rounds: int, environments: int, stream: int = ENVIRONMENTS, machine: int = 0
) -> list[list[int]]:
    """For every round, the order of the environments 0 to `environments` - 1.

    Each block of as many rounds as there are environments is a Latin square: each is once at every place.
    The squares are those of Williams (1949): of two environments each comes first in half of the rounds of a block
    (of two blocks, for an odd number of environments), and each follows each other equally often. For two
    environments that is AB, BA or BA, AB. Which environment is which symbol, and which row comes when, is random.
    """
    orders: list[list[int]] = []
    while environments and len(orders) < rounds:
        random = generator(seed, len(orders) + 1, stream, machine)
        symbols = [int(i) for i in random.permutation(environments)]
        shifts = [int(i) for i in random.permutation(environments)]
        mirrored = environments % 2 == 1 and len(orders) % (2 * environments) >= environments
        if mirrored:
            first = [row[::-1] for row in orders[-environments:]]
            orders += [first[shift] for shift in shifts]
        else:
            orders += [[symbols[(step + shift) % environments] for step in zigzag(environments)] for shift in shifts]
    return orders[:rounds]


def block_rounds(environments: int) -> int:
    """How many rounds get their orders from one random assignment of the environments to the symbols of a square."""
    return environments if environments % 2 == 0 else 2 * environments


def zigzag(count: int) -> list[int]:
    """0, 1, -1, 2, -2, ... modulo `count`: all steps between neighbours differ."""
    return [(i + 1) // 2 if i % 2 else (count - i // 2) % count for i in range(count)]


def benchmark_order(seed: int, number: int, count: int) -> list[int]:
    """The order of `count` things to run in round `number`, the same in all its environments."""
    return [int(i) for i in generator(seed, number, BENCHMARKS).permutation(count)]


def trials_in_order(cells: Sequence[Cell]) -> list[tuple[Cell, PlannedTrial]]:
    """How the trials of one round alternate between its cells, which are given in the order of the round.

    For every work: its warm-ups, one cell after the other; then iteration 1 in the order of the cells, iteration 2 in
    the reverse order, iteration 3 in the order again (ABBA). So of every two iterations a drift in time takes as much
    from one environment as from another. A cell that lacks a work is passed over.
    """
    ordered = []
    for work in _works_in_order(cells):
        mine = [(cell, [trial for trial in cell.trials if trial.work == work]) for cell in cells]
        ordered += [(cell, trial) for cell, trials in mine for trial in trials if trial.warmup]
        for number in sorted({trial.iteration for _, trials in mine for trial in trials if not trial.warmup}):
            turn = mine if number % 2 else mine[::-1]
            ordered += [
                (cell, trial)
                for cell, trials in turn
                for trial in trials
                if not trial.warmup and trial.iteration == number
            ]
    return ordered


def _works_in_order(cells: Sequence[Cell]) -> list[str]:
    """The works of all cells, each cell's in its own order: the cells of a round agree, but some lack some works."""
    lists = [list(dict.fromkeys(trial.work for trial in cell.trials)) for cell in cells]
    found: list[str] = []
    while lists := [works for works in lists if works]:
        found.append(next(works[0] for works in lists if not any(works[0] in other[1:] for other in lists)))
        lists = [[work for work in works if work != found[-1]] for works in lists]
    return found


def planned_order(plan: Plan, alternating: Callable[[int], bool]) -> list[PlannedTrial]:
    """All trials of a plan as they run. `alternating` says of which rounds the trials alternate between the cells; in
    all others one cell follows the other."""
    ordered: list[PlannedTrial] = []
    for (number, _), group in groupby(plan.cells, key=lambda cell: cell.block):
        cells = tuple(group)
        if alternating(number):
            ordered += [trial for _, trial in trials_in_order(cells)]
        else:
            ordered += [trial for cell in cells for trial in cell.trials]
    return ordered


def generator(seed: int, number: int, what: int, machine: int = 0) -> Generator:
    """The random numbers of one purpose in one round, on one of several machines (from 1), or on this one (0)."""
    from numpy.random import PCG64, Generator, SeedSequence

    return Generator(PCG64(SeedSequence([seed, number, what, machine] if machine else [seed, number, what])))
