"""The level of intervals at planned looks: how wide one must be to hold at whatever look a campaign stops.

A campaign that may stop at several looks makes an error when the interval of any of them misses. So all looks use the
same level `a_look`, the 5 % quantile of the smallest p over the looks of campaigns without any difference (Pocock
1977). It depends on nothing but the looks when differences are normal. It is found by simulation; the usual ones are
kept in `looks.json`, which `scripts/calibrate-looks` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from scipy.special import stdtr

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import ADJUST_FROM, LEVEL, Fit, critical, fit
from vtax.analysis.sequential.anytime import Anytime
from vtax.model.study import Study

USUAL = (6, 10, 16, 24, 40, 60)
DRAWS = 200_000  # campaigns simulated for looks that are not kept
SEED = 20_240_101
SIMULATION = 1  # raised when the same draws and seed give other numbers
CHUNK = 20_000  # campaigns simulated at a time
ROUNDS_MAX = 250  # beyond, a simulation would take longer than an analysis may
PROBABILITIES = np.concatenate((np.geomspace(1e-4, 0.2, 120), np.linspace(0.21, 1.0, 80)))
SIMULATED, UNION_BOUND, ONE_LOOK = "simulated", "union bound", "one look"


@dataclass(frozen=True)
class Calibration:
    """`a_look`, and what share of campaigns without a difference has a smallest p at or below a given one."""

    looks: tuple[int, ...]
    a_look: float
    source: str
    quantiles: Floats  # of the smallest p, at PROBABILITIES; empty where it is not simulated

    def critical(self, n: int, parameters: int = 1) -> float:
        """Half of the interval in standard errors, with n rounds and so many parameters."""
        return critical(n - parameters, self.a_look)

    def interval(self, made: Fit) -> tuple[Floats, Floats]:
        return made.interval(self.a_look)

    def p_difference(self, made: Fit) -> Floats:
        """At this look alone; `sequential` corrects it."""
        return made.p_difference

    def p_within(self, made: Fit, delta: float) -> Floats:
        return made.p_equivalence(delta)

    def sequential(self, smallest: Floats) -> Floats:
        """The p over all looks that belongs to the smallest p so far. At most .05 where that is at most `a_look`."""
        bound = np.minimum(1.0, len(self.looks) * smallest)
        if not self.quantiles.size:
            return np.asarray(bound)
        known = np.log(self.quantiles)
        share = np.exp(np.interp(np.log(np.maximum(smallest, 1e-300)), known, np.log(PROBABILITIES)))
        return np.asarray(np.where(smallest < self.quantiles[0], np.minimum(bound, PROBABILITIES[0]), share))


LookLevel = Calibration | Anytime


Tables = Mapping[bool, Floats]  # adjusted for the order or not -> `quantiles` of looks that are not kept here


def level_of(study: Study, *, adjusted: bool, tables: Tables) -> LookLevel:
    """What makes the intervals of a study hold at all its looks; simulated where it is not in `tables`."""
    if study.anytime:
        return Anytime(study.looks)
    if adjusted in tables:
        return _from(study.looks, tables[adjusted])
    return calibration(study.looks, adjusted=adjusted)


def to_simulate(looks: tuple[int, ...]) -> bool:
    """Whether the level of these looks takes a simulation of seconds."""
    usual = len(looks) == 1 or (looks, True) in _kept()
    return not usual and looks[-1] <= ROUNDS_MAX and looks[0] >= ADJUST_FROM


@lru_cache(maxsize=64)
def calibration(looks: tuple[int, ...], *, adjusted: bool) -> Calibration:
    """The level for these planned looks; `adjusted` for intervals that are adjusted for the order in a round."""
    if len(looks) == 1:
        return Calibration(looks, LEVEL, ONE_LOOK, np.empty(0))
    kept = _kept().get((looks, adjusted))
    if kept is not None:
        return _from(looks, kept)
    if not to_simulate(looks):
        return Calibration(looks, LEVEL / len(looks), UNION_BOUND, np.empty(0))
    return _from(looks, quantiles(looks, adjusted=adjusted, draws=DRAWS, seed=SEED))


def _from(looks: tuple[int, ...], found: Floats) -> Calibration:
    a_look = float(np.exp(np.interp(np.log(LEVEL), np.log(PROBABILITIES), np.log(found))))
    return Calibration(looks, a_look, SIMULATED, found)


def quantiles(looks: tuple[int, ...], *, adjusted: bool, draws: int, seed: int) -> Floats:
    """Quantiles at PROBABILITIES of the smallest p over the looks, from `draws` campaigns of normal differences."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *looks, adjusted])))
    smallest = np.concatenate(
        [_smallest(looks, adjusted, min(CHUNK, draws - start), random) for start in range(0, draws, CHUNK)]
    )
    return np.asarray(np.quantile(smallest, PROBABILITIES))


def _smallest(looks: tuple[int, ...], adjusted: bool, campaigns: int, random: np.random.Generator) -> Floats:
    """The smallest p of each campaign; the order of the two environments is AB, BA or BA, AB."""
    differences = random.standard_normal((campaigns, looks[-1]))
    lead = np.where(random.random((campaigns, (looks[-1] + 1) // 2)) < 0.5, 1.0, -1.0)
    first = np.stack((lead, -lead), axis=-1).reshape(campaigns, -1)
    found = np.ones(campaigns)
    for look in looks:
        made = fit(differences[:, :look], first[:, :look] if adjusted else None)
        found = np.minimum(found, 2 * stdtr(made.df, -np.abs(made.theta / made.se)))
    return found


@lru_cache(maxsize=1)
def _kept() -> dict[tuple[tuple[int, ...], bool], Floats]:
    stored = json.loads((files("vtax.analysis.sequential") / "looks.json").read_text(encoding="utf-8"))
    return {(tuple(row["looks"]), row["adjusted"]): np.array(row["quantiles"], float) for row in stored["tables"]}
