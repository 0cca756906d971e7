"""How every figure looks: colours, marks, ticks, the choice of a logarithmic axis, sizes. Each is decided only here.

Colours are those of Okabe and Ito. Bluish green and vermillion are kept for verdicts, the others for environments.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from vtax.figures.figure import Axis, Mark, Medium, Scale
from vtax.units import scale_of

DECADES = 30.0  # values further apart than this factor get a logarithmic axis
HEADROOM = 1.04  # of an axis beyond its largest value
REACH = 3.0  # intervals that end further than this factor from every ratio are cut
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# --- environments -----------------------------------------------------------------------------------------------------

ENVIRONMENTS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#8C6D1F", "#7F7F7F", "#3B3B98", "#B0B000")
ON_DARK = {0: "#3d9ad6", 6: "#8d8df0"}  # those of them that are too dark for a dark page
SHAPES = (
    *("circle", "square", "diamond", "triangle-up", "cross"),
    "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z",
    "M0,-1L.22,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.22,-.31Z",
    "M-1,0L-.5,-.87L.5,-.87L1,0L.5,.87L-.5,.87Z",
)
DASHES = ((1, 0), (7, 3), (2, 2), (7, 3, 2, 3), (11, 4), (11, 4, 2, 4), (1, 0), (7, 3))
PLACES = len(ENVIRONMENTS)


def style_sheet(environments: Sequence[str]) -> str:
    """The colours of the environments as CSS variables, in the light, in the dark and on paper."""
    light = "".join(f"--e{i}:{ENVIRONMENTS[i]};" for i in range(min(PLACES, len(environments))))
    dark = "".join(f"--e{i}:{colour};" for i, colour in ON_DARK.items() if i < len(environments))
    paper = "".join(f"--e{i}:{ENVIRONMENTS[i]};" for i in ON_DARK if i < len(environments))
    return f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}@media print{{:root{{{paper}}}}}"


# --- verdicts and steps -----------------------------------------------------------------------------------------------


class VerdictMark(NamedTuple):
    """How a verdict looks: the name of its shape, and its sign in text."""

    shape: str
    glyph: str


VERDICTS = {
    "faster": VerdictMark("up", "▲"),
    "slower": VerdictMark("down", "▼"),
    "equivalent": VerdictMark("square", "■"),
    "trivial": VerdictMark("diamond", "◆"),
    "unadjusted": VerdictMark("ring", "◇"),
    "inconclusive": VerdictMark("ring", "○"),
    "not comparable": VerdictMark("cross", "✕"),
}
FACTS = {"equal": "=", "different": "≠", "unknown": "?", "partly unknown": "?"}  # what facts of environments are
OTHER = VerdictMark("dot", "·")  # no verdict: too few rounds, or nothing to compare
RING = "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0ZM.6,0A.6,.6,0,1,0,-.6,0A.6,.6,0,1,0,.6,0Z"  # its hole turns the other way
OPEN_DIAMOND = "M0,-1.2L1.2,0L0,1.2L-1.2,0ZM0,-.6L-.6,0L0,.6L.6,0Z"
OUTLINES = {  # the shape of a verdict, as a word of Vega's or a path
    **{"▲": "triangle-up", "▼": "triangle-down", "■": "square", "◆": "diamond", "·": "circle"},
    **{"◇": OPEN_DIAMOND, "○": RING, "✕": SHAPES[5]},
}


def mark_of(verdict: str) -> VerdictMark:
    """The mark of a verdict, or of a word about facts; one that is not known here has the mark of no verdict."""
    if verdict in FACTS:
        return VerdictMark(OTHER.shape, FACTS[verdict])
    return VERDICTS.get(verdict, OTHER)


# --- numbers as colours -----------------------------------------------------------------------------------------------

# cividis, which reads the same with any kind of colour vision and in grey, at 16 even steps
SEQUENTIAL = (
    *("#00224e", "#002d6c", "#1f386f", "#31446b", "#414f6b", "#4f5a6c", "#5c656f", "#6a7173"),
    *("#797c77", "#888878", "#989575", "#a8a270", "#b9af68", "#cbbd5c", "#decb4b", "#fee838"),
)
LIGHT_INK_BELOW = 0.55  # of the scale: white text is read on darker colours, black on lighter


# --- axes -------------------------------------------------------------------------------------------------------------


def logarithmic(values: Sequence[float]) -> bool:
    """Whether values need a logarithmic axis."""
    return min(values) > 0 and max(values) / min(values) > DECADES


def quantity(
    field: str,
    title: str,
    values: Sequence[float],
    *,
    zero: bool = True,
    log: bool | None = None,
    room: float = HEADROOM,
) -> Axis:
    """The axis of a quantity: logarithmic where its values span decades, else from zero. `room` is left beyond them."""
    if logarithmic(values) if log is None else log:
        low, high = min(values), max(values)
        factor = (high / low) ** 0.04 if high > low else 1.25
        domain = (low / factor, high * factor * (high / low) ** (room - 1))
        return Axis(field, f"{title} (logarithmic)", Scale.LOG, domain, tuple(log_ticks(*domain)))
    return Axis(field, title, Scale.LINEAR, linear_domain(values, zero=zero, room=room))


def linear_domain(values: Sequence[float], *, zero: bool, room: float = HEADROOM) -> tuple[float, float]:
    low, high = min(values), max(values)
    spread = (high - low) or abs(high) or 1.0
    if zero and low >= 0:
        return 0.0, (high or 1.0) * room
    return low - 0.05 * spread, high + (room - 1 + 0.01) * spread


def ratio_domain(ratios: Sequence[float], ends: Sequence[float], margin: float) -> tuple[float, float]:
    """Of a logarithmic axis of ratios: around all of them, and around their intervals as far as `REACH`."""
    least, most = min(ratios) / REACH, max(ratios) * REACH
    seen = [*ratios, 1 / (1 + 2 * margin), 1 + 2 * margin, *(min(max(end, least), most) for end in ends)]
    room = (max(seen) / min(seen)) ** 0.03
    return min(seen) / room, max(seen) * room


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, at most `most` of them."""
    if not high > low:
        return [low]
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * step for step in STEPS if power * step >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten; with 2 and 5 between them where there is room; round steps where there is less than a decade."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [f * 10.0**p for p in range(first, last + 1) for f in factors]
        found = [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(found) <= most:
            break
    if len(found) < 2:
        return [tick for tick in linear_ticks(low, high, most) if tick > 0]
    return found[:: math.ceil(len(found) / most)]


def tick_text(value: float) -> str:
    """`2.5`, `1,000`, `0.001`, `1e7`: as short as it can be. Axes, keys and tables of every medium have the same."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return f"{value:,.6g}"


def share(value: float, domain: tuple[float, float], *, log: bool) -> float:
    """Where on an axis a value is: 0 at its beginning, 1 at its end."""
    low, high = domain
    if log:
        return math.log(value / low) / (math.log(high / low) or 1.0)
    return (value - low) / ((high - low) or 1.0)


def scaled(magnitude: float, unit: str) -> tuple[float, str]:
    """The factor and unit in which a figure shows values of this size; plain numbers have the unit 1."""
    factor, text = scale_of(magnitude, unit)
    return factor, text or "1"


# --- text -------------------------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Text that XML can hold, on one line."""
    return CONTROL.sub("\ufffd", text).replace("\n", " ").replace("\r", " ")


def cut(text: str, length: int) -> str:
    """Clean text of at most `length` letters."""
    whole = clean(text)
    return whole if len(whole) <= length else whole[: max(1, length - 1)] + "…"


def slug(text: str) -> str:
    """Text as part of an id or of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def wrapped(text: str, letters: int) -> list[str]:
    """Clean text in lines of so many letters."""
    return textwrap.wrap(clean(text), letters) or [" "]


# --- media ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What differs between the page and paper. Lengths in px, on paper in pt; `size` scales marks and strokes."""

    medium: Medium
    narrow: float
    wide: float
    font_px: float
    size: float
    ink: str
    soft: str
    paper: str
    grid: str
    band: str
    good: str
    bad: str
    link: str
    stop: str
    row: float  # height of a row
    lane: float  # of one environment in a row
    height: float  # of a quantity's axis
    letters: int  # in a line of a row's name

    def environment(self, place: int) -> str:
        """The colour of an environment. In the page it is a variable, so that it follows light, dark and print."""
        return f"var(--e{place % PLACES})" if self.medium is Medium.PAGE else ENVIRONMENTS[place % PLACES]


PAGE = Look(
    *(Medium.PAGE, 440, 880, 12, 1.0),  # the page writes 11 px: room for its reader's fonts, some of which are wide
    *("var(--ink)", "var(--soft)", "var(--paper)", "var(--grid)", "var(--band)"),
    *("var(--mark-good)", "var(--mark-bad)", "var(--link)", "var(--stop)"),
    *(18, 13, 185, 30),
)
PAPER = Look(  # one column of a paper in two columns: 3.4 in, lengths in pt
    *(Medium.PAPER, 244.8, 244.8, 6.5, 0.46),
    *("#000000", "#444444", "#ffffff", "#dddddd", "#e5e5e5", "#009E73", "#D55E00", "#0072B2", "#a3122a"),
    *(9, 6, 84, 33),
)
PAPER_HEIGHT = 9.0 * 72  # with its caption it fits a page

SIZES: Mapping[Mark, Mapping[str, Any]] = {  # areas and strokes in the page
    Mark.BAR: {"type": "bar"},
    Mark.PALE_BAR: {"type": "bar", "opacity": 0.45},
    Mark.BOX: {"type": "bar"},
    Mark.RUN: {"type": "point", "filled": True, "size": 15, "opacity": 0.55},
    Mark.MEAN: {"type": "point", "filled": True, "size": 42, "strokeWidth": 0.7, "opacity": 1},
    Mark.VERDICT: {"type": "point", "filled": True, "size": 50, "opacity": 1},
    Mark.LINE: {"type": "line", "strokeWidth": 1.8},
    Mark.THIN_LINE: {"type": "line", "strokeWidth": 1.1, "opacity": 0.75},
    Mark.STEP: {"type": "line", "strokeWidth": 1.8, "interpolate": "step-after"},
    Mark.INTERVAL: {"type": "rule", "strokeWidth": 1.5},
    Mark.MEDIAN: {"type": "tick", "thickness": 2, "opacity": 1},
    Mark.BAND: {"type": "rect"},
    Mark.LIMIT: {"type": "rule", "strokeWidth": 1.2, "strokeDash": [5, 4]},
    Mark.REFERENCE: {"type": "rule", "strokeWidth": 1},
    Mark.CELL: {"type": "rect"},
    Mark.TEXT: {"type": "text"},
    Mark.TEXT_END: {"type": "text", "align": "right", "dx": -2},
    Mark.TEXT_ABOVE: {"type": "text", "baseline": "bottom", "dy": -3, "lineBreak": "\n"},
    Mark.TEXT_RIGHT: {"type": "text", "align": "left", "dx": 2},
    Mark.FAILURE: {"type": "text", "fontWeight": "bold"},
}


def mark(kind: Mark, look: Look, *, coloured: bool) -> dict[str, Any]:
    """How a mark looks; `coloured` ones take their colour from the data."""
    found = dict(SIZES[kind])
    for key, power in (("size", 2), ("strokeWidth", 1), ("thickness", 1)):
        if key in found:
            found[key] = round(found[key] * look.size**power, 2)
    if kind is Mark.MEAN:
        found["stroke"] = look.paper
    if coloured:
        return found
    if kind is Mark.RUN:  # on a bar
        return found | {"fill": look.paper, "stroke": look.ink, "strokeWidth": look.size, "opacity": 1}
    soft = dict.fromkeys((Mark.INTERVAL, Mark.REFERENCE, Mark.THIN_LINE), look.soft)
    colours = {Mark.BAND: look.band, Mark.FAILURE: look.stop} | soft
    return found | {"color": colours.get(kind, look.ink)}


def config(look: Look) -> dict[str, Any]:
    """What Vega-Lite calls a configuration: fonts, axes and keys of a medium."""
    text = {"labelFontSize": look.font_px, "titleFontSize": look.font_px, "labelColor": look.soft}
    return {
        "font": "sans-serif",
        "background": None,
        "padding": 0.3 * look.font_px,
        "view": {"stroke": None},
        "axis": text
        | {
            "titleColor": look.soft,
            "titleFontWeight": "normal",
            "titleLimit": look.narrow,
            "gridColor": look.grid,
            "domainColor": look.soft,
            "tickColor": look.soft,
            "tickSize": 4 * look.size,
            "labelPadding": 3 * look.size,
            "titlePadding": 5 * look.size,
            "domainWidth": look.size,
            "tickWidth": look.size,
            "gridWidth": look.size,
            "labelFlush": False,
            "labelLineHeight": look.font_px * 1.15,
        },
        "legend": text
        | {
            "labelColor": look.ink,
            "titleColor": look.soft,
            "titleFontWeight": "normal",
            "orient": "top",
            "direction": "horizontal",
            "symbolSize": 50 * look.size**2,
            "symbolOpacity": 1,
            "symbolDash": [1, 0],
            "symbolStrokeWidth": 1.6 * look.size,
            "labelLimit": look.narrow / 2,
            "offset": 6 * look.size,
            "columnPadding": 12 * look.size,
        },
        "header": {
            "labelFontSize": look.font_px,
            "labelFontWeight": 600,
            "labelColor": look.ink,
            "labelAnchor": "start",
            "labelPadding": 3 * look.size,
        },
        "text": {"fontSize": look.font_px},
    }
