"""Lines over a size, one for each environment through its means, with every single run as a point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.records import Level
from vtax.figures import theme
from vtax.figures.figure import ENVIRONMENT, FILE, Axis, Layer, Mark, Panel, Row, Scale, Value, rows

TICKS = 14  # of the axis of sizes, every one of which is a size that was measured
Curve = Mapping[float, Level]  # size -> level
Curves = Mapping[str, Curve]  # environment -> curve


@dataclass(frozen=True)
class Sizes:
    """The axis of sizes: its title, how a size is written, and whether it is logarithmic."""

    title: str
    text: Callable[[float], str]
    log: bool = True

    def axis(self, several: Sequence[Curves]) -> Axis:
        xs = sorted({x for curves in several for curve in curves.values() for x in curve})
        shown = xs[:: -(-len(xs) // TICKS)]
        domain = (xs[0] / 1.15, xs[-1] * 1.15) if self.log else (xs[0] - _room(xs), xs[-1] + _room(xs))
        scale = Scale.LOG if self.log else Scale.LINEAR
        return Axis("size", self.title, scale, domain, tuple(shown), tuple(map(self.text, shown)), zero=False)


def _room(xs: Sequence[float]) -> float:
    return 0.05 * ((xs[-1] - xs[0]) or xs[0])


def curve_rows(
    curves: Curves, factor: float, about: Mapping[str, Value], size_text: Callable[[float], str], *, runs: bool
) -> tuple[Row, ...]:
    """A row for every mean, and one for every run; without them the means say from where to where the runs go."""
    means, single = [], []
    for name, curve in curves.items():
        for x in sorted(curve):
            level = curve[x]
            ends = {} if runs else {"low": level.minimum / factor, "high": level.maximum / factor}
            place = {**about, ENVIRONMENT: name, "size": x}
            means.append({**place, "size_text": size_text(x), "value": level.mean / factor, "n": level.n, **ends})
            for cell in level.cells if runs else ():
                file = cell.sources[0] if cell.sources else None
                single.append({**place, "value": cell.value / factor, "round": cell.round, FILE: file})
    return (*rows("mean", means), *rows("run", single))


def values_axis(several: Sequence[Curves], factor: float, title: str, at_least: Sequence[float] = ()) -> Axis:
    """The axis of the values of all curves, so that what is chosen does not change it."""
    values = [
        value / factor
        for curves in several
        for curve in curves.values()
        for level in curve.values()
        for value in (level.minimum, level.maximum)
    ]
    return theme.quantity("value", title, [*values, *(value / factor for value in at_least)], room=1.06)


def panel(y: Axis, unit: str, *, runs: bool, limit: bool = False) -> Panel:
    """The layers of lines; `limit` is a dashed line with its name, for the row "limit"."""
    about = ((ENVIRONMENT, "environment"), ("size_text", "size"))
    layers = [
        Layer(Mark.LINE, "mean", by=ENVIRONMENT),
        Layer(Mark.MEAN, "mean", by=ENVIRONMENT, hover=(*about, ("value", f"mean, {unit}"), ("n", "n"))),
    ]
    if runs:
        hover = ((ENVIRONMENT, "environment"), ("value", unit), ("round", "round"))
        layers.insert(1, Layer(Mark.RUN, "run", by=ENVIRONMENT, hover=hover))
    else:
        layers.insert(0, Layer(Mark.INTERVAL, "mean", y="low", y2="high", by=ENVIRONMENT))
    if limit:
        layers.append(Layer(Mark.LIMIT, "limit", y="value"))
        layers.append(Layer(Mark.TEXT_ABOVE, "limit", x="size", text="limit_text"))
    return Panel(tuple(layers), y)
