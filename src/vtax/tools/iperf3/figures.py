"""iperf3's figures: throughput interval by interval, its spread for each pair of nodes, and the matrix of pairs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vtax.figures import theme
from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import (
    ENVIRONMENT,
    Axis,
    Choice,
    Colours,
    Figure,
    Layer,
    Mark,
    NotDrawn,
    Panel,
    Row,
    Scale,
    rows,
)
from vtax.units import format_number
from vtax.wording import natural, plural

METRIC = "throughput"
OVER_TIME, SPREAD, PAIRS = "throughput over time", "spread of throughput", "pairs of nodes"
MANY = 8000  # points of throughput over time beyond which a figure holds the median of the runs only
PAIRS_DRAWN = 12  # where nothing can be chosen
LEAST = 5  # points below which a line or a box says nothing that the table does not
FEW = 30  # points of a line up to which each has a marker


@dataclass(frozen=True)
class Run:
    """The counted intervals of one trial: (end s, bit/s)."""

    environment: str
    pair: str
    round: int
    rates: tuple[tuple[float, float], ...]

    @property
    def interval_s(self) -> float:
        """How often the client reported."""
        ends = (0.0, *(end for end, _ in self.rates))
        return statistics.median(later - end for end, later in pairwise(ends))


def figures(entry: EntryData) -> Iterator[Figure | NotDrawn]:
    """The figures of one iperf3 entry, those for which there is something to draw."""
    runs = runs_of(entry)
    if runs:
        factor, unit = theme.scaled(max(rate for run in runs for _, rate in run.rates), "bit/s")
        most = max(len(run.rates) for run in runs)
        if most >= LEAST:
            yield over_time(entry, runs, factor, unit)
        else:
            yield NotDrawn(
                f"Throughput over time is not drawn: iperf3 reported {most} {plural(most, 'interval')} of each run, "
                f"and a line needs {LEAST}. A shorter `interval_s` or a longer `time_s` gives more."
            )
        if numbers := _numbers(runs, factor):
            yield spread(entry, numbers, unit)
    yield from pairs(entry)


def runs_of(entry: EntryData) -> tuple[Run, ...]:
    """The intervals of every trial."""
    runs = []
    for trial in entry.trials:
        found = [row for series in entry.series(trial, "throughput") for row in series.rows]
        if found:
            rates = tuple((round(end, 2), rate) for _, end, rate in found)
            runs.append(Run(trial.environment, " → ".join(trial.nodes), trial.round, rates))
    return tuple(sorted(runs, key=lambda run: (natural(run.pair), run.environment, run.round)))


# --- over time --------------------------------------------------------------------------------------------------------


def over_time(entry: EntryData, runs: Sequence[Run], factor: float, unit: str) -> Figure:
    """A line for each run, for a chosen pair of nodes; the median of the rounds where there are very many."""
    thin = sum(len(run.rates) for run in runs) > MANY
    drawn = medians(runs) if thin else runs
    names = tuple(dict.fromkeys(run.pair for run in runs))
    top = max(rate for run in runs for _, rate in run.rates) / factor
    end = max(second for run in runs for second, _ in run.rates)
    what = "median of the rounds, interval by interval" if thin else "each line is one round"
    every = statistics.median(run.interval_s for run in runs)
    hover = ((ENVIRONMENT, "environment"), ("round", "round"), ("value", unit), ("second", "s"))
    layers = [Layer(Mark.THIN_LINE, "line", by=ENVIRONMENT, group="round")]
    if max(len(run.rates) for run in drawn) <= FEW:
        layers.append(Layer(Mark.RUN, "line", by=ENVIRONMENT, hover=hover))
    return Figure(
        name=f"{entry.name}-time",
        kind=OVER_TIME,
        title=f"Throughput over time, client → server ({unit})",
        alt=f"Lines of the throughput over time for {len(names)} pairs of nodes, {what}. "
        f"The highest is {top:.4g} {unit}. The table holds the mean of every pair.",
        caption=f"What the client reported every {every:.2g} s; {what}.",
        data=rows(
            "line",
            [
                {"pair": run.pair, ENVIRONMENT: run.environment, "round": run.round, "second": second}
                | {"value": rate / factor}
                for run in drawn
                for second, rate in run.rates
            ],
        ),
        panels=(Panel(tuple(layers), Axis("value", unit, domain=(0.0, 1.04 * top)), height=0.6),),
        x=Axis("second", "s since counting began", domain=(0.0, 1.02 * end)),
        environments=entry.environments,
        choices=(Choice("pair", "Pair", names, names[0], still=PAIRS_DRAWN),),
        across=4,
        wide=True,
    )


def medians(runs: Sequence[Run]) -> list[Run]:
    """One run for each environment and pair: the median of its runs in each interval."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.environment, run.pair), []).append(run)
    several = []
    for (environment, pair), own in found.items():
        length = min(len(run.rates) for run in own)
        rates = [(own[0].rates[i][0], statistics.median(run.rates[i][1] for run in own)) for i in range(length)]
        several.append(Run(environment, pair, 0, tuple(rates)))
    return several


# --- spread -----------------------------------------------------------------------------------------------------------


def five_numbers(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Least, lower quartile, median, upper quartile, largest; quartiles between two values are interpolated."""
    ordered = sorted(values)
    if len(ordered) == 1:
        return (ordered[0],) * 5
    low, middle, high = statistics.quantiles(ordered, n=4, method="inclusive")
    return ordered[0], low, middle, high, ordered[-1]


def _numbers(runs: Sequence[Run], factor: float) -> dict[tuple[str, str], tuple[float, ...]]:
    """The five numbers of all intervals of a pair in an environment, where there are enough of them for a box."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        found.setdefault((run.pair, run.environment), []).extend(rate / factor for _, rate in run.rates)
    return {key: five_numbers(values) for key, values in found.items() if len(values) >= LEAST}


def spread(entry: EntryData, numbers: Mapping[tuple[str, str], Sequence[float]], unit: str) -> Figure:
    """Box plots of all intervals of every round."""
    least = min(numbers, key=lambda key: numbers[key][2])
    names = tuple(dict.fromkeys(pair for pair, _ in numbers))
    ends = ("low", "q1", "median", "q3", "high")
    hover = (("pair", "pair"), (ENVIRONMENT, "environment"), *((name, f"{name}, {unit}") for name in ends))
    return Figure(
        name=f"{entry.name}-box",
        kind=SPREAD,
        title="Spread of the throughput",
        alt=f"Box plots of the throughput for {len(names)} pairs of nodes. The lowest median is "
        f"{numbers[least][2]:.4g} {unit}, {least[0]} in {least[1]}.",
        caption="Every counted interval of every round: quartiles as a box, the line is the median, whiskers end at "
        "the least and the largest.",
        data=rows(
            "box",
            [
                {"pair": pair, ENVIRONMENT: environment} | dict(zip(ends, five, strict=True))
                for (pair, environment), five in numbers.items()
            ],
        ),
        panels=(
            Panel(
                (
                    Layer(Mark.INTERVAL, "box", x="low", x2="high"),
                    Layer(Mark.BOX, "box", x="q1", x2="q3", by=ENVIRONMENT, hover=hover),
                    Layer(Mark.MEDIAN, "box", x="median"),
                ),
                Axis("pair", scale=Scale.CATEGORY, values=names, offset=ENVIRONMENT),
            ),
        ),
        x=Axis("median", unit, domain=(0.0, 1.04 * max(five[4] for five in numbers.values()))),
        environments=entry.environments,
    )


# --- pairs ------------------------------------------------------------------------------------------------------------


def pairs(entry: EntryData) -> Iterator[Figure]:
    """Client by server, a matrix for each environment, one colour scale; nothing for fewer than two pairs."""
    found: dict[tuple[str, str, str], float] = {}
    for series, levels in entry.levels.items():
        labels = dict(series.labels)
        if series.metric == METRIC and {"client", "server"} <= labels.keys():
            found |= {(name, labels["client"], labels["server"]): level.mean for name, level in levels.items()}
    if len({key[1:] for key in found}) < 2:
        return
    factor, unit = theme.scaled(max(found.values()), "bit/s")
    values = [value / factor for value in found.values()]
    colours = Colours(min(values) * 0.98, max(values) * 1.02, unit, theme.logarithmic(values))
    nodes = tuple(sorted({node for key in found for node in key[1:]}, key=natural))
    count = len({environment for environment, _, _ in found})
    hover = (("client_text", "client"), ("server_text", "server"), ("value", unit))
    yield Figure(
        name=f"{entry.name}-pairs",
        kind=PAIRS,
        title=f"Pairs of nodes, {unit}",
        alt=f"Matrices of throughput from client to server, one for each environment, from {min(values):.4g} to "
        f"{max(values):.4g} {unit}. The table holds every number.",
        caption="Rows are clients, columns are servers; one colour scale for all environments.",
        data=tuple(_cells(found, factor, colours)),
        panels=(
            Panel(
                (Layer(Mark.CELL, "cell", by="value", hover=hover), Layer(Mark.TEXT, "cell", text="text", by="ink")),
                Axis("client_text", "client", Scale.CATEGORY, values=nodes),
                height=1.6,
            ),
        ),
        x=Axis("server_text", "server", Scale.CATEGORY, values=nodes),
        environments=entry.environments,
        columns=ENVIRONMENT,
        across=4,
        colours=colours,
        wide=count > 2,
    )


def _cells(found: Mapping[tuple[str, str, str], float], factor: float, colours: Colours) -> Iterator[Row]:
    domain = (colours.low, colours.high)
    for (environment, client, server), value in found.items():
        dark = theme.share(value / factor, domain, log=colours.logarithmic) < theme.LIGHT_INK_BELOW
        place = {ENVIRONMENT: environment, "client_text": client, "server_text": server}
        text = {"text": format_number(value / factor, 3), "ink": "light" if dark else "dark"}
        yield from rows("cell", [{**place, "value": value / factor, **text}])


FIGURES = (
    ToolFigures(
        "iperf3",
        figures,
        kinds=(OVER_TIME, SPREAD, PAIRS),
        losses=("retransmits", "lost_fraction", "jitter"),
    ),
)
