"""ping's figure: how round-trip times are distributed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from vtax.figures import theme
from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import ENVIRONMENT, Axis, Choice, Figure, Layer, Mark, Panel, Row, rows
from vtax.tools.ping.metrics import LOST, RTT_AVG
from vtax.units import format_number
from vtax.wording import natural

KIND = "round-trip times"
ALL = "all pairs"
STEPS = 160  # of a drawn distribution; a percentile more or less is not seen
Times = Mapping[str, Mapping[str, list[float]]]  # pair -> environment -> round-trip times, s


def figures(entry: EntryData) -> Iterator[Figure]:
    """The distribution of every round trip of an entry, in the unit of its mean."""
    times = times_of(entry)
    if times:
        means = [
            level.mean
            for series, levels in entry.levels.items()
            if series.metric == RTT_AVG.name
            for level in levels.values()
        ]
        own = [time_s for values in times[ALL].values() for time_s in values]
        factor, unit = theme.scaled(max(means) if means else statistics.median(own), "s")
        yield distribution(entry, times, factor, unit)


def times_of(entry: EntryData) -> Times:
    """The round trips of all trials, by pair and environment, and of all pairs together."""
    found: dict[str, dict[str, list[float]]] = {}
    for trial in entry.trials:
        own = [row[1] for series in entry.series(trial, "round_trips") for row in series.rows if row[1] > 0]
        if own:
            for pair in (ALL, " → ".join(trial.nodes)):
                found.setdefault(pair, {}).setdefault(trial.environment, []).extend(own)
    return found


def quantiles(values: Sequence[float], steps: int = STEPS) -> list[tuple[float, float]]:
    """(value, share of the values that are not above it), at most `steps` + 1 of them, both ends included."""
    ordered = sorted(values)
    last = len(ordered) - 1
    places = range(len(ordered)) if last <= steps else sorted({round(i * last / steps) for i in range(steps + 1)})
    return [(ordered[place], (place + 1) / len(ordered)) for place in places]


def distribution(entry: EntryData, times: Times, factor: float, unit: str) -> Figure:
    """The cumulative distribution in every environment, for a chosen pair."""
    pairs = (ALL, *sorted((pair for pair in times if pair != ALL), key=natural))
    everything = [value / factor for values in times[ALL].values() for value in values]
    environments = [name for name in entry.environments if name in times[ALL]]
    medians = "; ".join(f"{one} {format_number(_at(times[ALL][one], 0.5) / factor, 3)}" for one in environments)
    tails = "; ".join(f"{one} {format_number(_at(times[ALL][one], 0.99) / factor, 3)}" for one in environments)
    hover = ((ENVIRONMENT, "environment"), ("time", f"at most, {unit}"), ("share_text", "packets"))
    return Figure(
        name=f"{entry.name}-rtt",
        kind=KIND,
        title="Distribution of round-trip times",
        alt=f"Cumulative distribution of round-trip times. Medians in {unit}: {medians}. 99th percentiles: {tails}.",
        caption=f"Every answer of every round. Median, {unit}: {medians}. 99th percentile: {tails}.",
        data=tuple(_steps(pairs, times, factor)),
        panels=(
            Panel(
                (Layer(Mark.STEP, "step", by=ENVIRONMENT), Layer(Mark.RUN, "step", by=ENVIRONMENT, hover=hover)),
                Axis("share", "packets not slower", domain=(0.0, 1.02), percent=True),
            ),
        ),
        x=theme.quantity("time", f"round-trip time, {unit}", everything, log=True, room=1.0),
        environments=entry.environments,
        choices=(Choice("pair", "Pair", pairs, ALL),),
    )


def _steps(pairs: Sequence[str], times: Times, factor: float) -> Iterator[Row]:
    for pair in pairs:
        for name, values in times[pair].items():
            yield from rows(
                "step",
                [
                    {"pair": pair, ENVIRONMENT: name, "time": value / factor, "share": share}
                    | {"share_text": f"{100 * share:.3g} %"}
                    for value, share in quantiles(values)
                ],
            )


def _at(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


FIGURES = (ToolFigures("ping", figures, kinds=(KIND,), losses=(LOST.name,)),)
