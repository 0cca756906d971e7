"""ping's figure: how round-trip times are distributed, or the range of each run where only its summary was printed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.errors import ParseError
from vtax.model.trial import Status, TrialRecord
from vtax.report.document.numbers import natural
from vtax.report.document.results import Results
from vtax.report.figures.chart import Chart, Trace, choice, log_marks, plain, scaled, short
from vtax.report.figures.lines import legend
from vtax.report.figures.palette import STROKES
from vtax.report.figures.svg import Scale, document, element, label, line, log_around, num, tick_text
from vtax.tools.ping import benchmark
from vtax.tools.ping.metrics import RTT_AVG
from vtax.units import format_number

ALL = "all pairs"
MEAN = RTT_AVG.name
STEPS = 160  # of a drawn distribution; a percentile more or less is not seen
LEFT, RIGHT = 52.0, 428.0
Times = Mapping[str, Mapping[str, list[float]]]  # pair -> environment -> round-trip times, s


def charts(
    results: Results, several: Sequence[Series], trials: Sequence[TrialRecord], anchor: str
) -> tuple[Chart, ...]:
    """The distribution of every round trip of an entry, in the unit of its mean."""
    times = times_of(trials, several[0].label)
    if not times:
        return ()
    means = [level.mean for series in several if series.metric == MEAN for level in results.levels[series].values()]
    own = [time_s for values in times[ALL].values() for time_s in values]
    factor, unit = scaled(max(means) if means else statistics.median(own), "s")
    return (_distribution(results, times, f"{anchor}-rtt", factor, unit),)


def times_of(trials: Sequence[TrialRecord], label_: str) -> Times:
    """The round trips of all measured trials of an entry, by pair and environment, and of all pairs together."""
    found: dict[str, dict[str, list[float]]] = {}
    for trial in trials:
        if trial.benchmark != "ping" or trial.label != label_ or trial.warmup or trial.status is not Status.OK:
            continue
        try:
            answers = benchmark.round_trips(trial)
        except (ParseError, KeyError):  # its text is not loaded
            continue
        own = [time_s for _, time_s in answers if time_s > 0]
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


def _distribution(results: Results, times: Times, anchor: str, factor: float, unit: str) -> Chart:
    pairs = [ALL, *sorted((pair for pair in times if pair != ALL), key=natural)]
    environments = [name for name in results.environments if name in times[ALL]]
    traces: list[Trace] = []
    options = []
    for pair in pairs:
        first = len(traces)
        for name in environments:
            if name in times[pair]:
                traces.append(_trace(quantiles(times[pair][name]), factor, name, results.environments.index(name)))
        options.append((pair, range(first, len(traces))))
    x_scale = _x_scale(times[ALL], factor)
    medians = "; ".join(f"{name} {format_number(_at(times[ALL][name], 0.5) / factor, 3)}" for name in environments)
    tails = "; ".join(f"{name} {format_number(_at(times[ALL][name], 0.99) / factor, 3)}" for name in environments)
    return Chart(
        anchor=anchor,
        title="Distribution of round-trip times",
        alt=f"Cumulative distribution of round-trip times. Medians in {unit}: {medians}. 99th percentiles: {tails}.",
        svg=_svg(results, {name: quantiles(times[ALL][name]) for name in environments}, x_scale, factor, unit),
        traces=tuple(traces),
        layout={
            "xaxis": {"title": {"text": f"round-trip time, {unit} (logarithmic)"}, **log_marks(x_scale)},
            "yaxis": {"title": {"text": "share of packets not slower"}, "range": [0, 1.02], "tickformat": ".0%"},
        },
        caption=f"Every answer of every round. Median, {unit}: {medians}. 99th percentile: {tails}.",
        choices=(choice("Pair", options),),
    )


def _at(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _trace(steps: Sequence[tuple[float, float]], factor: float, name: str, place: int) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "line": {"shape": "hv"},
        "name": plain(name, 28),
        "meta": {"env": place},
        "x": [short(value / factor) for value, _ in steps],
        "y": [round(share, 4) for _, share in steps],
        "hovertemplate": "%{y:.1%} take at most %{x:.4g} " + unit_text(factor) + "<extra></extra>",
    }


def unit_text(factor: float) -> str:
    return scaled(factor, "s")[1]


def _x_scale(several: Mapping[str, Sequence[float]], factor: float) -> Scale:
    return log_around([value / factor for values in several.values() for value in values], LEFT, RIGHT)


def _svg(
    results: Results, several: Mapping[str, Sequence[tuple[float, float]]], x_scale: Scale, factor: float, unit: str
) -> str:
    left, right, top, bottom = LEFT, RIGHT, 26.0, 210.0
    y_scale = Scale(0.0, 1.0, bottom, top)
    parts = legend(results.environments, list(several), left)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [line(left, y_scale(share), right, y_scale(share), "grid")]
        parts += [label(left - 6, y_scale(share) + 3.5, f"{share:.0%}", "tick", "end")]
    for tick in x_scale.ticks(6):
        parts.append(label(x_scale(tick), bottom + 14, tick_text(tick), "tick", "middle"))
        parts.append(line(x_scale(tick), bottom, x_scale(tick), bottom + 4, "base"))
    for name, steps in several.items():
        place = results.environments.index(name)
        path, before = [], bottom
        for value, share in steps:
            x, y = x_scale(value / factor), y_scale(share)
            path += [f"{num(x)} {num(before)}", f"{num(x)} {num(y)}"]
            before = y
        parts.append(
            element("path", d="M" + "L".join(path), class_=f"curve s{place}", stroke_dasharray=STROKES[place % 8])
        )
    parts.append(label((left + right) / 2, bottom + 32, f"round-trip time, {unit} (logarithmic)", "axis", "middle"))
    return document(440, bottom + 38, parts)
