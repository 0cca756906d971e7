"""What is measured of every command without being asked for: vtax-run's report, which is one JSON object.

User and system time, faults and switches are the kernel's account of the command and of the children that it waited
for. Of a short command, user or system time may be 0, which is below what the kernel accounts for: they are amounts,
whose zeros count. Their sum is above zero, and a cost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from vtax.model.metric import Kind, Metric
from vtax.tools.documents import Document, Unfit
from vtax.tools.reading import Reading, Value, lines_of

DEFAULT = "wall"  # what decides where an entry has no metrics


class Builtin(NamedTuple):
    """A metric and the keys of the report whose sum it is. Those that are not `always` reported must be asked for. A
    metric of a study may have the name of one that is not `reserved`, and replaces it."""

    metric: Metric
    keys: tuple[str, ...]
    always: bool = True
    reserved: bool = True


def _builtin(
    name: str, unit: str, kind: Kind, meaning: str, *keys: str, always: bool = True, reserved: bool = True
) -> tuple[str, Builtin]:
    return name, Builtin(Metric(name=name, unit=unit, kind=kind, meaning=meaning), keys, always, reserved)


BUILTINS = dict(
    (
        _builtin("wall", "s", Kind.COST, "time from the start of the command to its end", "wall_s"),
        _builtin("user", "s", Kind.AMOUNT, "CPU time of the command in its own code", "user_s"),
        _builtin("system", "s", Kind.AMOUNT, "CPU time of the command in the kernel", "system_s"),
        _builtin("cpu", "s", Kind.COST, "user and system time together", "user_s", "system_s", reserved=False),
        _builtin("max_rss", "byte", Kind.COST, "most memory that one of its processes had at once", "max_rss_bytes"),
        _builtin("faults", "1", Kind.COUNT, "page faults, minor and major", "minor_faults", "major_faults"),
        _builtin(
            "switches",
            "1",
            Kind.COUNT,
            "context switches, voluntary and involuntary",
            "voluntary_switches",
            "involuntary_switches",
        ),
        _builtin("minor_faults", "1", Kind.COUNT, "page faults without a read", "minor_faults", always=False),
        _builtin("major_faults", "1", Kind.COUNT, "page faults that read a disk", "major_faults", always=False),
    )
)


def always_measured(asked: Collection[str | None], names: Collection[str | None]) -> dict[str, Metric]:
    """What a study gets besides the builtins that it `asked` for and its own metrics, which have these `names`."""
    return {
        name: one.metric
        for name, one in BUILTINS.items()
        if one.always and name not in asked and (one.reserved or name not in names)
    }


def read_usage(reading: Reading, text: str, wanted: dict[str, Metric], asked: frozenset[str]) -> None:
    """Take the `wanted` builtins (by their own names, as metrics) from a report; `asked` are those that a study named.

    A CPU time of 0 is an amount, and no cost: absent then, or refused where a study named it.
    """
    try:
        document = Document(lines_of(text))
        if document.rest:
            raise Unfit(0, "something follows the report")
        found = {name: sum(document.number(key) for key in BUILTINS[name].keys) for name in wanted}
    except Unfit as error:
        reading.refuse(error.line, "what vtax-run reports", error.what, len(wanted))
        return
    for name, value in found.items():
        metric = wanted[name]
        if value > 0 or not metric.kind.has_ratio:
            reading.values.append(Value(metric, value, document.line(BUILTINS[name].keys[0])))
        elif name in asked or name == DEFAULT:
            reading.refuse(
                document.line(BUILTINS[name].keys[0]), metric.name, "it is 0: too short for the kernel to tell"
            )
