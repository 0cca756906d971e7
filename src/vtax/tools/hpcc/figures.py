"""HPL's rate over block size and over problem size, with the machine's theoretical peak where it is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.figures import lines, theme
from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import Choice, Figure, rows
from vtax.units import format_quantity
from vtax.wording import natural

KIND = "HPL over a size"
METRIC = "HPL"
NAMES = {"n": "N", "nb": "NB"}
OPTION = "option"  # the field of what is chosen


def figures(entry: EntryData) -> Iterator[Figure]:
    """Over NB for a chosen N and over N for a chosen NB, where the study has several of them."""
    own = [series for series in entry.levels if series.metric == METRIC and {"n", "nb"} <= dict(series.labels).keys()]
    for x, other in (("nb", "n"), ("n", "nb")):
        if len({dict(series.labels)[x] for series in own}) > 1:
            yield sweep(entry, own, x, other)


def sweep(entry: EntryData, own: Sequence[Series], x: str, other: str) -> Figure:
    """The rate over `x` for a chosen `other`."""
    means = {series: max(level.mean for level in entry.levels[series].values()) for series in own}
    factor, unit = theme.scaled(max(means.values()), "flop/s")
    options = sorted({dict(series.labels)[other] for series in own}, key=natural)
    several = {option: _curves(entry, own, x, other, option) for option in options}
    best = dict(max(own, key=lambda series: means[series]).labels)
    shown = _name(other, options[-1] if other == "n" else best["nb"])
    sizes = lines.Sizes(
        f"{NAMES[x]}, {'block size' if x == 'nb' else 'order of the matrix'}", lambda value: f"{value:,.0f}", log=False
    )
    peak = () if entry.peak is None else (entry.peak,)
    data = [
        row
        for option, curves in several.items()
        for row in lines.curve_rows(curves, factor, {OPTION: _name(other, option)}, sizes.text, runs=True)
    ]
    x_axis = sizes.axis(list(several.values()))
    middle = sum(x_axis.domain or (0.0, 0.0)) / 2
    for value in peak:
        text = f"theoretical peak {format_quantity(value, 'flop/s')}"
        data += rows("limit", [{"value": value / factor, "size": middle, "limit_text": text}])
    y = lines.values_axis(list(several.values()), factor, f"{unit}, higher is better", peak)
    top = format_quantity(max(means.values()), "flop/s")
    where = ", ".join(f"{NAMES[name]} {best[name]}" for name in ("n", "nb"))
    return Figure(
        name=f"{entry.name}-{x}",
        kind=KIND,
        title=f"HPL over {NAMES[x]}",
        alt=f"Lines, HPL over {NAMES[x]} for each environment, at {shown}. The best of all is {top} at {where}. "
        "The table holds every point.",
        caption="Mean of the rounds; points are single runs.",
        data=tuple(data),
        panels=(lines.panel(y, unit, runs=True, limit=bool(peak)),),
        x=x_axis,
        environments=entry.environments,
        choices=(Choice(OPTION, NAMES[other], tuple(_name(other, option) for option in options), shown, still=4),),
        wide=len(options) > 1,
    )


def _name(label: str, value: str) -> str:
    return f"{NAMES[label]} {int(value):,}"


def _curves(
    entry: EntryData, own: Sequence[Series], x: str, other: str, option: str
) -> Mapping[str, Mapping[float, Level]]:
    curves: dict[str, dict[float, Level]] = {}
    for series in own:
        labels = dict(series.labels)
        if labels[other] == option:
            for name, level in entry.levels[series].items():
                curves.setdefault(name, {})[float(labels[x])] = level
    return curves


FIGURES = (ToolFigures("hpcc", suite=True), ToolFigures("hpl", figures, kinds=(KIND,), instead_of_bars=True))
