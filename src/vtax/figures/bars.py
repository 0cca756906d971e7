"""Bars: the mean of every environment, and every single run as a point on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.figures import theme
from vtax.figures.figure import ENVIRONMENT, FILE, Axis, Figure, Layer, Mark, Panel, Row, Scale, rows, switchable
from vtax.model.metric import Direction, Kind
from vtax.units import format_number

KIND = "bars"
PERCENT = (0.01, "%")  # in which shares are drawn, from zero
ROOM = 1.24  # of the axis, so that means can be written at its end
MOST_ROWS = 16  # categories that the page draws; its table has all of them
SPOKEN = 8  # means that the description reads out
NAME = "name"


@dataclass(frozen=True)
class Topic:
    """Series of one unit: a row for each, a bar for each environment in it."""

    title: str
    unit: str
    categories: tuple[tuple[str, Series], ...]
    better: Direction


def bars(
    levels: Mapping[Series, Mapping[str, Level]], environments: tuple[str, ...], topic: Topic, name: str
) -> Figure:
    """The figure of one topic. Values that span decades get a logarithmic axis, on which bars begin at its left end."""
    drawn = [
        (category, one, levels[series][one])
        for category, series in _different(topic.categories)
        for one in environments
        if one in levels[series]
    ]
    values = [cell.value for _, _, level in drawn for cell in level.cells]
    values += [level.mean + (level.sd or 0.0) for _, _, level in drawn]
    share = {level.kind for _, _, level in drawn} == {Kind.PROPORTION}
    factor, unit = PERCENT if share else theme.scaled(max(map(abs, values)), topic.unit)
    title = _axis_title(topic, unit)
    x = theme.quantity("value", title, [v / factor for v in values], log=False if share else None, room=ROOM)
    categories = tuple(dict.fromkeys(category for category, _, _ in drawn))
    several = len(categories) > 1
    y = Axis(NAME, scale=Scale.CATEGORY, values=categories, offset=ENVIRONMENT)
    if not several:
        y = Axis(ENVIRONMENT, scale=Scale.CATEGORY, values=tuple(one for _, one, _ in drawn))
    return Figure(
        name=name,
        kind=KIND,
        title=topic.title,
        alt=_alt(topic, drawn, factor, unit),
        data=(*_means(drawn, factor), *_runs(drawn, factor), *_spreads(drawn, factor, x)),
        marks="Bars are means over rounds, points single rounds, whiskers one sample standard deviation to each side",
        panels=(Panel(_layers(unit), y),),
        x=x,
        environments=environments,
        unit=switchable(("value", "low", "high"), topic.unit, factor, unit),
        most_rows=MOST_ROWS,
    )


def _different(categories: Sequence[tuple[str, Series]]) -> list[tuple[str, Series]]:
    """The categories with texts that differ."""
    seen: dict[str, int] = {}
    found = []
    for text, series in categories:
        seen[text] = seen.get(text, 0) + 1
        found.append((text if seen[text] == 1 else f"{text} ({seen[text]})", series))
    return found


def _layers(unit: str) -> tuple[Layer, ...]:
    about = ((NAME, "metric"), (ENVIRONMENT, "environment"))
    return (
        Layer(Mark.BAR, "mean", by=ENVIRONMENT, hover=(*about, ("value", f"mean, {unit}"), ("n", "n"))),
        Layer(Mark.INTERVAL, "spread", x="low", x2="high"),
        Layer(Mark.RUN, "run", hover=(*about, ("value", unit), ("round", "round"))),
        Layer(Mark.TEXT_END, "mean", text="value_text"),
    )


def _means(drawn: Sequence[tuple[str, str, Level]], factor: float) -> tuple[Row, ...]:
    return rows(
        "mean",
        [
            {NAME: category, ENVIRONMENT: one, "value": level.mean / factor, "n": level.n}
            | {"value_text": format_number(level.mean / factor)}
            for category, one, level in drawn
        ],
    )


def _runs(drawn: Sequence[tuple[str, str, Level]], factor: float) -> tuple[Row, ...]:
    return rows(
        "run",
        [
            {NAME: category, ENVIRONMENT: one, "value": cell.value / factor, "round": cell.round}
            | {FILE: cell.sources[0] if cell.sources else None}
            for category, one, level in drawn
            for cell in level.cells
        ],
    )


def _spreads(drawn: Sequence[tuple[str, str, Level]], factor: float, x: Axis) -> tuple[Row, ...]:
    """One standard deviation to each side of the means, no further than the axis."""
    least = x.domain[0] if x.domain else 0.0
    return rows(
        "spread",
        [
            {NAME: category, ENVIRONMENT: one}
            | {"low": max(least, (level.mean - level.sd) / factor), "high": (level.mean + level.sd) / factor}
            for category, one, level in drawn
            if level.sd
        ],
    )


def _axis_title(topic: Topic, unit: str) -> str:
    """`Gbit/s, higher is better`; a plain number is a count."""
    name = "count" if unit == "1" else unit
    return name if topic.better is Direction.NONE else f"{name}, {topic.better}"


def _alt(topic: Topic, drawn: Sequence[tuple[str, str, Level]], factor: float, unit: str) -> str:
    """The figure in words: the means, as many as one listens to."""
    spoken = [
        f"{category} {one} {format_number(level.mean / factor)}".strip() for category, one, level in drawn[:SPOKEN]
    ]
    more = f" and {len(drawn) - SPOKEN} more" if len(drawn) > SPOKEN else ""
    return f"Bars, {topic.title}, means in {unit}: {'; '.join(spoken)}{more}. The table holds all of them."
