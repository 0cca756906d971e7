"""A randomisation test over the orders that the plan could have drawn: a check that needs no distribution.

The planner draws the names of the environments anew for every block of rounds. So exchanging the two names in a whole
block gives an order that was as likely, and without any difference between the two it would have given the same
numbers under the other's name: every difference of the block, and who ran first, changes its sign. Nothing else is
permuted. A free change of single signs would be of orders that no plan can have.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from vtax.analysis.estimate.columns import Floats, Ints
from vtax.analysis.estimate.context import PairingContext
from vtax.analysis.estimate.paired import LEVEL
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.order import ALLOCATIONS, block_rounds, generator
from vtax.analysis.records import Randomisation

ROUNDS_FROM = 12  # of two environments: below, no p of 5 % exists
EXACT_TO = 15  # blocks: 2^14 orders and their mirror images
DRAWS = 20_000
ROUNDING = 1e-9  # two orders that give the same estimate may differ by that much of it


def randomised(pair: Pair, context: PairingContext, environments: int) -> Randomisation | None:
    """The test of one pair; None below twelve rounds, without a ratio, where the plan does not know the orders, and
    where several machines each had orders of their own."""
    known = all((number, name) in context.places for number in pair.rounds.tolist() for name in pair.both)
    if pair.alone or not pair.has_ratio or pair.rounds.size < ROUNDS_FROM or not known:
        return None
    blocks = (pair.rounds - 1) // block_rounds(environments)
    count = int(np.unique(blocks).size)
    first = pair.first if pair.adjusted else None
    p = float(p_randomised(pair.differences, first, blocks, context.study.seed))
    exact = count <= EXACT_TO
    return Randomisation(
        p=p, orders=2**count if exact else DRAWS, exact=exact, smallest=2 / 2**count if exact else 1 / (DRAWS + 1)
    )


def p_randomised(differences: Floats, first: Floats | None, blocks: Ints, seed: int) -> Floats:
    """Two-sided p of "no difference", shape (...), of differences of shape (..., n); `blocks` says to which block each
    of the n rounds belongs.

    The statistic is the estimate itself, with `first` adjusted for the order. All orders count where there are few
    enough, else random ones from `seed`, the actual one among them.
    """
    n = differences.shape[-1]
    starts = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 1))
    signs = _signs(starts.size, seed)
    sums = np.add.reduceat(differences, starts, axis=-1) / n
    means = np.einsum("...b,bo->...o", sums, signs)
    leads = np.zeros(1) if first is None else np.add.reduceat(first, starts, axis=-1) / n
    if not leads.any() or first is None:  # in every order each is first equally often: nothing to adjust for
        found = means
    else:
        levels = np.einsum("...b,bo->...o", leads, signs)
        product = (differences * first).mean(axis=-1)[..., None]  # the same in all orders: both signs change
        squares = 1 - levels * levels
        slope = np.divide(product - levels * means, squares, out=np.zeros_like(means), where=squares > 0)
        found = means - slope * levels
    actual = np.abs(found[..., :1]) * (1 - ROUNDING)
    return np.asarray((np.abs(found) >= actual).mean(axis=-1))


@lru_cache(maxsize=16)
def _signs(blocks: int, seed: int) -> Floats:
    """+1 where a block keeps its names, -1 where it exchanges them, shape (blocks, orders); the actual order first.

    Of two orders that are each other's mirror image one is enough: their estimates differ in sign only.
    """
    if blocks <= EXACT_TO:
        bits = np.arange(2 ** (blocks - 1)) >> np.arange(blocks)[:, None]
        return np.where(bits & 1, -1.0, 1.0)
    drawn = np.where(generator(seed, 0, ALLOCATIONS).random((blocks, DRAWS)) < 0.5, 1.0, -1.0)
    return np.concatenate((np.ones((blocks, 1)), drawn), axis=1)


def disagreement(pair: Pair, test: Randomisation) -> str:
    """What to say where the test and the t interval do not agree on whether there is a difference; "" where they do."""
    if pair.interim is None:
        return ""
    among = f"over {test.orders:,} orders that the plan {'could have drawn' if test.exact else 'could draw, at random'}"
    differs = float(pair.interim.low) > 0 or float(pair.interim.high) < 0
    if differs and test.p > LEVEL >= test.smallest:
        return f"the interval excludes 1, and the randomisation test {among} does not confirm it (p {test.p:.2g})"
    if test.p <= pair.calibration.a_look and float(pair.interim.fit.p_difference) > LEVEL:
        return f"the randomisation test {among} finds a difference (p {test.p:.2g}) that the t interval does not show"
    return ""
