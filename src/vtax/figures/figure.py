"""A figure, described once: rows of data, marks in the units of the data, axes and choices. No pixels, no colours.

`theme` decides how marks look, `vega` turns a description into a specification, `render` and `terminal` draw it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

Value = str | float | int | None
Row = Mapping[str, Value]
ENVIRONMENT = "environment"  # the field whose values have a colour and a shape in every figure
FILE = "file"  # the field that names the raw file of a point
DIGITS = 5  # significant, of every number that a figure holds
BINARY = {"k": 1e3 / 2**10, "M": 1e6 / 2**20, "G": 1e9 / 2**30, "T": 1e12 / 2**40}


class Medium(StrEnum):
    PAGE = "page"
    PAPER = "paper"
    TERMINAL = "terminal"


DRAWN = frozenset({Medium.PAGE, Medium.PAPER})


class Mark(StrEnum):
    """What a row of data is drawn as."""

    BAR = "bar"
    PALE_BAR = "pale bar"
    BOX = "box"
    RUN = "run"  # a single run next to a mean
    MEAN = "mean"
    VERDICT = "verdict"  # a point whose shape says a verdict
    LINE = "line"
    THIN_LINE = "thin line"
    STEP = "step"
    INTERVAL = "interval"
    MEDIAN = "median"
    BAND = "band"  # a region behind everything else, across the other axis
    LIMIT = "limit"  # a dashed line across the figure
    REFERENCE = "reference"  # a line across the figure to compare with
    CELL = "cell"  # of a heat map
    TEXT = "text"
    TEXT_END = "text at the end"  # at the far end of the horizontal axis
    TEXT_ABOVE = "text above"
    TEXT_RIGHT = "text to the right"
    FAILURE = "failure"


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"
    CATEGORY = "category"


@dataclass(frozen=True)
class Axis:
    """`values` are categories in their order, or the places of ticks; `labels` what is written there instead.

    `domain` is the range of a quantity; `offset` a field whose values lie next to each other inside a category.
    """

    field: str
    title: str = ""
    scale: Scale = Scale.LINEAR
    domain: tuple[float, float] | None = None
    values: tuple[str | float, ...] = ()
    labels: tuple[str, ...] = ()
    percent: bool = False
    zero: bool = True
    offset: str = ""


@dataclass(frozen=True)
class Layer:
    """A mark for every row whose `of` is `rows`. Fields that are not named are those of the axes.

    `by` is the field that colours it: environments, verdicts and steps have colours of their own, numbers a scale.
    `group` separates lines that have the same colour. `hover` is (field, title) of what a pointer shows.
    """

    mark: Mark
    rows: str
    x: str = ""
    x2: str = ""
    y: str = ""
    y2: str = ""
    by: str = ""
    text: str = ""
    group: str = ""
    hover: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Panel:
    """Layers over one vertical axis; the panels of a figure lie below each other and share the horizontal axis."""

    layers: tuple[Layer, ...]
    y: Axis
    height: float = 0.0  # of a quantity, relative to the usual height; 0 for the usual one


@dataclass(frozen=True)
class Choice:
    """A list to choose from in the page. Where nothing can be chosen, at most `still` of its options are drawn."""

    field: str
    label: str
    options: tuple[str, ...]
    first: str
    still: int = 1

    def drawn(self, most: int | None = None) -> tuple[str, ...]:
        """The options that are drawn where nothing can be chosen, the first choice among them, in their order."""
        count = self.still if most is None else min(self.still, most)
        order = [self.first, *(option for option in self.options if option != self.first)]
        return tuple(option for option in self.options if option in order[:count])


@dataclass(frozen=True)
class Colours:
    """The scale of a colour that stands for a number, always logarithmic when it spans decades."""

    low: float
    high: float
    title: str
    logarithmic: bool


@dataclass(frozen=True)
class Unit:
    """How a unit of bytes changes from decimal to binary prefixes: the factor for `fields`, and both texts."""

    fields: tuple[str, ...]
    text: str
    binary: str
    factor: float


@dataclass(frozen=True)
class Figure:
    """`name` is its id in the page and its file's name; `kind` is one of `selection.KINDS`; `alt` says in a sentence or
    two what it shows, for those who cannot see it. `environments` are all of the campaign, in order: a colour each.
    `across` is how many drawings lie next to each other in the page, `columns` the field that has a drawing for each of
    its values.
    """

    name: str
    kind: str
    title: str
    alt: str
    data: tuple[Row, ...]
    panels: tuple[Panel, ...]
    x: Axis
    environments: tuple[str, ...] = ()
    caption: str = ""
    marks: str = ""  # what its marks are, where captions on paper say that and the page does not need to
    choices: tuple[Choice, ...] = ()
    columns: str = ""
    across: int = 2
    colours: Colours | None = None
    unit: Unit | None = None
    wide: bool = False
    most_rows: int | None = None  # categories of the vertical axis that the page draws; paper has parts instead
    media: frozenset[Medium] = DRAWN

    def __post_init__(self) -> None:
        if not self.alt:
            raise ValueError(f"figure {self.name} says nothing to those who cannot see it")

    @property
    def y(self) -> Axis:
        return self.panels[0].y

    def of(self, rows: str) -> tuple[Row, ...]:
        """The rows of this name."""
        return tuple(row for row in self.data if row["of"] == rows)

    def present(self) -> tuple[str, ...]:
        """The environments that have data, in their order."""
        seen = {row.get(ENVIRONMENT) for row in self.data}
        return tuple(name for name in self.environments if name in seen)

    def only(self, field: str, values: Sequence[str]) -> Figure:
        """The figure with only those rows that have one of the values, or do not have the field."""
        wanted = set(values)
        return replace(self, data=tuple(row for row in self.data if row.get(field) is None or row[field] in wanted))


def demand(figure: Figure, medium: Medium) -> None:
    """Raises ValueError for a medium that the figure does not declare: it must not disappear without a word."""
    if medium not in figure.media:
        raise ValueError(f"figure {figure.name} ({figure.kind}) is not for {medium}")


@dataclass(frozen=True)
class NotDrawn:
    """Why a figure that a reader may look for is not there."""

    reason: str


def rows(of: str, several: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Rows under one name, numbers with as many digits as a figure can show; what is None is left out."""
    return tuple({"of": of} | {key: short(value) for key, value in row.items() if value is not None} for row in several)


def short(value: Value) -> Value:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def switchable(fields: Sequence[str], unit: str, factor: float, text: str) -> Unit | None:
    """How a unit of bytes changes from decimal to binary prefixes: `GB/s` to `GiB/s`; None for other units."""
    if not unit.startswith("byte") or text[:1] not in BINARY or factor == 1.0:
        return None
    return Unit(tuple(fields), text, f"{text[0].upper()}i{text[1:]}", BINARY[text[0]])
