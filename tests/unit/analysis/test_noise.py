"""What noise lets a study resolve: slots with a known spread, and the interval that a campaign would have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vtax.analysis.noise import resolutions
from vtax.model.noise import NoiseReading, Probe


def reading(*rates: float) -> NoiseReading:
    probe = Probe(name="CPU", rates=rates)
    return NoiseReading(elapsed_s=15, slot_s=0.3, apart_s=1.8, stolen=0.0, others=0.0, probes=(probe,))


def test_adjacent_and_apart_are_told_apart() -> None:
    """Slots of a pair differ by 1 %, pairs by 10 % from one to the next."""
    (found,) = resolutions(reading(*(math.exp(0.1 * (i // 2 % 2) + 0.01 * (i % 2)) for i in range(12))), 4, 6, 0.05)
    assert found.adjacent == pytest.approx(0.01)
    assert found.apart == pytest.approx(0.1)


def test_the_expected_interval_is_that_of_simulated_campaigns() -> None:
    """Six rounds of the median of four differences with a deviation of 2 %: half of the usual t interval."""
    random = np.random.default_rng(1)
    rounds = np.median(random.normal(0, 0.02, (20_000, 6, 4)), axis=2)
    halves = 2.5706 * rounds.std(axis=1, ddof=1) / math.sqrt(6)
    (found,) = resolutions(reading(*(math.exp(0.02 * (i % 2)) for i in range(16))), 4, 6, 0.05)
    assert found.half_width == pytest.approx(math.expm1(float(halves.mean())), rel=0.02)
    assert found.rounds == 6


def test_more_noise_needs_more_rounds_until_it_is_out_of_reach() -> None:
    def rounds(noise: float) -> int | None:
        return resolutions(reading(*(math.exp(noise * (i % 2)) for i in range(16))), 4, 6, 0.05)[0].rounds

    needed = [rounds(noise) for noise in (0.01, 0.1, 0.15)]
    assert needed[0] == 6
    assert needed[1] is not None
    assert needed[2] is not None
    assert 6 < needed[1] < needed[2]
    assert rounds(1.0) is None


def test_too_few_slots_say_nothing() -> None:
    assert resolutions(reading(1.0, 2.0, 1.0, 2.0), 4, 6, 0.05) == ()
