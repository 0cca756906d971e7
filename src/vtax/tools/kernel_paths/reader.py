"""What `kernel-paths` writes, vtax's own small program (tools/kernel_paths/workloads/kernel-paths.c): JSON.

The value of a path is the median of its batches. It is refused where a batch was too short for the clock.

Facts: `policy` and `timer_slack_s` of the process, `pinned` (whether it stayed on one CPU), `clock_step_s` (the
smallest step that the clock was seen to make), `compiler`.
"""

from __future__ import annotations

from collections.abc import Iterator

from vtax.tools.command.json_path import Node
from vtax.tools.command.own_programs import NANOSECONDS, check_form, quantiles, time_of_one
from vtax.tools.command.readers.reader import only_document, read_document
from vtax.tools.documents import Unfit
from vtax.tools.kernel_paths.metrics import OPERATIONS, WAKEUPS
from vtax.tools.reading import Reading, Section, Value

FEWEST_SLEEPS = 1000


def read(section: Section) -> Reading:
    """One run."""
    return read_document("kernel-paths", section._replace(lines=only_document(section.lines)), _take)


def _take(reading: Reading, top: Node) -> None:
    check_form(top, "kernel-paths")
    step_ns = top.at("clock_step_ns").number()
    pinned = top.at("pinned").value
    if not isinstance(pinned, bool):
        raise Unfit(top.at("pinned").line, "pinned is neither true nor false")
    reading.facts |= {
        "policy": top.at("policy").string()[:40],
        "timer_slack_s": top.at("timer_slack_ns").number() / NANOSECONDS,
        "pinned": pinned,
        "clock_step_s": step_ns / NANOSECONDS,
        "compiler": top.at("compiler").string()[:60],
    }
    paths = top.at("paths")
    names = list(paths.value) if isinstance(paths.value, dict) else []
    if not names:
        raise Unfit(paths.line, "no path was measured")
    reading.params["paths"] = " ".join(names)
    for name in names:
        node = paths.at(name)
        if name == "wakeup":
            reading.values += _sleeps(node)
        elif name in OPERATIONS:
            reading.values.append(time_of_one(node, OPERATIONS[name], step_ns))
        else:
            raise Unfit(node.line, f"{name} is not a path that is known")


def _sleeps(node: Node) -> Iterator[Value]:
    if node.at("sleeps").number() < FEWEST_SLEEPS:
        raise Unfit(node.line, f"fewer than {FEWEST_SLEEPS} sleeps")
    yield from quantiles(node, WAKEUPS)
