"""How long every copy took, by round."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import ENVIRONMENT, Axis, Figure, Layer, Mark, Panel, rows

KIND = "times of copies"


def figures(entry: EntryData) -> Iterator[Figure]:
    """A line for each environment."""
    points = [
        {ENVIRONMENT: trial.environment, "round": float(trial.round), "seconds": row[0]}
        for trial in entry.trials
        for series in entry.series(trial, "copy")
        for row in series.rows
    ]
    if points:
        panel = Panel((Layer(Mark.LINE, "copy", by=ENVIRONMENT),), Axis("seconds", "s"))
        yield Figure(
            name=f"{entry.name}-copies",
            kind=KIND,
            title="Times of copies (s)",
            alt=f"Times of {len(points)} copies by round. The table holds the mean rate.",
            data=rows("copy", points),
            panels=(panel,),
            x=Axis("round", "round"),
            environments=entry.environments,
        )


FIGURES = (ToolFigures("dd", figures, kinds=(KIND,)),)
