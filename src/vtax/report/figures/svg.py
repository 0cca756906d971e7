"""A small writer of SVG for figures inside a page: text that is always escaped, axes, points in few bytes.

Colours come from the page's style sheet, so that a figure follows light, dark and print.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LETTER = 6.2  # width of a letter at 11 px, about


def clean(text: str) -> str:
    """Text that XML can hold, on one line."""
    return CONTROL.sub("\ufffd", text).replace("\n", " ").replace("\r", " ")


def cut(text: str, length: int) -> str:
    """Clean text of at most `length` letters."""
    whole = clean(text)
    return whole if len(whole) <= length else whole[: max(1, length - 1)] + "…"


def num(value: float) -> str:
    """A coordinate to a tenth."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def element(tag: str, content: str = "", **attributes: str | float) -> str:
    """An element; `content` is markup already, attributes are escaped. `stroke_width` becomes stroke-width."""
    words = "".join(f" {_name(key)}={quoteattr(_value(value))}" for key, value in attributes.items() if value != "")
    return f"<{tag}{words}>{content}</{tag}>" if content else f"<{tag}{words}/>"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return clean(value) if isinstance(value, str) else num(value)


def label(x: float, y: float, words: str, kind: str = "", anchor: str = "") -> str:
    """Text at a place; `kind` is a class of the style sheet, `anchor` middle or end."""
    return element("text", escape(clean(words)), x=x, y=y, class_=kind, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    return element("path", d=f"M{num(x1)} {num(y1)}L{num(x2)} {num(y2)}", class_=kind)


def rect(x: float, y: float, width: float, height: float, kind: str = "", title: str = "") -> str:
    told = f"<title>{escape(clean(title))}</title>" if title else ""
    return element("rect", told, x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=kind)


def dots(places: Iterable[tuple[float, float]], kind: str) -> str:
    """Many round points as one path, about ten bytes each."""
    path = "".join(f"M{num(x)} {num(y)}h0" for x, y in places)
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def polyline(places: Sequence[tuple[float, float]], kind: str) -> str:
    path = "L".join(f"{num(x)} {num(y)}" for x, y in places)
    return f'<path class="{kind}" d="M{path}"/>' if places else ""


def document(width: float, height: float, parts: Iterable[str], kind: str = "") -> str:
    """A whole figure. It has no text for a screen reader: the page gives that to the place that holds it."""
    return element(
        "svg",
        "".join(parts),
        class_=f"static {kind}".strip(),
        viewBox=f"0 0 {num(width)} {num(height)}",
        aria_hidden="true",
        focusable="false",
    )


@dataclass(frozen=True)
class Scale:
    """From values to places: `low` lands on `start`, `high` on `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * self.share(value)

    def share(self, value: float) -> float:
        """0 at `low`, 1 at `high`."""
        if self.logarithmic:
            return math.log(value / self.low) / (math.log(self.high / self.low) or 1.0)
        return (value - self.low) / ((self.high - self.low) or 1.0)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values between `low` and `high`."""
        return log_ticks(self.low, self.high, most) if self.logarithmic else linear_ticks(self.low, self.high, most)


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
    """`2.5`, `1,000`, `0.001`: as short as it can be."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:,.6g}"


def around(values: Sequence[float], start: float, end: float, *, zero: bool = False, room: float = 0.05) -> Scale:
    """A linear scale around values with some room, or from zero."""
    low, high = min(values), max(values)
    spread = (high - low) or abs(high) or 1.0
    return Scale(0.0 if zero and low >= 0 else low - room * spread, high + room * spread, start, end)


def log_around(values: Sequence[float], start: float, end: float, room: float = 0.04) -> Scale:
    """A logarithmic scale around values above zero, with some room."""
    low, high = min(values), max(values)
    factor = (high / low) ** room if high > low else 1.25
    return Scale(low / factor, high * factor, start, end, logarithmic=True)
