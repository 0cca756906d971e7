"""Series over two sizes, or over a size and a label whose values a tool has put in order, as matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Comparison, Verdict
from vtax.figures.theme import mark_of
from vtax.report.document.cells import against, named
from vtax.report.document.model import Cell, Column, Number, Row, Table
from vtax.report.document.numbers import (
    ABSENT,
    interval_text,
    label_value,
    labels_text,
    mean_sd,
    natural,
    plural,
    ratio_text,
    unit_for,
)
from vtax.report.document.results import Results
from vtax.tools import tool_of


@dataclass(frozen=True)
class Matrix:
    """Series that differ in the labels `outer` (rows) and `inner` (columns) only; `inner` is a size. `order` has the
    values of `outer` in the order of their tool; () for sizes."""

    outer: str
    inner: str
    members: tuple[Series, ...]
    order: tuple[str, ...] = ()

    @property
    def of_sizes(self) -> bool:
        return not self.order

    def values(self, name: str) -> list[str]:
        """Sizes from small to large, other values in the order of their tool."""
        found = {dict(series.labels)[name] for series in self.members}
        known = self.order if name == self.outer else ()
        return [value for value in known if value in found] + sorted(found.difference(known), key=natural)

    def shared(self) -> Mapping[str, str]:
        """The labels that all members have alike."""
        return {name: value for name, value in self.members[0].labels if name not in (self.outer, self.inner)}


def matrices(several: Sequence[Series]) -> tuple[Matrix, ...]:
    """Those of the series that form matrices: exactly two of their labels with whole numbers have several values, or
    one of them and a label whose values the tool has put in order."""
    found = [matrix for members in _alike(several, ()) if (matrix := _of_sizes(members)) is not None]
    inside = {series for matrix in found for series in matrix.members}
    for label, order in orders_of(several).items():
        rest = [series for series in several if series not in inside and label in dict(series.labels)]
        made = (_ordered(label, order, members) for members in _alike(rest, (label,)))
        found += [matrix for matrix in made if matrix is not None]
    return tuple(found)


def orders_of(several: Sequence[Series]) -> Mapping[str, tuple[str, ...]]:
    """The labels whose values the tool of an entry has put in order."""
    tool = tool_of(several[0].benchmark) if several else None
    return tool.orders if tool else {}


def _alike(several: Iterable[Series], free: Sequence[str]) -> Iterable[list[Series]]:
    """Series whose labels are the same, but for sizes and the free ones."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Series]] = {}
    for series in several:
        rest = tuple((name, value) for name, value in series.labels if not value.isdecimal() and name not in free)
        found.setdefault((series.metric, rest), []).append(series)
    return found.values()


def _of_sizes(members: Sequence[Series]) -> Matrix | None:
    sizes = _varied(members)
    if len(sizes) != 2:
        return None
    outer, inner = sorted(sizes, key=lambda name: ("file" not in name, name))
    return _matrix(outer, inner, members)


def _ordered(label: str, order: tuple[str, ...], members: Sequence[Series]) -> Matrix | None:
    sizes = _varied(members)
    several = len({dict(series.labels)[label] for series in members}) > 1
    return _matrix(label, sizes[0], members, order) if several and len(sizes) == 1 else None


def _varied(members: Sequence[Series]) -> list[str]:
    """The sizes of which all members have one, and not all the same."""
    names = set.intersection(*({name for name, value in series.labels if value.isdecimal()} for series in members))
    return [name for name in names if len({dict(series.labels)[name] for series in members}) > 1]


def _matrix(outer: str, inner: str, members: Sequence[Series], order: tuple[str, ...] = ()) -> Matrix | None:
    places = {(dict(series.labels)[outer], dict(series.labels)[inner]) for series in members}
    return Matrix(outer, inner, tuple(members), order) if len(places) == len(members) else None


def matrix_table(results: Results, matrix: Matrix) -> Table:
    """Rows: file size or operation, and below it each environment. Columns: record size. The mean with its deviation,
    and below it the ratio with its interval and the mark of its verdict."""
    first = matrix.members[0]
    levels = [level for series in matrix.members for level in results.levels[series].values()]
    factor, unit = unit_for(levels)
    counts = Counter(level.n for level in levels)
    rounds = counts.most_common(1)[0][0]
    by_labels = {
        (dict(series.labels)[matrix.outer], dict(series.labels)[matrix.inner]): series for series in matrix.members
    }
    columns = [Column(_title(matrix.inner))]
    columns += [Column(label_value(matrix.inner, value)) for value in matrix.values(matrix.inner)]
    rows = []
    for outer in matrix.values(matrix.outer):
        sized = f"{_title(matrix.outer)} {label_value(matrix.outer, outer)}"
        title = sized if matrix.of_sizes else outer.replace("_", " ")
        rows.append(Row((Cell(title, raw=results.raw(first)),), heading=True))
        for place, environment in enumerate(results.environments):
            keys = [by_labels.get((outer, inner)) for inner in matrix.values(matrix.inner)]
            cells = (_cell(results, series, environment, factor, rounds) for series in keys)
            rows.append(Row((Cell(environment, environment=place), *cells), unit=unit))
    title = " · ".join(text for text in (named(first.metric, unit), labels_text(matrix.shared())) if text)
    return Table(title, tuple(columns), tuple(rows), _note(results, matrix, unit, rounds, len(counts) > 1))


def _note(results: Results, matrix: Matrix, unit: str, rounds: int, more: bool) -> str:
    """What a cell holds, once for all of them."""
    counted = f"{rounds} {plural(rounds, 'round')}" + (" unless a cell says otherwise" if more else "")
    text = f"Mean ± standard deviation in {unit or '1'} over {counted}"
    found = [item for series in matrix.members for item in results.comparisons.get(series, {}).values()]
    if not found:
        return f"{text}."
    given = {item.verdict for item in found}
    marks = ", ".join(f"{mark_of(word).glyph} {word}" for word in Verdict if word in given)
    caveats = {(item.environment, item.caveat) for item in found if item.caveat}
    remarks = "".join(f" {environment}: {words}." for environment, words in sorted(caveats))
    return (
        f"{text}; below it the performance relative to {results.baseline}, its interval and verdict ({marks}).{remarks}"
    )


def _cell(results: Results, series: Series | None, environment: str, factor: float, rounds: int) -> Cell:
    level = results.levels[series].get(environment) if series is not None else None
    if series is None or level is None:
        return Cell(ABSENT)
    sd = None if level.sd is None else level.sd / factor
    item = results.comparisons.get(series, {}).get(environment)
    words = [
        _ratio(item, results.baseline) if item is not None else "",
        f"n\u00a0{level.n}" if level.n != rounds else "",
    ]
    mean = level.mean / factor
    return Cell(mean_sd(mean, sd), ", ".join(word for word in words if word), value=Number(mean, sd), scaled=True)


def _ratio(item: Comparison, baseline: str) -> str:
    """`0.984 [0.962, 1.007] ○`: the mark stands for the verdict, and the note of the table says which."""
    text = ABSENT if item.ratio is None else ratio_text(item.ratio) + interval_text(item)
    return " ".join((f"{text}\u00a0{mark_of(item.verdict).glyph}", *against(item, baseline)))


def _title(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")
