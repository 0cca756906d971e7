"""Lines over a size, one for each environment, with every single run as a point; another size is to be chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.records import Level
from vtax.report.document.results import Results
from vtax.report.figures.chart import Trace, plain, short
from vtax.report.figures.palette import STROKES, SYMBOLS
from vtax.report.figures.svg import Scale, around, cut, document, dots, element, label, line, log_around, num, tick_text

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP = 62.0, 428.0, 30.0
MARKS = 14  # of a live axis, every one of which is a size that was measured
STEEP = 20.0  # values further apart than this get a logarithmic axis

Curve = Mapping[float, Level]  # x -> level


@dataclass(frozen=True)
class Axes:
    """What both axes are: names with units, and how a value of x is written."""

    x: str
    y: str
    factor: float
    x_text: Callable[[float], str]
    x_log: bool = True
    line_at: float | None = None  # a horizontal line, in the unit of y
    line_name: str = ""


def traces(results: Results, curves: Mapping[str, Curve], axes: Axes, *, runs: bool = True) -> list[Trace]:
    """A line for each environment through its means, and its runs; without them whiskers from the least to the most."""
    found: list[Trace] = []
    for place, name in enumerate(results.environments):
        curve = curves.get(name)
        if not curve:
            continue
        xs = sorted(curve)
        if runs:
            found.append(_runs(place, name, curve, axes))
        line: Trace = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": plain(name, 28),
            "meta": {"env": place},
            "x": xs,
            "y": [short(curve[x].mean / axes.factor) for x in xs],
            "text": [curve[x].n for x in xs],
            "hovertemplate": "%{y:.5g}, n %{text}",
        }
        if not runs:
            line["error_y"] = _reach([curve[x] for x in xs], axes.factor)
        found.append(line)
    return found


def _runs(place: int, name: str, curve: Curve, axes: Axes) -> Trace:
    """Every run as a point."""
    runs = [(x, cell) for x in sorted(curve) for cell in curve[x].cells]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(f"{name}, single runs"),
        "meta": {"env": place, "role": "point"},
        "showlegend": False,
        "x": [x for x, _ in runs],
        "y": [short(cell.value / axes.factor) for _, cell in runs],
        "text": [cell.round for _, cell in runs],
        "customdata": [cell.sources[0] if cell.sources else "" for _, cell in runs],
        "hovertemplate": "%{y:.5g}, round %{text}<extra></extra>",
    }


def _reach(levels: Sequence[Level], factor: float) -> dict[str, object]:
    """How far the runs of each level go from its mean."""
    return {
        "symmetric": False,
        "array": [short((level.maximum - level.mean) / factor) for level in levels],
        "arrayminus": [short((level.mean - level.minimum) / factor) for level in levels],
    }


def layout(several: Sequence[Mapping[str, Curve]], axes: Axes) -> dict[str, object]:
    """For all the curves that can be chosen: the same marks below."""
    xs = sorted({x for curves in several for curve in curves.values() for x in curve})
    shapes = []
    if axes.line_at is not None:
        at = short(axes.line_at / axes.factor)
        shapes = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at, "line": {"dash": "dash"}}]
    shown = xs[:: -(-len(xs) // MARKS)]
    marks = {"tickvals": shown, "ticktext": [plain(axes.x_text(x)) for x in shown]}
    return {
        "xaxis": {"title": {"text": plain(axes.x)}, "type": "log" if axes.x_log else "linear", **marks},
        "yaxis": {"title": {"text": plain(axes.y)}, "rangemode": "tozero"},
        "shapes": shapes,
        "annotations": [
            {"x": 1, "xref": "paper", "xanchor": "right", "y": shape["y0"], "yanchor": "bottom", "showarrow": False}
            | {"text": plain(axes.line_name)}
            for shape in shapes
        ],
    }


def svg(results: Results, curves: Mapping[str, Curve], axes: Axes, note: str = "") -> str:
    """The lines of one choice."""
    parts = panel(results, curves, axes, (0.0, 0.0, WIDTH, HEIGHT))
    parts += legend(results.environments, [name for name in results.environments if name in curves])
    if note:
        parts.append(label(RIGHT, TOP + 10, note, "tick", "end"))
    return document(WIDTH, HEIGHT, parts)


def legend(environments: Sequence[str], shown: Sequence[str], left: float = 62.0, top: float = 10.0) -> list[str]:
    """A line and a name for each environment, on one line."""
    parts, x = [], left
    for name in shown:
        place = environments.index(name)
        text = cut(name, 22)
        parts.append(
            element("path", d=f"M{num(x)} {num(top)}h18", class_=f"curve s{place}", stroke_dasharray=STROKES[place % 8])
        )
        parts += [marker(x + 9, top, place), label(x + 23, top + 4, text, "side")]
        x += 40 + 6.3 * len(text)
    return parts


def panel(
    results: Results, curves: Mapping[str, Curve], axes: Axes, box: tuple[float, float, float, float]
) -> list[str]:
    """Axes, lines, markers and runs inside a box (x, y, width, height)."""
    left, right = box[0] + LEFT, box[0] + box[2] - (WIDTH - RIGHT)
    top, bottom = box[1] + TOP, box[1] + box[3] - 40
    xs = sorted({x for curve in curves.values() for x in curve})
    values = [cell.value / axes.factor for curve in curves.values() for level in curve.values() for cell in level.cells]
    if axes.line_at is not None:
        values.append(axes.line_at / axes.factor)
    x_scale = log_around(xs, left + 8, right - 8) if axes.x_log else around(xs, left + 8, right - 8)
    steep = min(values) > 0 and max(values) / min(values) > STEEP
    y_scale = log_around(values, bottom, top) if steep else around([0.0, *values], bottom, top, zero=True)
    parts = frame(x_scale, y_scale, (left, right, top, bottom), axes, xs)
    if axes.line_at is not None:
        y = y_scale(axes.line_at / axes.factor)
        parts += [line(left, y, right, y, "limit"), label(right, y - 4, axes.line_name, "tick", "end")]
    for place, name in enumerate(results.environments):
        curve = curves.get(name, {})
        means = [(x_scale(x), y_scale(curve[x].mean / axes.factor)) for x in sorted(curve)]
        if not means:
            continue
        path = "L".join(f"{num(x)} {num(y)}" for x, y in means)
        parts.append(element("path", d=f"M{path}", class_=f"curve s{place}", stroke_dasharray=STROKES[place % 8]))
        spots = [(x_scale(x), y_scale(cell.value / axes.factor)) for x in curve for cell in curve[x].cells]
        parts += [dots(spots, f"run s{place}"), *(marker(x, y, place) for x, y in means)]
    return parts


def frame(
    x_scale: Scale, y_scale: Scale, box: tuple[float, float, float, float], axes: Axes, xs: Sequence[float]
) -> list[str]:
    """Grid lines, ticks and the names of the axes."""
    left, right, top, bottom = box
    parts = []
    for tick in y_scale.ticks(5):
        parts += [line(left, y_scale(tick), right, y_scale(tick), "grid")]
        parts += [label(left - 6, y_scale(tick) + 3.5, tick_text(tick), "tick", "end")]
    room = right - left
    every = max(1, -(-len(xs) * 46 // int(room)))
    for x in xs[::every]:
        parts.append(label(x_scale(x), bottom + 14, axes.x_text(x), "tick", "middle"))
    parts.append(line(left, bottom, right, bottom, "base"))
    parts.append(label((left + right) / 2, bottom + 32, axes.x, "axis", "middle"))
    y, x = (top + bottom) / 2, left - 48
    turned = element("text", cut_markup(axes.y), x=x, y=y, class_="axis", text_anchor="middle", transform=_turn(x, y))
    return [*parts, turned]


def cut_markup(text: str) -> str:
    """Text as the content of an element."""
    from xml.sax.saxutils import escape

    return escape(cut(text, 44))


def _turn(x: float, y: float) -> str:
    return f"rotate(-90 {num(x)} {num(y)})"


def marker(x: float, y: float, place: int) -> str:
    """The shape that stands for an environment."""
    shape = SYMBOLS[place % 8]
    if shape == "square":
        return element("rect", x=x - 3.2, y=y - 3.2, width=6.4, height=6.4, class_=f"mark f{place}")
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=3.6, class_=f"mark f{place}")
    path = {
        "diamond": "m-4.4 0 4.4-4.4 4.4 4.4-4.4 4.4z",
        "triangle-up": "m-4 3.4 4-7.4 4 7.4z",
        "hexagon": "m-4 0 2-3.5h4l2 3.5-2 3.5h-4z",
        "star": "m-4 3.5 4-8 4 8-8-5h8z",
        "cross": "m-1.4-4h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z",
    }.get(shape, "m-4-4 8 8m0-8-8 8")
    return element("path", d=f"M{num(x)} {num(y)}{path}", class_=f"mark f{place}")
