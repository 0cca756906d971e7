"""iperf3's figures: bitrate interval by interval and as boxes for each pair of nodes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vtax.analysis.estimate.summary import Series
from vtax.errors import ParseError
from vtax.model.trial import Status, TrialRecord
from vtax.report.document.numbers import natural, plural
from vtax.report.document.results import Results
from vtax.report.figures.chart import Chart, Trace, choice, plain, scaled, short
from vtax.report.figures.lines import legend
from vtax.report.figures.pairs import matrix
from vtax.report.figures.svg import Scale, around, cut, document, dots, label, line, polyline, rect, tick_text
from vtax.tools.iperf3 import benchmark

METRIC = "throughput"
MANY = 8000  # points of bitrate over time beyond which a figure holds the median of the runs only
SMALL_W, SMALL_H = 214.0, 122.0
COLUMNS = 4
PAIRS_MAX = 12  # drawn for paper
LEAST = 5  # points below which a line or a box says nothing that the table does not
OVER_TIME = "-time"  # ends the id of that figure
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


def runs_of(trials: Sequence[TrialRecord], label_: str) -> tuple[Run, ...]:
    """The intervals of every measured trial of an entry whose output is there."""
    runs = []
    for trial in trials:
        if trial.benchmark != "iperf3" or trial.label != label_ or trial.warmup or trial.status is not Status.OK:
            continue
        try:
            found = benchmark.series(trial)
        except (ParseError, KeyError):  # its text is not loaded, or the audit has refused it already
            continue
        if found:
            rates = tuple((round(end, 2), rate) for _, end, rate in found)
            runs.append(Run(trial.environment, " → ".join(trial.nodes), trial.round, rates))
    return tuple(sorted(runs, key=lambda run: (natural(run.pair), run.environment, run.round)))


def charts(
    results: Results, several: Sequence[Series], trials: Sequence[TrialRecord], anchor: str
) -> tuple[Chart, ...]:
    """The figures of one iperf3 entry, those for which there is something to draw."""
    made = []
    runs = runs_of(trials, several[0].label)
    if runs:
        factor, unit = scaled(max(rate for run in runs for _, rate in run.rates), "bit/s")
        pairs = sorted({run.pair for run in runs}, key=natural)
        if _longest(runs) >= LEAST:
            made += [_over_time(results, runs, pairs, f"{anchor}{OVER_TIME}", factor, unit)]
        if boxes := _numbers(runs, factor):
            made += [_boxes(results, boxes, pairs, f"{anchor}-box", unit)]
    pairs_chart = matrix(results, several, f"{anchor}-pairs")
    return (*made, *([pairs_chart] if pairs_chart else []))


def left_out(trials: Sequence[TrialRecord], label_: str) -> str:
    """Why an entry has no figure of the bitrate over time; "" where it has one, or nothing to draw it from."""
    runs = runs_of(trials, label_)
    most = _longest(runs)
    if not runs or most >= LEAST:
        return ""
    return (
        f"Bitrate over time is not drawn: iperf3 reported {most} {plural(most, 'interval')} of each run, and a line "
        f"needs {LEAST}. A shorter `interval_s` or a longer `time_s` gives more."
    )


def _longest(runs: Sequence[Run]) -> int:
    return max((len(run.rates) for run in runs), default=0)


# --- over time --------------------------------------------------------------------------------------------------------


def _over_time(
    results: Results, runs: Sequence[Run], pairs: Sequence[str], anchor: str, factor: float, unit: str
) -> Chart:
    thin = sum(len(run.rates) for run in runs) > MANY
    drawn = _medians(runs) if thin else runs
    top = max(rate for run in runs for _, rate in run.rates) / factor
    end = max(second for run in runs for second, _ in run.rates)
    parts = legend(results.environments, [n for n in results.environments if any(r.environment == n for r in runs)], 8)
    for i, pair in enumerate(pairs[:PAIRS_MAX]):
        origin = ((i % COLUMNS) * (SMALL_W + 6), 22 + (i // COLUMNS) * (SMALL_H + 12))
        own = [run for run in drawn if run.pair == pair]
        parts += _small(results, own, pair, origin, (end, top), factor)
    rows = -(-min(len(pairs), PAIRS_MAX) // COLUMNS)
    traces: list[Trace] = []
    options = []
    for pair in pairs:
        first = len(traces)
        traces += _line_traces(results, [run for run in drawn if run.pair == pair], factor, thin)
        options.append((pair, range(first, len(traces))))
    what = "median of the rounds, interval by interval" if thin else "each line is one round"
    every = statistics.median(run.interval_s for run in runs)
    more = f"; the first {PAIRS_MAX} of {len(pairs)} pairs" if len(pairs) > PAIRS_MAX else ""
    return Chart(
        anchor=anchor,
        title=f"Bitrate over time, client → server ({unit})",
        alt=f"Lines of the bitrate over time for {len(pairs)} pairs of nodes, {what}. "
        f"The highest is {top:.4g} {unit}. The table holds the mean of every pair.",
        svg=document(COLUMNS * (SMALL_W + 6), 26 + rows * (SMALL_H + 12), parts, "wide"),
        traces=tuple(traces),
        layout={
            "xaxis": {"title": {"text": "s since the start of counting"}, "range": [0, short(1.02 * end)]},
            "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
        },
        caption=f"What the client reported every {every:.2g} s; {what}{more}.",
        choices=(choice("Pair", options),),
        wide=True,
    )


def _medians(runs: Sequence[Run]) -> list[Run]:
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


def _small(
    results: Results,
    runs: Sequence[Run],
    pair: str,
    origin: tuple[float, float],
    most: tuple[float, float],
    factor: float,
) -> list[str]:
    left, right = origin[0] + 38, origin[0] + SMALL_W - 6
    top, bottom = origin[1] + 18, origin[1] + SMALL_H - 18
    x_scale, y_scale = Scale(0.0, most[0], left, right), around([0.0, most[1]], bottom, top, zero=True)
    parts = [label(origin[0] + 4, origin[1] + 10, cut(pair, 34), "head")]
    for tick in y_scale.ticks(4):
        parts += [line(left, y_scale(tick), right, y_scale(tick), "grid")]
        parts += [label(left - 5, y_scale(tick) + 3.5, tick_text(tick), "tick", "end")]
    for tick in x_scale.ticks(4):
        parts.append(label(x_scale(tick), bottom + 13, tick_text(tick) + (" s" if tick == 0 else ""), "tick", "middle"))
    for run in runs:
        place = results.environments.index(run.environment)
        spots = [(x_scale(second), y_scale(rate / factor)) for second, rate in run.rates]
        parts.append(polyline(spots, f"thin s{place}"))
        if len(spots) <= FEW:
            parts.append(dots(spots, f"run s{place}"))
    return parts


def _line_traces(results: Results, runs: Sequence[Run], factor: float, thin: bool) -> list[Trace]:
    """A line for each run; those of one environment share an entry of the legend."""
    ordered = sorted(runs, key=lambda run: (results.environments.index(run.environment), run.round))
    seen: set[str] = set()
    traces: list[Trace] = []
    for run in ordered:
        place = results.environments.index(run.environment)
        told = "median of the rounds" if thin else f"round {run.round}"
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if len(run.rates) <= FEW else "lines",
                "name": plain(run.environment, 28),
                "legendgroup": str(place),
                "showlegend": run.environment not in seen,
                "meta": {"env": place, "size": 4},
                "x": [second for second, _ in run.rates],
                "y": [short(rate / factor) for _, rate in run.rates],
                "text": plain(f"{cut(run.environment, 24)}, {told}"),
                "hovertemplate": "%{text}: %{y:.4g} at %{x} s<extra></extra>",
            }
        )
        seen.add(run.environment)
    return traces


# --- boxes ------------------------------------------------------------------------------------------------------------


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


def _boxes(
    results: Results, numbers: Mapping[tuple[str, str], Sequence[float]], pairs: Sequence[str], anchor: str, unit: str
) -> Chart:
    environments = [name for name in results.environments if any(key[1] == name for key in numbers)]
    left, right, step = 130.0, 424.0, 13.0
    scale = around([0.0, *(five[4] for five in numbers.values())], left, right, zero=True)
    height = 26 + len(pairs) * (len(environments) * step + 9)
    parts = [*legend(results.environments, environments, left)]
    for tick in scale.ticks(5):
        parts += [line(scale(tick), 22, scale(tick), height, "grid")]
        parts += [label(scale(tick), height + 13, tick_text(tick), "tick", "middle")]
    y = 26.0
    for pair in pairs:
        middle = y + len(environments) * step / 2 + 3.5
        parts.append(label(left - 8, middle, cut(pair, 22), "side", "end"))
        for name in environments:
            if (pair, name) in numbers:
                parts += _box(numbers[pair, name], scale, y, step, results.environments.index(name))
            y += step
        y += 9
    parts.append(label((left + right) / 2, height + 30, unit, "axis", "middle"))
    least = min(numbers, key=lambda key: numbers[key][2])
    return Chart(
        anchor=anchor,
        title="Spread of the bitrate",
        alt=f"Box plots of the bitrate for {len(pairs)} pairs of nodes. The lowest median is "
        f"{numbers[least][2]:.4g} {unit}, {least[0]} in {least[1]}.",
        svg=document(440, height + 36, parts),
        traces=tuple(_box_trace(numbers, pairs, name, results.environments.index(name)) for name in environments),
        layout={
            "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "yaxis": {"type": "category", "autorange": "reversed", "automargin": True},
            "boxmode": "group",
        },
        caption="Every counted interval of every round: quartiles as a box, the line is the median, whiskers end at "
        "the least and the largest.",
        height=90 + 26 * len(pairs) * len(environments),
    )


def _box(five: Sequence[float], scale: Scale, y: float, step: float, place: int) -> list[str]:
    low, first, middle, third, high = map(scale, five)
    center = y + step / 2
    return [
        line(low, center, high, center, "whisker"),
        rect(first, y + 2, max(1.5, third - first), step - 4, f"bar f{place}"),
        line(middle, y + 1, middle, y + step - 1, "median"),
    ]


def _box_trace(
    numbers: Mapping[tuple[str, str], Sequence[float]], pairs: Sequence[str], name: str, place: int
) -> Trace:
    own = [pair for pair in pairs if (pair, name) in numbers]
    trace: Trace = {"type": "box", "orientation": "h", "name": plain(name, 28), "meta": {"env": place}}
    trace["y"] = [plain(pair) for pair in own]
    for i, key in enumerate(("lowerfence", "q1", "median", "q3", "upperfence")):
        trace[key] = [short(numbers[pair, name][i]) for pair in own]
    return trace
