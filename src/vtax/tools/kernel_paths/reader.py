"""What `kernel-paths` writes, vtax's own small program (tools/kernel_paths/workloads/kernel-paths.c): JSON.

The value of a path is the median of its batches. It is refused where a batch was too short for the clock.

Facts: `policy` and `timer_slack_s` of the process, `pinned` (whether it stayed on one CPU), `clock_step_s` (the
smallest step that the clock was seen to make), `compiler`.
"""

from __future__ import annotations

from collections.abc import Iterator

from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import only_document, read_document
from vtax.tools.documents import Unfit
from vtax.tools.kernel_paths.metrics import OPERATIONS, WAKEUPS
from vtax.tools.reading import Reading, Section, Value

NANOSECONDS = 1e9  # in a second
STEPS = 1000  # of the clock that a batch has at least
FEWEST_BATCHES, FEWEST_SLEEPS = 5, 1000
FORM = 1


def read(section: Section) -> Reading:
    """One run."""
    return read_document("kernel-paths", section._replace(lines=only_document(section.lines)), _take)


def _take(reading: Reading, top: Node) -> None:
    form = top.at("kernel-paths")
    if form.value != FORM:
        raise Unfit(form.line, f"form {form.value!r}, and only {FORM} is known")
    step = top.at("clock_step_ns").number()
    pinned = top.at("pinned").value
    if not isinstance(pinned, bool):
        raise Unfit(top.at("pinned").line, "pinned is neither true nor false")
    reading.facts |= {
        "policy": top.at("policy").string()[:40],
        "timer_slack_s": top.at("timer_slack_ns").number() / NANOSECONDS,
        "pinned": pinned,
        "clock_step_s": step / NANOSECONDS,
        "compiler": top.at("compiler").string()[:60],
    }
    paths = top.at("paths")
    names = list(paths.value) if isinstance(paths.value, dict) else []
    if not names:
        raise Unfit(paths.line, "no path was measured")
    reading.params["paths"] = " ".join(names)
    for name in names:
        reading.values += _sleeps(paths.at(name)) if name == "wakeup" else _path(paths.at(name), name, step)


def _path(node: Node, name: str, step: float) -> Iterator[Value]:
    if name not in OPERATIONS:
        raise Unfit(node.line, f"{name} is not a path that is known")
    least, median, most = (node.at(key).number() for key in ("least_ns", "median_ns", "most_ns"))
    if not 0 < least <= median <= most:
        raise Unfit(node.line, f"{node.where}: the median is not between the least and the most")
    if node.at("batches").number() < FEWEST_BATCHES:
        raise Unfit(node.line, f"{node.where}: fewer than {FEWEST_BATCHES} batches")
    batch = least * node.at("operations").number()
    if batch < STEPS * step / 2:  # half: the shortest of the batches may be shorter than those that it was tried with
        raise Unfit(
            node.line, f"{node.where}: a batch of {batch:.0f} ns is too short for a clock with steps of {step:g} ns"
        )
    yield Value(OPERATIONS[name], median / NANOSECONDS, node.at("median_ns").line)


def _sleeps(node: Node) -> Iterator[Value]:
    if node.at("sleeps").number() < FEWEST_SLEEPS:
        raise Unfit(node.line, f"fewer than {FEWEST_SLEEPS} sleeps")
    before = 0.0
    for key, metric in WAKEUPS.items():
        found = node.at(f"{key}_ns")
        late = found.number()
        if late < before or late == 0:
            raise Unfit(node.line, f"{key}_ns is {late:g}: less than a smaller quantile, or nothing")
        before = late
        yield Value(metric, late / NANOSECONDS, found.line)
