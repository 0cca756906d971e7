"""C05: stolen CPU time that is common, that follows one environment, and that is too little to see."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from builders.audit_cases import evidence
from vtax.analysis.estimate.stolen import StolenDifference, Ticks, stolen_difference
from vtax.analysis.verdict import Effect
from vtax.audit import Evidence, stolen
from vtax.model.finding import Severity

DELTA = math.log1p(0.02)
Share = Callable[[str, int], float]  # environment, number of the trial


def campaign(share: Share, values: Callable[[str, int], float] = lambda *_: 1.0) -> Evidence:
    """Six rounds of `host` and `container` on a machine that loses a share of two CPUs over 91 s in every trial; the
    speed of each trial is multiplied by a value."""
    made = evidence()
    ticks = 18_200.0
    number = {one.id: place for place, one in enumerate(made.trials)}
    trials = tuple(
        one.model_copy(
            update={
                "host_counters": {
                    "trial_cpu_ticks": ticks,
                    "trial_steal_ticks": float(math.floor(ticks * share(one.environment, number[one.id]))),
                }
            }
        )
        for one in made.trials
    )
    measured = tuple(
        one.model_copy(update={"value": one.value * values(one.environment, number[one.trial])})
        for one in made.measurements
    )
    return replace(made, trials=trials, measurements=measured, counters={})


def noise(seed: int, sd: float) -> Callable[[str, int], float]:
    drawn = np.random.default_rng(seed).normal(0, sd, 100)
    return lambda _, number: math.exp(drawn[number])


def test_five_percent_stolen_from_all_environments_blocks_nothing() -> None:
    drawn = np.random.default_rng(3).gamma(4, 0.05 / 4, 100)
    found = stolen.steal(campaign(lambda _, number: drawn[number], noise(4, 0.002)))
    assert {(one.severity, one.environment) for one in found} == {(Severity.WARNING, "container")}
    assert "% of the CPU time was stolen in container" in found[0].message
    assert "% in host; the difference is" in found[0].message


def test_stolen_time_that_follows_one_environment_blocks_what_it_favours() -> None:
    """Five points more are stolen from the container, which is five percent slower."""
    drawn = np.random.default_rng(3).gamma(4, 0.005 / 4, 100)

    def share(environment: str, number: int) -> float:
        return float(drawn[number]) + (0.05 if environment == "container" else 0.0)

    def slower(environment: str, number: int) -> float:
        return noise(4, 0.002)(environment, number) * (0.95 if environment == "container" else 1.0)

    found = stolen.steal(campaign(share, slower))
    assert {(one.severity, one.environment, one.benchmark) for one in found} == {
        (Severity.BLOCKER, "container", "hpcc"),
        (Severity.BLOCKER, "container", "iperf3-udp"),
    }
    assert "HPL" in found[0].metrics
    assert "could be more than half the margin (1 %)" in found[0].message


def test_stolen_time_cannot_explain_what_it_works_against() -> None:
    """More is stolen from the container, which is faster all the same."""

    def share(environment: str, _: int) -> float:
        return 0.05 if environment == "container" else 0.0

    def faster(environment: str, number: int) -> float:
        return noise(4, 0.002)(environment, number) * (1.1 if environment == "container" else 1.0)

    assert {one.severity for one in stolen.steal(campaign(share, faster))} == {Severity.WARNING}


def test_stolen_time_may_hide_a_difference() -> None:
    """More was stolen from the host, so the container may be slower although the two look alike."""
    found = stolen.steal(campaign(lambda environment, _: 0.03 if environment == "host" else 0.0, noise(4, 0.002)))
    assert {(one.severity, one.environment) for one in found} == {(Severity.BLOCKER, "container")}


def test_a_machine_that_loses_more_than_a_quarter_is_another_machine() -> None:
    found = stolen.steal(campaign(lambda *_: 0.26))
    assert {(one.severity, one.environment) for one in found} == {
        (Severity.BLOCKER, "container"),
        (Severity.BLOCKER, "host"),
    }


def test_without_a_difference_that_is_certain_nothing_is_explained() -> None:
    slower = Effect(6, -0.05, 0.01, -0.06, -0.04)
    alike = Effect(6, 0.0, 0.01, -0.005, 0.005)
    open_ = Effect(6, 0.0, 0.05, -0.05, 0.05)
    more, less = StolenDifference(0.05, 0.01, 6, 0.04, 0.03, 0.05), StolenDifference(0.01, 0.05, 6, -0.04, -0.05, -0.03)
    unsure = StolenDifference(0.05, 0.01, 6, 0.04, -0.01, 0.09)
    small = StolenDifference(0.006, 0.002, 6, 0.004, 0.003, 0.005)
    assert more.explains(slower, DELTA)
    assert not less.explains(slower, DELTA)
    assert more.explains(alike, DELTA)
    assert less.explains(alike, DELTA)
    assert not any(one.explains(slower, DELTA) for one in (unsure, small))
    assert not any(one.explains(open_, DELTA) for one in (more, less))
    assert not more.explains(None, DELTA)


def test_rounds_that_agree_to_the_tick_are_not_known_better_than_a_tick() -> None:
    """Runs of 0.2 s: one tick more in every round is 5 %, and no certain difference."""
    one, none = {r: [Ticks(1, 20, 1)] for r in range(6)}, {r: [Ticks(0, 20, 1)] for r in range(6)}
    found = stolen_difference(one, none, comparisons=12)
    assert found is not None
    assert found.mean == pytest.approx(0.05)
    assert not found.lost
    long = stolen_difference(
        {r: [Ticks(50, 1000, 1)] for r in range(6)}, {r: [Ticks(0, 1000, 1)] for r in range(6)}, comparisons=12
    )
    assert long is not None
    assert long.lost


def test_two_rounds_have_no_interval() -> None:
    two = {1: [Ticks(500, 1000, 1)], 2: [Ticks(500, 1000, 1)]}
    found = stolen_difference(two, {1: [Ticks(0, 1000, 1)], 2: [Ticks(0, 1000, 1)]})
    assert found is not None
    assert (found.low, found.high, found.lost) == (None, None, False)
    assert stolen_difference(two, {3: [Ticks(0, 1000, 1)]}) is None


@pytest.mark.parametrize("share", [0.001, 0.005, 0.05])
@pytest.mark.parametrize(("duration_s", "cpus"), [(0.2, 1), (1.0, 2)])
def test_noise_alone_blocks_in_at_most_five_of_a_hundred_campaigns(share: float, duration_s: float, cpus: int) -> None:
    """Twelve comparisons of six rounds with four trials each, and a share that bursts: 300 campaigns."""
    random, wrong, campaigns, entries = np.random.default_rng(7), 0, 300, 12
    ticks = 100 * cpus * duration_s
    for _ in range(campaigns):
        counted = random.gamma(0.5, share / 0.5, (entries, 2, 6, 4)) * ticks + random.random((entries, 2, 6, 4))
        whole = np.minimum(np.floor(counted), ticks)
        for sides in whole:
            one, two = (
                {r: [Ticks(float(v), ticks, cpus) for v in row] for r, row in enumerate(side)} for side in sides
            )
            found = stolen_difference(one, two, entries)
            assert found is not None
            if (found.lost or found.spared) and found.largest > DELTA / 2:
                wrong += 1
                break
    assert wrong / campaigns <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / campaigns) / 2
