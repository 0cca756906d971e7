"""Levels for planned looks: the published ones, what must hold for all, and a simulation of our own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from vtax.analysis.sequential.group_sequential import ONE_LOOK, SIMULATED, UNION_BOUND, calibration, quantiles

PUBLISHED = {  # docs/method.md, "Looks": plain and order-adjusted, 200,000 draws
    (6, 10): (0.0296, 0.0288),
    (6, 10, 16): (0.0211, 0.0209),
    (6, 12, 24): (0.0200, 0.0196),
    (6, 10, 16, 24): (0.0169, 0.0163),
    (6, 10, 16, 24, 40): (0.0139, 0.0135),
    (6, 10, 16, 24, 40, 60): (0.0117, 0.0115),
}


@pytest.mark.parametrize("looks", PUBLISHED)
@pytest.mark.parametrize("adjusted", [False, True])
def test_the_levels_are_the_published_ones(looks: tuple[int, ...], adjusted: bool) -> None:
    found = calibration(looks, adjusted=adjusted)
    assert found.source == SIMULATED
    # both are simulated: 3 % of 5 % is three deviations of the published ones
    assert found.a_look == pytest.approx(PUBLISHED[looks][adjusted], rel=0.03)
    assert 0.05 / len(looks) < found.a_look < 0.05


def test_one_look_needs_no_correction() -> None:
    found = calibration((12,), adjusted=True)
    assert (found.a_look, found.source) == (0.05, ONE_LOOK)
    assert found.sequential(np.array([0.03, 0.5])).tolist() == [0.03, 0.5]


def test_the_level_is_where_the_sequential_p_is_five_percent() -> None:
    found = calibration((6, 10, 16, 24), adjusted=True)
    assert float(found.sequential(np.array(found.a_look))) == pytest.approx(0.05)
    p = np.geomspace(1e-8, 1, 500)
    share = found.sequential(p)
    assert (np.diff(share) >= 0).all()
    assert (share >= p).all()
    assert (share <= np.minimum(1, 4 * p) * 1.02).all()  # the union bound, but for simulation error
    assert float(found.sequential(np.array(1e-6))) == pytest.approx(4e-6)


def test_other_looks_are_simulated() -> None:
    found = calibration((6, 8), adjusted=False)
    assert found.source == SIMULATED
    assert 0.025 < found.a_look < 0.035


def test_what_cannot_be_simulated_in_time_says_so() -> None:
    found = calibration((100, 1000), adjusted=False)
    assert (found.a_look, found.source) == (0.025, UNION_BOUND)
    assert float(found.sequential(np.array(0.01))) == 0.02
    assert calibration((3, 6), adjusted=False).source == UNION_BOUND


def test_five_percent_of_campaigns_miss_at_any_look() -> None:
    """Scipy's t test at the level, at every look of campaigns without a difference."""
    random, looks = np.random.Generator(np.random.PCG64(11)), (6, 10, 16, 24)
    level = calibration(looks, adjusted=False).a_look
    values = random.standard_normal((8_000, 24))
    missed = np.zeros(8_000, bool)
    for look in looks:
        missed |= stats.ttest_1samp(values[:, :look], 0, axis=1).pvalue <= level
    assert missed.mean() == pytest.approx(0.05, abs=0.0075)  # three deviations


def test_the_same_seed_gives_the_same_level() -> None:
    one, other = (quantiles((6, 10), adjusted=True, draws=4_000, seed=5) for _ in range(2))
    assert np.array_equal(one, other)
