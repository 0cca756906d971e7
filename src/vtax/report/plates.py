"""Figures for a paper, one column wide: SVG, PDF and PNG of the ratios, and of every entry's values.

The same analysis gives the same file, byte for byte: no dates, no random identifiers.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from vtax.analysis.records import Analysis, Comparison, Level, Verdict
from vtax.report.numbers import labels_text, natural
from vtax.report.palette import ENVIRONMENTS
from vtax.units import format_number, scale_of

FORMATS = ("svg", "pdf", "png")
WIDTH_IN = 3.4  # one column of a paper in two columns
LINE_IN = 0.105
MOST_ROWS = 30  # of one figure
FEW = 6  # series of an entry whose ratios stand in one figure with those of others
LABEL = 30  # characters in a line beside the axis, so that half of the column is left for the figure
DECADES = 30.0  # a logarithmic axis beyond this spread
MARKS = ("o", "s", "D", "^", "P", "X", "*", "h")  # the page's, in matplotlib's words
DECIDED = {Verdict.FASTER: "^", Verdict.SLOWER: "v", Verdict.EQUIVALENT: "s", Verdict.TRIVIAL: "D"}
STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 6.5,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "svg.hashsalt": "vtax",
    "svg.fonttype": "path",  # a paper's tools need not have the font
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Plate:
    """One figure: its name, without an ending, and what draws it."""

    name: str
    content: Sequence[Comparison] | Sequence[Sequence[Level]]


def plates(analysis: Analysis) -> tuple[Plate, ...]:
    """The ratios of all primary metrics, then the values of every entry, in parts that fit a page."""
    return tuple(_plates(analysis))


def _plates(analysis: Analysis) -> Iterator[Plate]:
    ratios: dict[str, list[Comparison]] = {}
    for item in analysis.comparisons:
        if item.primary and item.ratio is not None:
            ratios.setdefault(_topic(item), []).append(item)
    few = [item for items in ratios.values() if len(items) <= FEW for item in items]
    for name, items in {"": few, **{name: items for name, items in ratios.items() if len(items) > FEW}}.items():
        yield from _in_parts(f"ratios-{name}" if name else "ratios", items)
    topics: dict[tuple[str, str], dict[tuple[object, ...], list[Level]]] = {}
    for level in analysis.levels:
        if level.primary:
            key = (level.metric, tuple(sorted(level.labels.items())))
            topics.setdefault((_topic(level), level.unit), {}).setdefault(key, []).append(level)
    taken: dict[str, int] = {}
    for (name, _), series in topics.items():
        taken[name] = taken.get(name, 0) + 1
        groups = [found for _, found in sorted(series.items(), key=lambda item: natural(str(item[0])))]
        yield from _in_parts(name if taken[name] == 1 else f"{name}-{taken[name]}", groups)


def _topic(item: Comparison | Level) -> str:
    """What one figure is about, as the name of a file: an entry; of many file operations each alone."""
    parts = [item.label, *(item.labels.get(name, "") for name in ("operation", "filesystem"))]
    return re.sub(r"[^a-z0-9-]", "-", "-".join(part for part in parts if part).lower())


def _in_parts(name: str, items: Sequence[Comparison] | Sequence[Sequence[Level]]) -> Iterator[Plate]:
    parts = list(_parts(items))
    for number, part in enumerate(parts, start=1):
        yield Plate(name if len(parts) == 1 else f"{name}-part{number}", part)


def _parts(items: Sequence[object]) -> Iterator[list]:  # type: ignore[type-arg]
    for start in range(0, len(items), MOST_ROWS):
        yield list(items[start : start + MOST_ROWS])


def draw(plate: Plate, analysis: Analysis, format: str) -> bytes:
    """The file of a figure in one of `FORMATS`."""
    with matplotlib.rc_context(STYLE):
        comparisons = [item for item in plate.content if isinstance(item, Comparison)]
        groups = [list(item) for item in plate.content if not isinstance(item, Comparison)]
        title, names = _names(comparisons or [group[0] for group in groups])
        lines = sum(name.count("\n") + 1.6 for name in names) + title.count("\n")
        figure = Figure(figsize=(WIDTH_IN, 0.75 + LINE_IN * max(3, lines)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        if comparisons:
            _forest(axes, comparisons, names, analysis)
        else:
            _values(axes, groups, names, analysis)
        figure.suptitle(title, fontsize=6.5, x=0.02, ha="left")
        buffer = io.BytesIO()
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[format]
        figure.savefig(buffer, format=format, dpi=600, metadata=metadata)
    return buffer.getvalue()


def _text(text: str) -> str:
    return CONTROL.sub("\ufffd", text)


def _forest(axes: Axes, items: Sequence[Comparison], names: Sequence[str], analysis: Analysis) -> None:
    """Ratio and interval of each comparison, the margin shaded, the mark by what was decided."""
    margin = analysis.margin
    axes.axvspan(1 / (1 + margin), 1 + margin, color="#000000", alpha=0.08, linewidth=0)
    axes.axvline(1.0, color="#000000", linewidth=0.5)
    for row, item in enumerate(items):
        colour, _ = _look(analysis, item.environment)
        ratio = item.ratio or 1.0
        if item.low is not None and item.high is not None:
            axes.plot([item.low, item.high], [row, row], color=colour, linewidth=0.9)
        filled = item.verdict in DECIDED
        axes.plot(
            ratio,
            row,
            marker=DECIDED.get(item.verdict, "o"),
            markersize=3.4,
            color=colour,
            markerfacecolor=colour if filled else "white",
            markeredgewidth=0.8,
            linestyle="none",
        )
    axes.set_xscale("log")
    several = len({item.environment for item in items}) > 1
    words = [f"{name}, {item.environment}" if several else name for name, item in zip(names, items, strict=True)]
    axes.set_yticks(range(len(items)), [_text(word) for word in words])
    axes.set_ylim(len(items) - 0.5, -0.5)
    who = ", ".join(dict.fromkeys(item.environment for item in items))
    axes.set_xlabel(_text(f"{who} / {analysis.baseline}; above 1 is better"), loc="right")
    _ratio_ticks(axes)


def _short(value: float, _: object) -> str:
    text = format_number(value, 3)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _ratio_ticks(axes: Axes) -> None:
    low, high = axes.get_xlim()
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    if high / low < 8:
        steps = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4, 1.6, 2.0, 3.0]
        ticks = [step for step in steps if low <= step <= high]
        spread = (
            ticks if len(ticks) <= 6 else [step for step in ticks if step in (0.5, 0.7, 0.9, 1.0, 1.1, 1.4, 2.0, 3.0)]
        )
        axes.set_xticks(spread)


def _names(items: Sequence[Comparison] | Sequence[Level]) -> tuple[str, list[str]]:
    """What all series have in common, as a title, and what tells each of them from the others."""
    common = dict(items[0].labels)
    for item in items:
        common = {name: value for name, value in common.items() if item.labels.get(name) == value}
    if len(items) == 1:
        common = {}
    entries, metrics = {item.label for item in items}, {item.metric for item in items}
    title = [text for texts in (entries, metrics) if len(texts) == 1 for text in texts]
    title += [labels_text(common)] if common else []
    names = []
    for item in items:
        own = labels_text({name: value for name, value in item.labels.items() if name not in common})
        parts = [item.label] if len(entries) > 1 else []
        parts += [item.metric] if len(metrics) > 1 or not (parts or own) else []
        names.append("\n".join(textwrap.wrap(_text(", ".join([*parts, *([own] if own else [])])), LABEL)))
    return "\n".join(textwrap.wrap(_text(": ".join(title)), 2 * LABEL)), names


def _values(axes: Axes, groups: Sequence[Sequence[Level]], names: Sequence[str], analysis: Analysis) -> None:
    """Mean and deviation of every series in every environment, and each round as a point."""
    everything = [level for group in groups for level in group]
    factor, unit = scale_of(max(abs(level.mean) for level in everything), everything[0].unit)
    values = [abs(cell.value) for level in everything for cell in level.cells if cell.value]
    present = [name for name in analysis.environments if any(level.environment == name for level in everything)]
    lanes = len(present)
    for row, group in enumerate(groups):
        for level in group:
            where = row + (present.index(level.environment) - (lanes - 1) / 2) * 0.7 / max(lanes, 2)
            colour, mark = _look(analysis, level.environment)
            points = [cell.value / factor for cell in level.cells]
            axes.plot(points, [where] * len(points), mark, color=colour, markersize=1.8, alpha=0.5, markeredgewidth=0)
            spread = (level.sd or 0.0) / factor
            axes.errorbar(
                level.mean / factor, where, xerr=spread, fmt=mark, color=colour, markersize=3.2, linewidth=0.8
            )
    if values and max(values) / min(values) > DECADES:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(_short))
    else:
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set_yticks(range(len(groups)), names)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    better = str(everything[0].direction)
    axes.set_xlabel(_text(f"{unit or 'value'}; {better}"))
    for name in present:
        colour, mark = _look(analysis, name)
        axes.plot([], [], mark, color=colour, markersize=3, label=_text(name))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, frameon=False, handletextpad=0.2)
    axes.xaxis.set_label_position("top")
    axes.xaxis.tick_top()


def _look(analysis: Analysis, environment: str) -> tuple[str, str]:
    """Colour and mark of an environment, the same in every figure."""
    lane = analysis.environments.index(environment)
    return ENVIRONMENTS[lane % len(ENVIRONMENTS)], MARKS[lane % len(MARKS)]
