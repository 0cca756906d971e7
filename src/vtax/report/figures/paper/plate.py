"""A figure for a paper: one column wide, at most a page high, as SVG, PDF or PNG.

The same data give the same file, byte for byte: no dates, no random identifiers.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from vtax.report.figures.palette import DASHES, ENVIRONMENTS
from vtax.report.figures.svg import clean, cut, linear_ticks, log_ticks

FORMATS = ("svg", "pdf", "png")
WIDTH_IN = 3.4  # one column of a paper in two columns
HIGHEST_IN = 9.0  # with its caption it fits a page
LINE_IN = 0.105  # of text
LETTER_IN = 0.06  # about, of a tick's text
SIZE_PT = 6.5
ACROSS = 62  # letters in a line over the whole width
MARKS = ("o", "s", "D", "^", "P", "X", "*", "h")  # the page's, in matplotlib's words
STROKES = {"solid": "-", "dash": (0, (5, 2)), "dot": ":", "dashdot": "-."} | {
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 3, 2, 3)),
}
STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": SIZE_PT,
    "axes.linewidth": 0.5,
    "axes.titlesize": SIZE_PT,
    "axes.labelsize": SIZE_PT,
    "legend.fontsize": SIZE_PT,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.2,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "vtax",
    "svg.fonttype": "path",  # a paper's tools need not have the font
    "pdf.fonttype": 42,
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Plate:
    """One figure: its name, without an ending, what its caption says, and what draws it."""

    name: str
    caption: str
    sketch: Callable[[], Figure]


def draw(plate: Plate, format: str) -> bytes:
    """The file of a figure in one of `FORMATS`."""
    with matplotlib.rc_context(STYLE):
        buffer = io.BytesIO()
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[format]
        plate.sketch().savefig(buffer, format=format, dpi=600, metadata=metadata)
    return buffer.getvalue()


def sheet(height_in: float) -> Figure:
    """An empty figure, one column wide."""
    layout = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02)
    figure = Figure(figsize=(WIDTH_IN, min(HIGHEST_IN, height_in)), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def wrapped(text: str, letters: int = ACROSS) -> str:
    """Clean text in lines of so many letters."""
    return "\n".join(textwrap.wrap(clean(text), letters)) or " "


def title(figure: Figure, text: str) -> None:
    figure.suptitle(text, fontsize=SIZE_PT, fontweight="bold", x=0.01, ha="left")


def key(figure: Figure, handles: Sequence[Any], head: str = "") -> None:
    """What marks and colours mean, below the figure."""
    figure.legend(
        handles=list(handles),
        loc="outside lower left",
        ncols=columns_of(handles),
        title=head or None,
        title_fontsize=SIZE_PT,
        alignment="left",
        borderpad=0,
    )


def columns_of(handles: Sequence[Any]) -> int:
    """How many columns of a key fit beside each other."""
    widest = max((len(str(handle.get_label())) for handle in handles), default=1)
    return max(1, min(len(handles), ACROSS // (widest + 5)))


def name_of(environment: str) -> str:
    """An environment in a key."""
    return cut(environment, 28)


def look(place: int) -> tuple[str, str, Any]:
    """Colour, mark and stroke of the environment at this place, the same in every figure."""
    return ENVIRONMENTS[place % len(ENVIRONMENTS)], MARKS[place % len(MARKS)], STROKES[DASHES[place % len(DASHES)]]


def tick_text(value: float) -> str:
    """`2.5`, `20,000`, `1e6`: as short as it can be."""
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e5:
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:,.6g}"


def make_log(axis: Axis) -> None:
    """A logarithmic axis, with short texts from the beginning: the layout takes their room."""
    axes: Axes = axis.axes
    (axes.set_xscale if isinstance(axis, XAxis) else axes.set_yscale)("log")
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    axis.set_minor_formatter(NullFormatter())


def set_ticks(axis: Axis, *, always: Sequence[float] = (), text: Callable[[float], str] = tick_text) -> None:
    """Round ticks whose texts stand apart from each other; those in `always` before others.

    The layout must be known, so this comes after everything else is drawn.
    """
    low, high = sorted(axis.get_view_interval())
    logarithmic = axis.get_scale() == "log"
    for most in (7, 5, 4, 3, 2):
        ticks = log_ticks(low, high, most) if logarithmic else linear_ticks(low, high, most)
        if len(apart(axis, ticks, list(map(text, ticks)))) == len(ticks):
            break
    several = [*always, *(tick for tick in ticks if tick not in always)]
    kept = sorted(several[i] for i in apart(axis, several, list(map(text, several))))
    put_ticks(axis, kept, list(map(text, kept)))


def put_ticks(axis: Axis, places: Sequence[float], texts: Sequence[str]) -> None:
    """Exactly these ticks, no others between them."""
    axis.set_ticks(list(places), labels=[clean(text) for text in texts])
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def apart(axis: Axis, places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """Which ticks may stand, taken in this order, when no two texts may touch."""
    axes: Axes = axis.axes
    figure = axes.get_figure(root=True)
    assert figure is not None
    across = isinstance(axis, XAxis)
    kept: list[tuple[int, float, float]] = []
    for i, (place, text) in enumerate(zip(places, texts, strict=True)):
        spot = axes.transData.transform((place, 1.0) if across else (1.0, place))[0 if across else 1] / figure.dpi
        reach = (LETTER_IN * (len(text) + 1) if across else LINE_IN) / 2
        if all(abs(spot - other) >= reach + wide for _, other, wide in kept):
            kept.append((i, spot, reach))
    return sorted(i for i, _, _ in kept)
