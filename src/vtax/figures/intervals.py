"""Ratios with their intervals: the forest plot, on paper and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vtax.figures import theme
from vtax.figures.figure import DRAWN, ENVIRONMENT, Axis, Figure, Layer, Mark, Medium, Panel, Row, Scale, Value, rows

KIND = "ratios"
ROW, RATIO, LOW, HIGH = "name", "ratio", "low", "high"
NEAR = 0.07  # share of the axis between 1 and other ticks
ARROWS = ("‹", "›")  # an interval goes on beyond the axis


@dataclass(frozen=True)
class Ratio:
    """One comparison with the baseline. `low` and `high` are absent where it has no interval."""

    name: str
    environment: str
    ratio: float
    low: float | None
    high: float | None
    verdict: str


def intervals(
    name: str,
    several: Sequence[Ratio],
    environments: tuple[str, ...],
    baseline: str,
    margin: float | None = None,
    domain: tuple[float, float] | None = None,
    caption: str = "",
) -> Figure:
    """A row for each name, in it an interval for each environment; the shaded band is the margin of equivalence."""
    ends = [end for one in several for end in (one.low, one.high) if end is not None]
    low, high = domain or theme.ratio_domain([one.ratio for one in several], ends, margin or 0.0)
    band = rows("band", [{LOW: 1 / (1 + margin), HIGH: 1 + margin}] if margin is not None else [])
    names = tuple(dict.fromkeys(one.name for one in several))
    layers = (
        Layer(Mark.BAND, "band", x=LOW, x2=HIGH),
        Layer(Mark.REFERENCE, "one", x=RATIO),
        Layer(Mark.INTERVAL, "interval", x=LOW, x2=HIGH, by=ENVIRONMENT),
        Layer(Mark.TEXT, "beyond", text="arrow"),
        Layer(Mark.VERDICT, "ratio", by=ENVIRONMENT),
    )
    title = f"ratio to {baseline}, above 1 is better (logarithmic)"
    return Figure(
        name=name,
        kind=KIND,
        title=f"Performance relative to {baseline}",
        alt=_alt(several, baseline),
        caption=caption,
        data=(*band, *rows("one", [{RATIO: 1.0}]), *_ratios(several, low, high), *_beyond(several, low, high)),
        panels=(Panel(layers, Axis(ROW, scale=Scale.CATEGORY, values=names, offset=ENVIRONMENT)),),
        x=Axis(RATIO, title, Scale.LOG, (low, high), ratio_ticks(low, high)),
        environments=environments,
        media=frozenset({Medium.TERMINAL}) | DRAWN,
    )


def ratio_ticks(low: float, high: float) -> tuple[float, ...]:
    """The 1, and round ratios that leave room for it."""
    one = theme.share(1.0, (low, high), log=True)
    others = theme.log_ticks(low, high, 7)
    return tuple(sorted({1.0, *(t for t in others if abs(theme.share(t, (low, high), log=True) - one) > NEAR)}))


def _ratios(several: Sequence[Ratio], low: float, high: float) -> tuple[Row, ...]:
    """Points and intervals, no further than the ends of the axis."""
    points: list[dict[str, Value]] = []
    known: list[dict[str, Value]] = []
    for one in several:
        place = {ROW: one.name, ENVIRONMENT: one.environment}
        out = ARROWS[0] if one.ratio < low else ARROWS[1] if one.ratio > high else None
        points.append({**place, RATIO: min(high, max(low, one.ratio)), "verdict": one.verdict, "beyond": out})
        if one.low is not None and one.high is not None:
            known.append({**place, LOW: min(high, max(low, one.low)), HIGH: min(high, max(low, one.high))})
    return (*rows("ratio", points), *rows("interval", known))


def _beyond(several: Sequence[Ratio], low: float, high: float) -> tuple[Row, ...]:
    """An arrow at the end of the axis for each interval that goes on."""
    found = []
    for one in several:
        least, most = (one.ratio if end is None else end for end in (one.low, one.high))
        for arrow, end, out in ((ARROWS[0], low, least < low), (ARROWS[1], high, most > high)):
            if out:
                found.append({ROW: one.name, ENVIRONMENT: one.environment, RATIO: end, "arrow": arrow})
    return rows("beyond", found)


def _alt(several: Sequence[Ratio], baseline: str) -> str:
    worst = min(several, key=lambda one: one.ratio)
    best = max(several, key=lambda one: one.ratio)
    return (
        f"Ratios to {baseline} with their intervals, {len(several)} of them, from {worst.ratio:.3g} ({worst.name}, "
        f"{worst.environment}) to {best.ratio:.3g} ({best.name}, {best.environment})."
    )
