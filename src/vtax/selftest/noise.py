"""Noise as machines make it: eight scenarios of how performance varies besides what is compared. Pure.

All of it is on the log scale. A process over time takes one step a cell; what is independent differs between the
iterations of a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vtax.analysis.estimate.columns import Floats

Random = np.random.Generator


def stable(_: Random, campaigns: int, steps: int) -> Floats:
    return np.zeros((campaigns, steps))


def ar1(sd: float, rho: float = 0.9) -> Callable[[Random, int, int], Floats]:
    """A load that comes and goes: stationary, correlation `rho` from one cell to the next."""

    def made(random: Random, campaigns: int, steps: int) -> Floats:
        shocks = random.standard_normal((campaigns, steps))
        values = np.empty_like(shocks)
        values[:, 0] = sd * shocks[:, 0]
        for step in range(1, steps):
            values[:, step] = rho * values[:, step - 1] + sd * np.sqrt(1 - rho * rho) * shocks[:, step]
        return values

    return made


def random_walk(random: Random, campaigns: int, steps: int) -> Floats:
    return np.cumsum(0.01 * random.standard_normal((campaigns, steps)), axis=1)


def thermal(_: Random, campaigns: int, steps: int) -> Floats:
    """A machine that warms up: 5 % slower in the end, with a time constant of six cells."""
    return np.broadcast_to(0.05 * (1 - np.exp(-np.arange(steps) / 6)), (campaigns, steps)).copy()


def step(random: Random, campaigns: int, steps: int) -> Floats:
    """One jump of 5 %, up or down, at a random cell."""
    when = random.integers(1, steps, size=(campaigns, 1))
    sign = np.where(random.random((campaigns, 1)) < 0.5, 1.0, -1.0)
    return 0.05 * sign * (np.arange(steps) >= when)


def steps(random: Random, campaigns: int, steps: int) -> Floats:
    """Jumps of 5 %, up or down, at one step in ten."""
    jumps = np.where(random.random((campaigns, steps)) < 0.5, 0.05, -0.05)
    return np.cumsum(np.where(random.random((campaigns, steps)) < 0.1, jumps, 0.0), axis=1)


def stolen_shares(random: Random, campaigns: int, steps: int) -> Floats:
    """The share of CPU time that a hypervisor takes: bursts of 5 to 30 %, of five steps in the mean, a third of the
    time."""
    shares = np.zeros((campaigns, steps))
    now = np.zeros(campaigns)
    for step in range(steps):
        size, chance = random.uniform(*BURST, campaigns), random.random(campaigns)
        now = np.where(now > 0, np.where(chance < 0.2, 0.0, now), np.where(chance < 0.1, size, 0.0))
        shares[:, step] = now
    return shares


def stolen(random: Random, campaigns: int, steps: int) -> Floats:
    """Time that passes while a hypervisor runs something else, whatever environment it hits."""
    return np.asarray(-np.log1p(-stolen_shares(random, campaigns, steps)))


@dataclass(frozen=True)
class Scenario:
    """`noise` of each iteration and `boot` of each instance are standard deviations; `tail` is the share of iterations
    that are slower by an exponential amount of 10 % in the mean."""

    name: str
    noise: float = 0.01
    over_time: Callable[[Random, int, int], Floats] = stable
    boot: float = 0.0
    tail: float = 0.0


SCENARIOS = (
    Scenario("iid2", noise=0.02),
    Scenario("ar1", over_time=ar1(0.03)),
    Scenario("rw", over_time=random_walk),
    Scenario("thermal", over_time=thermal),
    Scenario("step", over_time=step),
    Scenario("tail", tail=0.1),
    Scenario("boot", boot=0.01),
    Scenario("all", over_time=ar1(0.02), boot=0.01, tail=0.05),
)
STEPS = Scenario("steps", over_time=steps)
RENTED = Scenario("rented", noise=0.012, over_time=ar1(0.045))  # as measured, trials of 1 s: docs/method.md
STOLEN = Scenario("stolen", over_time=stolen)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
TRIAL_SCENARIOS = (*SCENARIOS, STEPS, RENTED, STOLEN)  # with one step a trial
TAIL_MEAN = 0.1
BURST = (0.05, 0.3)  # of CPU time, while a hypervisor takes some


def independent(scenario: Scenario, random: Random, shape: tuple[int, ...]) -> Floats:
    """What differs between iterations: noise, and tails that make slower."""
    values = scenario.noise * random.standard_normal(shape)
    if scenario.tail:
        values += np.where(random.random(shape) < scenario.tail, random.exponential(TAIL_MEAN, shape), 0.0)
    return values
