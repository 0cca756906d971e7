"""Environments that ran in software emulation: they work here, and their values say nothing about virtualization."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.estimate.summary import Series
from vtax.report.document.answer.wording import shown
from vtax.report.document.cells import level_cell, named
from vtax.report.document.groups import Group
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.document.numbers import labels_text, listed, plural, unit_for
from vtax.report.document.results import Results

NOTE = (
    "The machine has no working KVM, so these nodes ran in software emulation. Their values say what to expect on this "
    "machine, and nothing about virtualization."
)


def emulated_text(emulated: Sequence[str]) -> str:
    """`VM: works here, but emulated: not compared.`"""
    works = plural(len(emulated), "works", "work")
    return (
        f"{listed([shown(name) for name in emulated])}: {works} here, but emulated: not compared." if emulated else ""
    )


def _wanted(results: Results, series: Series) -> bool:
    return results.first(series).primary or series in results.exploratory


def emulated_table(results: Results) -> Table | None:
    """Values of primary metrics; None where nothing was emulated."""
    emulated = results.emulated
    rows: list[Row] = []
    for group in Group:
        own = [
            series
            for series, levels in results.levels.items()
            if results.group(series) is group and set(emulated) & set(levels) and _wanted(results, series)
        ]
        rows += [Row((Cell(group.shown),), heading=True)] if own else []
        for series in own:
            levels = {name: level for name, level in results.levels[series].items() if name in emulated}
            factor, unit = unit_for(levels.values())
            where = ", ".join(word for word in (series.label, labels_text(dict(series.labels))) if word)
            cells = [level_cell(levels.get(name), factor, median=False, raw=results.raw(series)) for name in emulated]
            rows.append(Row((Cell(named(series.metric, unit), where), *cells), unit=unit))
    columns = [Column(name, results.environments.index(name)) for name in emulated]
    return Table("Emulated environments", (Column("Metric"), *columns), tuple(rows), NOTE) if emulated else None
