"""Measurements made up one by one, and campaigns of a single metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from builders.synthetic import plan
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.model.finding import Finding
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind, Metric


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
    direction: Direction = Metric(name=metric, unit=unit, kind=kind).direction
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
        direction=direction,
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
