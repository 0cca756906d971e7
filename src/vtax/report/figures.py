"""Figures as SVG text: grouped bars with every round as a point. No file, no window, no state left behind.

Ink is `currentColor`, so a figure inside a page follows its light or dark colours. One panel has one unit.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from vtax.analysis.records import Level
from vtax.analysis.summary import Series
from vtax.model import Direction, Kind
from vtax.report.groups import Group
from vtax.report.matrices import matrices
from vtax.report.numbers import labels_text
from vtax.report.tables import Results, bundles
from vtax.units import scale_of

COLOURS = (
    "#4C8DC9",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#B8A800",
    "#888888",
)  # after Okabe and Ito
HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||", "++++", "//")  # lines only: dots make large files
INK = "#010203"  # replaced by currentColor
DECADES = 100.0  # a logarithmic axis beyond this spread
SUITES = frozenset({"hpcc"})
CATEGORIES = 10  # in one panel, before its metrics get one each
CATEGORIES_MAX = 16
WIDTH_IN = 4.6
BAR_IN = 0.15
CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
RC = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.color": INK,
    "hatch.linewidth": 0.35,
    "axes.linewidth": 0.6,
}


@dataclass(frozen=True)
class Panel:
    """Bars of one unit: a category for each series, a bar for each environment in it."""

    title: str
    unit: str
    categories: tuple[tuple[str, Series], ...]
    better: Direction


def panels(results: Results, group: Group) -> tuple[Panel, ...]:
    """What the figure of a group shows: of a suite such as HPCC all rates and costs, else the primary metrics."""
    several = [series for series in results.levels if results.group(series) is group and _drawn(results, series)]
    by_unit: dict[tuple[str, str, Direction], list[Series]] = {}
    for series in _largest_files(several):
        first = results.first(series)
        by_unit.setdefault((series.label, first.unit, first.direction), []).append(series)
    found = []
    for (label, unit, better), members in by_unit.items():
        bundled = bundles(members)
        parts = [members] if len(members) <= CATEGORIES and len(bundled) == len(members) else bundled
        found += [_panel(label, unit, better, part) for part in parts]
    return tuple(found)


def _drawn(results: Results, series: Series) -> bool:
    first = results.first(series)
    if first.kind in (Kind.COUNT, Kind.PROPORTION):
        return False
    if series.benchmark in SUITES:
        return not series.metric.endswith("_time")  # says the same as its rate
    alone = not any(results.first(other).primary for other in results.levels if other.label == series.label)
    return first.primary or alone


def _largest_files(several: Sequence[Series]) -> list[Series]:
    """Of a matrix over two sizes only its largest file, as a line of record sizes."""
    left_out: set[Series] = set()
    for matrix in matrices(several):
        largest = matrix.values(matrix.outer)[-1]
        left_out |= {series for series in matrix.members if dict(series.labels)[matrix.outer] != largest}
    return [series for series in several if series not in left_out]


def _panel(label: str, unit: str, better: Direction, members: Sequence[Series]) -> Panel:
    """Whatever all the series share goes into the title, the rest names the categories."""
    shared = set.intersection(*(set(series.labels) for series in members))
    metrics = {series.metric for series in members}
    one_metric = len(metrics) == 1
    words = [label]
    if one_metric:
        words.append(members[0].metric)
    if shared:
        words.append(labels_text(dict(shared)))
    if len(members) > CATEGORIES_MAX:
        words.append(f"first {CATEGORIES_MAX} of {len(members)}")
    categories = []
    for series in members[:CATEGORIES_MAX]:
        text = labels_text({name: value for name, value in series.labels if (name, value) not in shared})
        categories.append((text if one_metric else f"{series.metric} {text}".strip(), series))
    return Panel(" · ".join(word for word in words if word), unit, tuple(categories), better)


def salted_panels(results: Results, group: Group) -> tuple[tuple[str, Panel], ...]:
    """The panels of a group, each with a short name of its own."""
    return tuple((f"{group.name.lower()}{number}", panel) for number, panel in enumerate(panels(results, group), 1))


def figure(results: Results, panel: Panel, salt: str) -> str:
    """One panel as SVG for a page: the same text for the same input; `salt` keeps its ids apart from other figures'."""
    style: Any = {**RC, "svg.hashsalt": salt}  # the stubs want every key as a literal
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # the browser has the glyph
        title = "\n".join(textwrap.wrap(_shown(panel.title, 110), 56))
        bars = len(panel.categories) * (len(results.environments) + 1)
        canvas = Figure(figsize=(WIDTH_IN, 1.1 + BAR_IN * (bars + title.count("\n"))), layout="constrained")
        FigureCanvasSVG(canvas)
        _draw(canvas.add_subplot(), results, panel)
        canvas.suptitle(title, x=0.01, ha="left", fontsize=9.0, fontweight="bold")
        handles, names = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), frameon=False)
        text = io.StringIO()
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _for_page(text.getvalue(), salt)


def standalone(svg: str) -> str:
    """The same figure as a file of its own."""
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def _draw(axes: Axes, results: Results, panel: Panel) -> None:
    levels = [results.levels[series] for _, series in panel.categories]
    values = [cell.value for found in levels for level in found.values() for cell in level.cells]
    factor, unit = scale_of(max(map(abs, values)), panel.unit)
    logarithmic = min(values) > 0 and max(values) / min(values) > DECADES
    floor = 10.0 ** _decade(min(values) / factor) if logarithmic else 0.0
    if logarithmic:
        axes.set_xscale("log")
    thickness = 0.82 / len(results.environments)
    for place, environment in enumerate(results.environments):
        found = [(i, by_name[environment]) for i, by_name in enumerate(levels) if environment in by_name]
        offset = (place - (len(results.environments) - 1) / 2) * thickness
        _bars(axes, [(i + offset, level) for i, level in found], factor, floor, thickness, (place, environment))
    if logarithmic:
        axes.set_xlim(left=floor)
        axes.xaxis.set_major_locator(LogLocator(numticks=7))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.set_yticks(range(len(levels)), [_shown(name, 34) for name, _ in panel.categories])
    axes.set_ylim(len(levels) - 0.5, -0.5)  # the first on top
    scale = ", logarithmic" if logarithmic else ""
    better = "" if panel.better is Direction.NONE else f" ({panel.better}{scale})"
    axes.set_xlabel(f"{unit}{better}".strip())
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=INK, alpha=0.15, linewidth=0.5)
    axes.set_axisbelow(True)


def _bars(
    axes: Axes,
    found: Sequence[tuple[float, Level]],
    factor: float,
    floor: float,
    thickness: float,
    who: tuple[int, str],
) -> None:
    """The bars of one environment, and on each the value of every round, the first round on top."""
    place, environment = who
    axes.barh(
        [y for y, _ in found],
        [level.mean / factor - floor for _, level in found],
        height=thickness * 0.92,
        left=floor,
        color=COLOURS[place % len(COLOURS)],
        hatch=HATCHES[place % len(HATCHES)],
        edgecolor=INK,
        linewidth=0.5,
        label=_shown(environment, 24).lstrip("_"),
    )
    xs, ys = [], []
    for y, level in found:
        for i, cell in enumerate(level.cells):
            xs.append(cell.value / factor)
            ys.append(y + thickness * 0.6 * ((i + 0.5) / level.n - 0.5))
    axes.plot(
        xs,
        ys,
        linestyle="none",
        marker="o",
        markersize=2.6,
        markerfacecolor="white",
        markeredgecolor=INK,
        markeredgewidth=0.6,
        label="_rounds",
    )


def _decade(value: float) -> int:
    """The whole power of ten below a value, so that its bar has some length."""
    exponent = len(str(int(value))) - 1 if value >= 1 else -_zeros(value)
    return exponent - 1 if value <= 1.5 * 10.0**exponent else exponent


def _zeros(value: float) -> int:
    count = 0
    while value < 1:
        value, count = value * 10, count + 1
    return count


def _shown(text: str, length: int) -> str:
    """Text that SVG can hold, cut to a length."""
    clean = CONTROL.sub("\ufffd", text).replace("\n", " ")
    return clean if len(clean) <= length else clean[: length - 1] + "…"


def _for_page(svg: str, salt: str) -> str:
    """What belongs inside a page: no prolog, no metadata, no namespaces, ids that no other figure has."""
    body = svg[svg.index("<svg ") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r' xmlns(?::\w+)?="[^"]*"', "", body)
    body = re.sub(r' (?:width|height)="[\d.]+pt"', "", body, count=2)
    body = body.replace("xlink:href=", "href=").replace(INK, "currentColor")
    body = re.sub(r'\bid="', f'id="{salt}-', body)
    body = body.replace('href="#', f'href="#{salt}-').replace("url(#", f"url(#{salt}-")
    return body.strip()
