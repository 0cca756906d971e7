"""HPL's rate over block size and over problem size, with the machine's theoretical peak where it is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.figures import lines
from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import Figure
from vtax.figures.sweep import Options, Words, sweep
from vtax.units import format_quantity
from vtax.wording import natural

KIND = "HPL over a size"
METRIC = "HPL"
NAMES = {"n": "N", "nb": "NB"}


def figures(entry: EntryData) -> Iterator[Figure]:
    """Over NB for a chosen N and over N for a chosen NB, where the study has several of them."""
    own = [series for series in entry.levels if series.metric == METRIC and {"n", "nb"} <= dict(series.labels).keys()]
    for x, other in (("nb", "n"), ("n", "nb")):
        if len({dict(series.labels)[x] for series in own}) > 1:
            yield over(entry, own, x, other)


def over(entry: EntryData, own: Sequence[Series], x: str, other: str) -> Figure:
    """The rate over `x` for a chosen `other`."""
    means = {series: max(level.mean for level in entry.levels[series].values()) for series in own}
    options = sorted({dict(series.labels)[other] for series in own}, key=natural)
    best = dict(max(own, key=lambda series: means[series]).labels)
    shown = _name(other, options[-1] if other == "n" else best["nb"])
    top = format_quantity(max(means.values()), "flop/s")
    where = ", ".join(f"{NAMES[name]} {best[name]}" for name in ("n", "nb"))
    words = Words(
        name=f"{entry.name}-{x}",
        kind=KIND,
        title=f"HPL over {NAMES[x]}",
        alt=f"Lines, HPL over {NAMES[x]} for each environment, at {shown}. The best of all is {top} at {where}. "
        "The table holds every point.",
        caption="Mean of the rounds; points are single runs.",
    )
    sizes = lines.Sizes(
        f"{NAMES[x]}, {'block size' if x == 'nb' else 'order of the matrix'}", lambda value: f"{value:,.0f}", log=False
    )
    curves = {_name(other, option): _curves(entry, own, x, other, option) for option in options}
    peak = () if entry.peak is None else (entry.peak,)
    return sweep(
        words,
        entry.environments,
        sizes,
        Options(NAMES[other], curves, shown),
        max(means.values()),
        "flop/s",
        peak=peak,
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
