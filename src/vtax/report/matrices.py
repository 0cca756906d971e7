"""Series over two sizes, such as iozone's file and record size, as matrices: one for each operation and node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vtax.analysis.summary import Series
from vtax.report.numbers import ABSENT, label_value, labels_text, natural, ratio_text, unit_for
from vtax.report.tables import Cell, Column, Results, Row, Table, named
from vtax.units import format_number


@dataclass(frozen=True)
class Matrix:
    """Series that differ in the two sizes `outer` (rows) and `inner` (columns) only."""

    outer: str
    inner: str
    members: tuple[Series, ...]

    def values(self, name: str) -> list[str]:
        return sorted({dict(series.labels)[name] for series in self.members}, key=natural)


def matrices(several: Sequence[Series]) -> tuple[Matrix, ...]:
    """Those of the series that form matrices: exactly two of their labels with whole numbers have several values."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Series]] = {}
    for series in several:
        rest = tuple((name, value) for name, value in series.labels if not value.isdecimal())
        found.setdefault((series.metric, rest), []).append(series)
    return tuple(matrix for members in found.values() if (matrix := _matrix(members)) is not None)


def _matrix(members: Sequence[Series]) -> Matrix | None:
    names = set.intersection(*({name for name, value in series.labels if value.isdecimal()} for series in members))
    sizes = [name for name in names if len({dict(series.labels)[name] for series in members}) > 1]
    if len(sizes) != 2:
        return None
    outer, inner = sorted(sizes, key=lambda name: ("file" not in name, name))
    places = {(dict(series.labels)[outer], dict(series.labels)[inner]) for series in members}
    return Matrix(outer, inner, tuple(members)) if len(places) == len(members) else None


def matrix_table(results: Results, matrix: Matrix) -> Table:
    """Rows: file size, and below it each environment. Columns: record size. The mean, and its ratio to the baseline."""
    first = matrix.members[0]
    factor, unit = unit_for(level for series in matrix.members for level in results.levels[series].values())
    where = {name: value for name, value in first.labels if name not in (matrix.outer, matrix.inner)}
    by_sizes = {
        (dict(series.labels)[matrix.outer], dict(series.labels)[matrix.inner]): series for series in matrix.members
    }
    columns = [Column(_title(matrix.inner))]
    columns += [Column(label_value(matrix.inner, value)) for value in matrix.values(matrix.inner)]
    rows = []
    for outer in matrix.values(matrix.outer):
        rows.append(Row((Cell(f"{_title(matrix.outer)} {label_value(matrix.outer, outer)}"),), heading=True))
        for place, environment in enumerate(results.environments):
            keys = [by_sizes.get((outer, inner)) for inner in matrix.values(matrix.inner)]
            cells = (_cell(results, series, environment, factor) for series in keys)
            rows.append(Row((Cell(environment, environment=place, raw=results.raw(first)), *cells), unit=unit))
    note = f"mean in {unit or '1'}; below it the performance relative to {results.baseline}"
    title = " · ".join(text for text in (named(first.metric, unit), labels_text(where)) if text)
    return Table(title, tuple(columns), tuple(rows), note)


def _cell(results: Results, series: Series | None, environment: str, factor: float) -> Cell:
    level = results.levels[series].get(environment) if series is not None else None
    if series is None or level is None:
        return Cell(ABSENT)
    comparison = results.comparisons.get(series, {}).get(environment)
    ratio = comparison.ratio if comparison is not None else None
    return Cell(format_number(level.mean / factor), ratio_text(ratio) if ratio is not None else "", scaled=True)


def _title(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")
