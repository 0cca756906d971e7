"""What a ready-made reader is: the output of a program that others wrote, with units and kinds that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from vtax.model.metric import Metric
from vtax.tools.command.json_path import Node, document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Line, Reading, Section, Value
from vtax.units import in_base_units

ROUNDING = 1e-6  # relative: sums of numbers that were printed in full
LONGEST_LABEL = 200


class Wanted(NamedTuple):
    """A metric that a study declares for a measure of an output, and the factor to its base unit."""

    metric: Metric
    factor: Fraction

    def value(self, number: float, line: int, labels: Mapping[str, str]) -> Value:
        return Value(self.metric, in_base_units(number, self.factor), line, labels)


Wants = Mapping[str, Wanted]


@dataclass(frozen=True)
class Reader:
    """One format. `metrics` are those that it brings; a `free` one takes measures that a study declares.

    An output must end with one of `ends`, where its last line would not show that it was cut.
    """

    name: str
    read: Callable[[Section, Wants], Reading]
    metrics: tuple[Metric, ...] = ()
    free: bool = False
    ends: tuple[str, ...] = ()


def only_document(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines of a document that begins and ends at the margin, without what a log has around it: notes, a prompt.

    Where a second one follows, it is left there, to be refused.
    """
    begin = next((at for at, line in enumerate(lines) if line.text.startswith("{")), 0)
    end = next((at for at in range(begin, len(lines)) if lines[at].text.startswith("}")), len(lines))
    second = any(line.text.startswith("{") for line in lines[end:])
    return tuple(lines[begin:] if second else lines[begin : end + 1])


def read_document(name: str, section: Section, take: Callable[[Reading, Node], None]) -> Reading:
    """The reading of an output that is one JSON document. It has all values or, with the reason, none."""
    reading = Reading(name)
    try:
        take(reading, document(section.lines))
    except Unfit as error:
        reading.values.clear()
        reading.refuse(error.line, f"what {name} writes", error.what, 0)
    reading.ended = not reading.refusals
    return reading


def labelled(reading: Reading, label: str, several: Iterable[tuple[str, list[Value]]]) -> None:
    """Add the values of several results: with the name of each as a label, where there is more than one.

    Raises Unfit where two have one name, because then no one could tell them apart.
    """
    found = [(name[:LONGEST_LABEL], values) for name, values in several]
    names = [name for name, _ in found]
    for name, values in found:
        if names.count(name) > 1:
            line = values[0].line if values else 0
            raise Unfit(line, f"{names.count(name)} results are called {name!r}")
        own = {label: name} if len(found) > 1 else {}
        reading.values += [value._replace(labels={**value.labels, **own}) for value in values]


def near(one: float, other: float, tolerance: float = ROUNDING) -> bool:
    """Whether two numbers of one output agree."""
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


def must_agree(node: Node, value: float, words: str, tolerance: float = ROUNDING) -> None:
    """Raises Unfit where a number is not what others of the same output say that it is."""
    if not near(node.number(), value, tolerance):
        raise Unfit(node.line, f"{node.where} is {node.number():.10g}, and {words} {value:.10g}")
