"""What stands for an environment and for a verdict in every figure: a colour, and a shape for those who see no colour.

Colours are those of Okabe and Ito. Bluish green and vermillion are kept for verdicts, the others for environments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ENVIRONMENTS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#8C6D1F", "#7F7F7F", "#3B3B98", "#B0B000")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")  # plotly's words
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
STROKES = ("", "7 3", "2 2", "7 3 2 3", "11 4", "11 4 2 4", "", "7 3")  # the same for SVG
PLACES = len(ENVIRONMENTS)

# matplotlib's cividis, which reads the same with any kind of colour vision and in grey, at 16 even steps
SEQUENTIAL = (
    "#00224e",
    "#002d6c",
    "#1f386f",
    "#31446b",
    "#414f6b",
    "#4f5a6c",
    "#5c656f",
    "#6a7173",
    "#797c77",
    "#888878",
    "#989575",
    "#a8a270",
    "#b9af68",
    "#cbbd5c",
    "#decb4b",
    "#fee838",
)


class Mark(NamedTuple):
    """How a verdict looks: the name of its shape, and what stands for it in text."""

    shape: str
    glyph: str


MARKS = {
    "faster": Mark("up", "▲"),
    "slower": Mark("down", "▼"),
    "equivalent": Mark("square", "■"),
    "trivial": Mark("diamond", "◆"),
    "unadjusted": Mark("ring", "◇"),
    "inconclusive": Mark("ring", "○"),
    "not comparable": Mark("cross", "✕"),
}
FACTS = {"equal": "=", "different": "≠", "unknown": "?", "partly unknown": "?"}  # what facts of environments are
OTHER = Mark("dot", "·")  # no verdict: too few rounds, or nothing to compare


def mark_of(verdict: str) -> Mark:
    """The mark of a verdict, or of a word about facts; one that is not known here has the mark of no verdict."""
    return Mark(OTHER.shape, FACTS[verdict]) if verdict in FACTS else MARKS.get(verdict, OTHER)


def shade(share: float) -> str:
    """The colour for a share from 0 to 1 of the sequential scale."""
    return SEQUENTIAL[shade_class(share)]


def shade_class(share: float) -> int:
    return min(len(SEQUENTIAL) - 1, max(0, int(share * len(SEQUENTIAL))))


def plotly_scale() -> list[list[float | str]]:
    """The same scale in plotly's words."""
    last = len(SEQUENTIAL) - 1
    return [[round(i / last, 4), colour] for i, colour in enumerate(SEQUENTIAL)]


def variables(environments: Sequence[str]) -> str:
    """The colours of the environments as CSS variables."""
    return "".join(f"--e{i}:{ENVIRONMENTS[i % PLACES]};" for i in range(len(environments)))
