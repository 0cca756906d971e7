"""iperf3's figures: bitrate second by second and as boxes for each pair of nodes, and the matrix of pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.summary import Series
from vtax.benchmarks import iperf3
from vtax.errors import ParseError
from vtax.model import Status, TrialRecord
from vtax.report.chart import Chart, Trace, choice, plain, scaled, short
from vtax.report.lines import legend
from vtax.report.numbers import natural
from vtax.report.palette import SEQUENTIAL, plotly_scale, shade_class
from vtax.report.svg import Scale, around, cut, document, element, label, line, num, polyline, rect, tick_text
from vtax.report.tables import Results
from vtax.units import format_number

METRIC = "throughput"
MANY = 8000  # points of bitrate over time beyond which a figure holds the median of the runs only
SMALL_W, SMALL_H = 214.0, 122.0
COLUMNS = 4
PAIRS_MAX = 12  # drawn for paper


@dataclass(frozen=True)
class Run:
    """The counted intervals of one trial: (end s, bit/s)."""

    environment: str
    pair: str
    round: int
    rates: tuple[tuple[float, float], ...]


def runs_of(trials: Sequence[TrialRecord], label_: str) -> tuple[Run, ...]:
    """The seconds of every measured trial of an entry whose output is there."""
    runs = []
    for trial in trials:
        if trial.benchmark != "iperf3" or trial.label != label_ or trial.warmup or trial.status is not Status.OK:
            continue
        try:
            found = iperf3.series(trial)
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
        made += [_over_time(results, runs, pairs, f"{anchor}-time", factor, unit)]
        made += [_boxes(results, runs, pairs, f"{anchor}-box", factor, unit)]
    matrix = _matrix(results, several, f"{anchor}-pairs")
    return (*made, *([matrix] if matrix else []))


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
        traces += [_line_trace(results, run, factor, thin) for run in drawn if run.pair == pair]
        options.append((pair, range(first, len(traces))))
    what = "median of the rounds, second by second" if thin else "each line is one round"
    more = f"; the first {PAIRS_MAX} of {len(pairs)} pairs" if len(pairs) > PAIRS_MAX else ""
    return Chart(
        anchor=anchor,
        title=f"Bitrate over time, client → server ({unit})",
        alt=f"Lines of the bitrate over time for {len(pairs)} pairs of nodes, {what}. "
        f"The highest is {top:.4g} {unit}. The table holds the mean of every pair.",
        svg=document(COLUMNS * (SMALL_W + 6), 26 + rows * (SMALL_H + 12), parts, "wide"),
        traces=tuple(traces),
        layout={
            "xaxis": {"title": {"text": "s since the start of counting"}},
            "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
        },
        caption=f"What the client reported of each second; {what}{more}.",
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
    return parts


def _line_trace(results: Results, run: Run, factor: float, thin: bool) -> Trace:
    name = run.environment if thin else f"{run.environment}, round {run.round}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name, 28),
        "meta": {"env": results.environments.index(run.environment)},
        "x": [second for second, _ in run.rates],
        "y": [short(rate / factor) for _, rate in run.rates],
    }


# --- boxes ------------------------------------------------------------------------------------------------------------


def five_numbers(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Least, lower quartile, median, upper quartile, largest; quartiles between two values are interpolated."""
    ordered = sorted(values)
    if len(ordered) == 1:
        return (ordered[0],) * 5
    low, middle, high = statistics.quantiles(ordered, n=4, method="inclusive")
    return ordered[0], low, middle, high, ordered[-1]


def _boxes(results: Results, runs: Sequence[Run], pairs: Sequence[str], anchor: str, factor: float, unit: str) -> Chart:
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        found.setdefault((run.pair, run.environment), []).extend(rate / factor for _, rate in run.rates)
    numbers = {key: five_numbers(values) for key, values in found.items()}
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
        caption="Every counted second of every round: quartiles as a box, the line is the median, whiskers end at the "
        "least and the largest second.",
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


# --- the matrix of pairs ----------------------------------------------------------------------------------------------


def _matrix(results: Results, several: Sequence[Series], anchor: str) -> Chart | None:
    """Client by server, one for each environment, one colour scale; None for fewer than two pairs."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for series in several:
        labels = dict(series.labels)
        if series.metric == METRIC and {"client", "server"} <= labels.keys():
            for name, level in results.levels[series].items():
                found.setdefault(name, {})[labels["client"], labels["server"]] = level.mean
    values = [value for by_pair in found.values() for value in by_pair.values()]
    if len(values) < 2 or len({pair for by_pair in found.values() for pair in by_pair}) < 2:
        return None
    factor, unit = scaled(max(values), "bit/s")
    low, high = min(values) / factor, max(values) / factor
    scale = Scale(low * 0.98, high * 1.02, 0, 1, logarithmic=high / low > 20)
    nodes = sorted({node for by_pair in found.values() for pair in by_pair for node in pair}, key=natural)
    environments = [name for name in results.environments if name in found]
    side = min(64.0, max(26.0, 240.0 / len(nodes)))
    width = 76 + side * len(nodes)
    parts, traces = [], []
    for column, name in enumerate(environments):
        parts += _square(found[name], nodes, scale, factor, (column * (width + 16), 0.0), side, name)
        traces.append(_matrix_trace(found[name], nodes, scale, factor, unit, column, name))
    count = len(environments)
    layout: dict[str, object] = {}
    notes = []
    for i, name in enumerate(environments):
        axis = "" if i == 0 else str(i + 1)
        domain = [round(i / count + (0.04 if i else 0), 3), round((i + 1) / count - 0.04, 3)]
        layout[f"xaxis{axis}"] = {
            "domain": domain,
            "anchor": f"y{axis}",
            "type": "category",
            "title": {"text": "server"},
        }
        layout[f"yaxis{axis}"] = {"anchor": f"x{axis}", "type": "category", "autorange": "reversed", "automargin": True}
        notes.append({"text": plain(cut(name, 24)), "x": domain[0], "xref": "paper", "y": 1.02, "yref": "paper"})
    fixed = {"showarrow": False, "xanchor": "left", "yanchor": "bottom"}
    return Chart(
        anchor=anchor,
        title=f"Pairs of nodes, {unit}",
        alt=f"Matrices of throughput from client to server, one for each environment, from {low:.4g} to {high:.4g} "
        f"{unit}. The table holds every number.",
        svg=document(max(440.0, count * (width + 16)), side * len(nodes) + 60, parts),
        traces=tuple(traces),
        layout={**layout, "annotations": [{**note, **fixed} for note in notes]},
        caption="Rows are clients, columns are servers; one colour scale for all environments.",
        height=330,
    )


def _square(
    values: Mapping[tuple[str, str], float],
    nodes: Sequence[str],
    scale: Scale,
    factor: float,
    origin: tuple[float, float],
    side: float,
    name: str,
) -> list[str]:
    left, top = origin[0] + 74, origin[1] + 34
    parts = [label(origin[0], origin[1] + 10, cut(name, 30), "head")]
    for i, node in enumerate(nodes):
        parts.append(label(left + (i + 0.5) * side, top - 5, cut(node, int(side / 6)), "tick", "middle"))
        parts.append(label(left - 5, top + (i + 0.5) * side + 3.5, cut(node, 11), "tick", "end"))
        for j, server in enumerate(nodes):
            value = values.get((node, server))
            x, y = left + j * side, top + i * side
            if value is None:
                parts.append(rect(x, y, side - 1, side - 1, "none"))
                continue
            place = shade_class(scale.share(value / factor))
            parts.append(element("rect", x=x, y=y, width=side - 1, height=side - 1, fill=SEQUENTIAL[place]))
            kind = "on-dark" if place < len(SEQUENTIAL) * 0.55 else "on-light"
            if side > 34:
                parts.append(label(x + side / 2, y + side / 2 + 4, format_number(value / factor, 3), kind, "middle"))
    return parts


def _matrix_trace(
    values: Mapping[tuple[str, str], float],
    nodes: Sequence[str],
    scale: Scale,
    factor: float,
    unit: str,
    column: int,
    name: str,
) -> Trace:
    axis = "" if column == 0 else str(column + 1)
    rows = [[values.get((client, server)) for server in nodes] for client in nodes]
    shown = [[None if v is None else short(v / factor) for v in row] for row in rows]
    depth = [[None if v is None else round(math.log10(v) if scale.logarithmic else v, 6) for v in row] for row in shown]
    ends = [round(math.log10(end) if scale.logarithmic else end, 6) for end in (scale.low, scale.high)]
    return {
        "type": "heatmap",
        "name": plain(name, 28),
        "meta": {"role": "heat"},
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "x": [plain(node) for node in nodes],
        "y": [plain(node) for node in nodes],
        "z": depth,
        "text": [["" if v is None else num(v) if v >= 100 else f"{v:.3g}" for v in row] for row in shown],
        "texttemplate": "%{text}",
        "hovertemplate": "%{y} → %{x}: %{text} " + unit + "<extra></extra>",
        "colorscale": plotly_scale(),
        "zmin": ends[0],
        "zmax": ends[1],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
