"""What a machine's noise lets a study resolve, before anything has run there. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vtax.analysis.sequential.forecast import NEW_CAMPAIGN_MAX, expected_half_width, rounds_to_resolve
from vtax.analysis.sequential.group_sequential import calibration
from vtax.model.noise import NoiseReading, Probe
from vtax.model.record import Record

PAIRS_FROM = 3  # below, a spread says nothing


class Resolution(Record):
    """What one probe says. `adjacent` and `apart` are standard deviations of the log ratio of two slots, next to each
    other and some seconds apart; `half_width` is half of the interval to be expected, as ratio - 1, and `rounds` after
    how many rounds it is within the margin, None where that is out of reach."""

    name: str
    adjacent: float
    apart: float
    half_width: float
    rounds: int | None


def resolutions(reading: NoiseReading, iterations: int, rounds: int, margin: float) -> tuple[Resolution, ...]:
    """Each probe with enough slots, for a study of so many interleaved iterations and rounds."""
    return tuple(
        _resolution(probe, iterations, rounds, margin) for probe in reading.probes if len(probe.rates) >= 2 * PAIRS_FROM
    )


def _resolution(probe: Probe, iterations: int, rounds: int, margin: float) -> Resolution:
    logs = np.log(np.array(probe.rates)).reshape(-1, 2)
    adjacent = _spread(logs[:, 1] - logs[:, 0])
    return Resolution(
        name=probe.name,
        adjacent=adjacent,
        apart=_spread(np.diff(logs, axis=0).ravel()),
        half_width=expected_half_width(adjacent, iterations, rounds, _critical(rounds)),
        rounds=rounds_to_resolve(adjacent, iterations, margin, _critical, _sizes(rounds)),
    )


def _spread(differences: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """The standard deviation of differences whose mean is known to be zero: both slots did the same work."""
    return float(np.sqrt(np.mean(differences**2)))


def _critical(rounds: int) -> float:
    """Half of the interval in standard errors, of a study with a fixed number of rounds."""
    return calibration((rounds,), adjusted=False).critical(rounds)


def _sizes(rounds: int) -> Sequence[int]:
    return range(rounds, NEW_CAMPAIGN_MAX + 1)
