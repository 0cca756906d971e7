"""Figures in a terminal: letters on a line, from the same description as everywhere else."""

from __future__ import annotations

from vtax.figures import theme
from vtax.figures.figure import ENVIRONMENT, Figure, Medium, Row, Value, demand
from vtax.figures.intervals import ARROWS, HIGH, LOW, RATIO, ROW

LETTERS = dict(zip(ARROWS, "<>", strict=True))


def strips(figure: Figure, width: int) -> list[str]:
    """A line of letters for each ratio: `--o--` around it, `|` at one, arrows beyond the ends of the axis, one instead
    of the `o` where the ratio itself is beyond. Raises ValueError for a figure that is not for a terminal."""
    demand(figure, Medium.TERMINAL)
    known = {_key(row): row for row in figure.of("interval")}
    beyond = {(_key(row), row["arrow"]) for row in figure.of("beyond")}
    return [_strip(figure, row, known.get(_key(row)), beyond, width) for row in figure.of("ratio")]


def _key(row: Row) -> tuple[Value, Value]:
    return row[ROW], row[ENVIRONMENT]


def _strip(
    figure: Figure, ratio: Row, interval: Row | None, beyond: set[tuple[tuple[Value, Value], Value]], width: int
) -> str:
    assert figure.x.domain is not None
    domain = figure.x.domain

    def place(row: Row, field: str) -> int:
        share = theme.share(float(row[field] or 0.0), domain, log=True)
        return min(width - 1, max(0, round(share * (width - 1))))

    one = place({RATIO: 1.0}, RATIO)
    line = [" "] * width
    line[one] = "|"
    if interval is not None:
        for at in range(place(interval, LOW), place(interval, HIGH) + 1):
            line[at] = "-" if at != one else "|"
    for arrow, end in zip(ARROWS, (0, -1), strict=True):
        if (_key(ratio), arrow) in beyond:
            line[end] = LETTERS[arrow]
    line[place(ratio, RATIO)] = LETTERS.get(str(ratio.get("beyond", "")), "o")
    return "".join(line)
