"""Measurements made up one by one, and campaigns of a single metric: by hand, or simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from builders.synthetic import plan
from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.columns import columns
from vtax.analysis.estimate.summary import Key, levels_of, measured
from vtax.analysis.records import Analysis, Comparison, Level
from vtax.model.finding import Finding
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.study import Interleave
from vtax.selftest.objects import Simulated, plan_of, simulated


def measurement(
    value: float,
    *,
    environment: str = "host",
    round: int = 1,
    iteration: int = 1,
    metric: str = "elapsed",
    unit: str = "s",
    kind: Kind = Kind.COST,
    primary: bool = True,
    warmup: bool = False,
    labels: Mapping[str, str] | None = None,
    benchmark: str = "tool",
    source: str = "",
) -> Measurement:
    """A measurement of a benchmark entry named like the benchmark."""
    trial = f"{environment}-{round}-{benchmark}-{iteration}"
    return Measurement(
        environment=environment,
        round=round,
        cell=f"{environment}-{round}",
        trial=trial,
        iteration=iteration,
        warmup=warmup,
        benchmark=benchmark,
        label=benchmark,
        metric=metric,
        value=value,
        unit=unit,
        kind=kind,
        direction=Metric(name=metric, unit=unit, kind=kind).direction,
        primary=primary,
        labels=labels or {},
        source=source or f"trials/{trial}/stdout",
    )


def rounds(
    baseline: Sequence[float],
    other: Sequence[float],
    *,
    metric: str = "elapsed",
    unit: str = "s",
    kind: Kind = Kind.COST,
    primary: bool = True,
    environments: tuple[str, str] = ("host", "container"),
) -> list[Measurement]:
    """One measurement in each round and environment, rounds counted from one."""
    return [
        measurement(value, environment=name, round=number, metric=metric, unit=unit, kind=kind, primary=primary)
        for name, values in zip(environments, (baseline, other), strict=True)
        for number, value in enumerate(values, 1)
    ]


def analysed(
    measurements: Sequence[Measurement],
    *,
    findings: Sequence[Finding] = (),
    environments: tuple[str, ...] = ("host", "container"),
) -> Analysis:
    """With a plan of three rounds and a margin of 2 %, and no record of any trial."""
    return analyse(measurements, plan=plan(environments), findings=findings, trials=())


def levels(measurements: Sequence[Measurement]) -> dict[Key, Level]:
    """Without knowing when runs began, or which had no end."""
    table = columns(measurements)
    return levels_of(table, measured(table), {})[0]


def only(analysis: Analysis) -> Comparison:
    """The comparison of an analysis that has one."""
    (found,) = analysis.comparisons
    return found


def simulated_rounds(
    effect: float = 0.0,
    noise: float = 0.005,
    n: int = 6,
    looks: tuple[int, ...] = (6, 10, 16),
    iterations: int = 1,
    seed: int = 2,
    interleave: Interleave = "cell",
) -> Simulated:
    """`n` rounds of "base" and "other", in which the other environment takes exp(effect) times as long."""
    values = np.exp(noise * np.random.Generator(np.random.PCG64(seed)).normal(size=(2, n, iterations)))
    values[1] *= math.exp(effect)
    return simulated(plan_of(3, looks, iterations, interleave), values)
