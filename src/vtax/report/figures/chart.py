"""A figure of the page: drawn as SVG already, and the same numbers for the interactive one that may replace it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from vtax.report.figures.svg import Scale, cut, tick_text
from vtax.units import scale_of

DIGITS = 5  # significant, of every number that a figure holds
BINARY = {"k": 1e3 / 2**10, "M": 1e6 / 2**20, "G": 1e9 / 2**30, "T": 1e12 / 2**40}
Trace = dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """`live` is what plotly draws: traces, a layout, the unit that may be switched, lists to choose from.

    `alt` says in words what the figure shows. `anchor` is its id in the page.
    """

    anchor: str
    title: str
    alt: str
    svg: str
    traces: tuple[Trace, ...] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    caption: str = ""
    unit: Mapping[str, Any] | None = None
    choices: tuple[Mapping[str, Any], ...] = ()
    height: int = 320
    wide: bool = False

    def live(self) -> dict[str, Any]:
        """What the page's script reads."""
        found: dict[str, Any] = {"data": self.traces, "layout": self.layout, "height": self.height}
        if self.unit is not None:
            found["unit"] = self.unit
        if self.choices:
            found["choices"] = self.choices
        return found


def short(value: float) -> float:
    """A number with as many digits as a figure can show."""
    return float(f"{value:.{DIGITS}g}")


def plain(text: str, length: int = 60) -> str:
    """Text that plotly shows as it is, cut to a length: it would take some tags and entities for markup."""
    return escape(cut(text, length), quote=False)


def log_marks(scale: Scale, most: int = 6) -> dict[str, Any]:
    """A logarithmic axis of a live figure with the drawing's marks: its own would be a small 2 and 5 between powers."""
    ticks = scale.ticks(most)
    return {"type": "log", "tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}


def slug(text: str) -> str:
    """Text as part of an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def switchable(axes: str, unit: str, factor: float, text: str) -> Mapping[str, Any] | None:
    """How a unit of bytes changes from decimal to binary prefixes: `GB/s` to `GiB/s`; None for other units."""
    if not unit.startswith("byte") or text[:1] not in BINARY or factor == 1.0:
        return None
    return {"axes": axes, "text": text, "binary": f"{text[0].upper()}i{text[1:]}", "factor": BINARY[text[0]]}


def choice(name: str, options: Sequence[tuple[str, Sequence[int]]], first: int = 0) -> dict[str, Any]:
    """A list to choose from: each option shows the traces at these places, of all that any option names."""
    return {"label": name, "options": [{"name": text, "traces": list(places)} for text, places in options], "at": first}


def scaled(magnitude: float, unit: str) -> tuple[float, str]:
    """The factor and unit in which a figure shows values of this size; plain numbers have the unit 1."""
    factor, text = scale_of(magnitude, unit)
    return factor, text or "1"
