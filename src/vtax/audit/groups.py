"""R11: runs of the same work in logs that were made under two conditions: idle and loaded, local and remote.

Two rules. What the names of files call the runs comes first: where some have one word of a pair of conditions and all
others the other word, they are two groups. Otherwise the values decide: the best split of the logarithms into two
explains so much of their variance that one sample of a normal distribution in a thousand does so, the groups are at
least a tenth apart, and neither is one run alone, which would be an outlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vtax.analysis.estimate.diagnostics import two_modes
from vtax.analysis.independent import MACHINE_NAMES
from vtax.evidence.campaign import Evidence, shown
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin
from vtax.units import format_quantity

CONDITIONS = (
    ("idle", "loaded"),
    ("idle", "load"),
    ("idle", "busy"),
    ("quiet", "noisy"),
    ("local", "remote"),
    ("before", "after"),
    ("cold", "warm"),
    ("cold", "hot"),
    ("old", "new"),
    ("with", "without"),
    ("on", "off"),
    ("enabled", "disabled"),
    ("patched", "unpatched"),
    ("pinned", "unpinned"),
    ("cached", "uncached"),
)
ALPHA = 0.001  # of one series of values without groups
GROUPS_FROM = 6  # runs: of fewer, values alone cannot say it
APART = 0.1  # of the level: closer groups change no answer
DRAWS, SEED = 200_000, 20_260_311
WORDS = re.compile(r"[a-z]+|\d+")

Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Split:
    """Two groups of runs, and what they are called."""

    low: tuple[Measurement, ...]
    high: tuple[Measurement, ...]
    names: tuple[str, str]
    by_name: bool


def in_logs(evidence: Evidence) -> str:
    imported = evidence.plan.origin is Origin.IMPORTED
    return "" if imported else "vtax ran this campaign: all runs of an environment were made in the same way"


@row(
    "R11",
    Severity.BLOCKER,
    "runs that count as the same work fall into two groups",
    short="runs under two conditions",
    why="their mean is of a condition that never was; which of the groups answers the question is not in the logs",
    remedy="import them again with the condition in the layout ('{environment}/{condition}.txt'), or in two steps with "
    "--label condition=NAME and --into; or leave one group out",
    source="names of imported files, and the values: one series in a thousand without groups is called so",
    note="vtax's own: other people's runs are not made in rounds, so their conditions may differ. A warning where "
    "names of files tell two conditions and the values of both overlap",
    applies=in_logs,
)
def two_groups(evidence: Evidence) -> Iterator[Result]:
    """R11: idle and loaded, local and remote, before and after, or two groups that nothing names."""
    files = {trial.id: trial.imported.file for trial in evidence.trials if trial.imported}
    found: dict[tuple[str, str, str], list[tuple[Series, Split]]] = {}
    several = 0
    for (environment, label, series), values in _series(evidence).items():
        several += len(values) > 1
        split = _split(values, files)
        if split is not None:
            key = environment, label, " and ".join(sorted(split.names))
            found.setdefault(key, []).append((series, split))
    for (environment, label, _), splits in found.items():
        (metric, _), split = max(splits, key=lambda one: (one[1].low[0].primary, _factor(one[1])))
        metrics = tuple(sorted({name for (name, _), _ in splits}))
        message = f"{label} in {environment}: {_said(split)} ({metric})"
        apart = any(_apart(one) for _, one in splits)
        yield Failed(message, environment, label, None if apart else Severity.WARNING, metrics=metrics)
    if several and not found:
        yield f"{several} series of several runs are one group each, as far as names and values say"


def _series(evidence: Evidence) -> Mapping[tuple[str, str, Series], list[Measurement]]:
    """(environment, entry, metric and labels) -> its values, one for each run. Names of machines are left out: local
    and remote peers have different ones."""
    found: dict[tuple[str, str, Series], list[Measurement]] = {}
    for one in evidence.measurements:
        if not one.warmup and one.kind.has_ratio and one.value > 0:
            labels = tuple(sorted(item for item in one.labels.items() if item[0] not in MACHINE_NAMES))
            found.setdefault((one.environment, one.label, (one.metric, labels)), []).append(one)
    return found


def _split(values: Sequence[Measurement], files: Mapping[str, str]) -> Split | None:
    """The two groups of the runs of one series; None where they are one."""
    if len({one.trial for one in values}) < 2:
        return None
    for pair in CONDITIONS:
        sides = tuple([one for one in values if word in _words(files.get(one.trial, ""))] for word in pair)
        if all(sides) and len(sides[0]) + len(sides[1]) == len(values):
            first, second = sides if _level(sides[0]) <= _level(sides[1]) else sides[::-1]
            names = pair if first is sides[0] else pair[::-1]
            return Split(tuple(first), tuple(second), (names[0], names[1]), by_name=True)
    return by_value(values, files) if any(one.primary for one in values) else None


def by_value(values: Sequence[Measurement], files: Mapping[str, str]) -> Split | None:
    """The best split into two, where it can be no chance."""
    ordered = sorted(values, key=lambda one: one.value)
    place = split_at(np.log([one.value for one in ordered]))
    if place is None:
        return None
    low, high = tuple(ordered[:place]), tuple(ordered[place:])
    return Split(low, high, (_common(low, high, files), _common(high, low, files)), by_name=False)


def split_at(logs: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int | None:
    """How many of the sorted logarithms are in the lower of two groups; None for one group."""
    n = len(logs)
    if n < GROUPS_FROM or float(two_modes(logs)) <= critical(n):
        return None
    sizes = np.arange(1, n)
    left = np.cumsum(logs - logs.mean())[:-1]
    place = 1 + int(np.argmax(left * left / (sizes * (n - sizes))))
    far = logs[place] - logs[place - 1] > np.log1p(APART)
    return place if far and 2 <= place <= n - 2 else None


@lru_cache(maxsize=256)
def critical(n: int) -> float:
    """The share of the variance that the best split of one normal sample in a thousand explains."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED, n])))
    draws = max(20_000, min(DRAWS, 2_000_000 // n))
    return float(np.quantile(two_modes(random.standard_normal((draws, n))), 1 - ALPHA))


def _words(file: str) -> set[str]:
    return set(WORDS.findall(file.lower()))


def _common(mine: Sequence[Measurement], others: Sequence[Measurement], files: Mapping[str, str]) -> str:
    """What the names of the files of one group have in common, and no file of the other has."""
    alike = set.intersection(*(_words(files.get(one.trial, "")) for one in mine))
    strange = set.union(*(_words(files.get(one.trial, "")) for one in others))
    return " ".join(sorted(alike - strange)) or shown(sorted({files.get(one.trial, one.trial) for one in mine}))


def _level(values: Sequence[Measurement]) -> float:
    return float(np.median([one.value for one in values]))


def _factor(split: Split) -> float:
    return _level(split.high) / _level(split.low)


def _apart(split: Split) -> bool:
    return max(one.value for one in split.low) < min(one.value for one in split.high)


def _said(split: Split) -> str:
    unit = split.low[0].unit
    sides = [
        f"{name} ({len(side)} {'run' if len(side) == 1 else 'runs'}, about {format_quantity(_level(side), unit)})"
        for name, side in zip(split.names, (split.low, split.high), strict=True)
    ]
    how = "the names of its files tell" if split.by_name else "its values fall into"
    return f"{how} two groups, {sides[0]} and {sides[1]}"
