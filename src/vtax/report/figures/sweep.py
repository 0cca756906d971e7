"""HPL's rate over block size and over problem size, with the machine's theoretical peak where it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.report.document.numbers import natural
from vtax.report.document.results import Results
from vtax.report.figures import lines
from vtax.report.figures.chart import Chart, Trace, choice, scaled
from vtax.units import format_quantity

NAMES = {"n": "N", "nb": "NB"}


def sweeps(results: Results, several: Sequence[Series], peak: float | None, anchor: str) -> tuple[Chart, ...]:
    """Over NB for a chosen N and over N for a chosen NB, where the study has several of them."""
    own = [series for series in several if series.metric == "HPL" and {"n", "nb"} <= dict(series.labels).keys()]
    charts = []
    for x, other in (("nb", "n"), ("n", "nb")):
        if len({dict(series.labels)[x] for series in own}) > 1:
            charts.append(_sweep(results, own, (x, other), peak, f"{anchor}-{x}"))
    return tuple(charts)


def _sweep(results: Results, own: Sequence[Series], axes: tuple[str, str], peak: float | None, anchor: str) -> Chart:
    x, other = axes
    means = [level.mean for series in own for level in results.levels[series].values()]
    factor, unit = scaled(max(means), "flop/s")
    options = sorted({dict(series.labels)[other] for series in own}, key=natural)
    several = {option: _curves(results, own, x, other, option) for option in options}
    best = max(own, key=lambda series: max(level.mean for level in results.levels[series].values()))
    shown = options[-1] if other == "n" else dict(best.labels)["nb"]
    about = lines.Axes(
        x=f"{NAMES[x]}, {'block size' if x == 'nb' else 'order of the matrix'}",
        y=f"{unit} (higher is better)",
        factor=factor,
        x_text=lambda value: f"{value:,.0f}",
        x_log=False,
        line_at=peak,
        line_name="" if peak is None else f"theoretical peak {format_quantity(peak, 'flop/s')}",
    )
    traces: list[Trace] = []
    places = []
    for option in options:
        made = lines.traces(results, several[option], about)
        places.append((f"{NAMES[other]} {int(option):,}", range(len(traces), len(traces) + len(made))))
        traces += made
    top = max(means)
    where = ", ".join(f"{NAMES[name]} {dict(best.labels)[name]}" for name in ("n", "nb"))
    note = f"{NAMES[other]} {int(shown):,}"
    return Chart(
        anchor=anchor,
        title=f"HPL over {NAMES[x]}",
        alt=f"Lines, HPL over {NAMES[x]} for each environment, at {note}. The best of all is "
        f"{format_quantity(top, 'flop/s')} at {where}. The table holds every point.",
        svg=lines.svg(results, several[shown], about, note),
        traces=tuple(traces),
        layout=lines.layout(list(several.values()), about),
        choices=(choice(NAMES[other], places, options.index(shown)),),
        caption=f"Mean of the rounds; points are single runs. At {note}.",
        height=340,
    )


def _curves(results: Results, own: Sequence[Series], x: str, other: str, option: str) -> Mapping[str, lines.Curve]:
    curves: dict[str, dict[float, Level]] = {}
    for series in own:
        labels = dict(series.labels)
        if labels[other] == option:
            for name, level in results.levels[series].items():
                curves.setdefault(name, {})[float(labels[x])] = level
    return curves
