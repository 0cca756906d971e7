"""A metric over a parameter that a study varies: a line for each environment, and a choice of another parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.figures import lines, theme
from vtax.figures.figure import Choice, Figure, rows
from vtax.figures.lines import Curves, Sizes
from vtax.units import format_quantity

KIND = "metric over a parameter"
OPTION = "option"  # the field of what is chosen


@dataclass(frozen=True)
class Options:
    """What can be chosen: the curves of each option, under the `label` of the choice; "" where there is nothing to
    choose, and one option."""

    label: str
    curves: Mapping[str, Curves]
    first: str


@dataclass(frozen=True)
class Words:
    """What a figure is called and what it says: see `Figure`."""

    name: str
    kind: str
    title: str
    alt: str
    caption: str


def sweep(
    words: Words,
    environments: tuple[str, ...],
    sizes: Sizes,
    options: Options,
    magnitude: float,
    unit: str,
    *,
    direction: str = "higher is better",
    peak: Sequence[float] = (),
) -> Figure:
    """A line for each environment over `sizes`. `magnitude` is the largest value, in `unit`; `peak` are values that
    nothing can exceed, drawn as lines."""
    factor, shown = theme.scaled(magnitude, unit)
    several = list(options.curves.values())
    data = [
        row
        for option, curves in options.curves.items()
        for row in lines.curve_rows(curves, factor, {OPTION: option}, sizes.text, runs=True)
    ]
    x = sizes.axis(several)
    middle = sum(x.domain or (0.0, 0.0)) / 2
    for value in peak:
        text = f"theoretical peak {format_quantity(value, unit)}"
        data += rows("limit", [{"value": value / factor, "size": middle, "limit_text": text}])
    y = lines.values_axis(several, factor, f"{shown}, {direction}", peak)
    choice = Choice(OPTION, options.label, tuple(options.curves), options.first, still=4)
    return Figure(
        name=words.name,
        kind=words.kind,
        title=words.title,
        alt=words.alt,
        caption=words.caption,
        data=tuple(data),
        panels=(lines.panel(y, shown, runs=True, limit=bool(peak)),),
        x=x,
        environments=environments,
        choices=(choice,) if options.label else (),
        wide=len(options.curves) > 1,
    )
