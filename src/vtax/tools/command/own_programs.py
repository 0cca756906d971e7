"""What the JSON of vtax's own measuring programs has in common: its form, medians of batches, quantiles in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vtax.model.metric import Metric
from vtax.tools.command.json_path import Node
from vtax.tools.documents import Unfit
from vtax.tools.reading import Value

NANOSECONDS = 1e9  # in a second
STEPS = 1000  # of the clock that a batch has at least
FEWEST_BATCHES = 5
FORM = 1


def check_form(top: Node, program: str) -> None:
    form = top.at(program)
    if form.value != FORM:
        raise Unfit(form.line, f"form {form.value!r}, and only {FORM} is known")


def median(node: Node, unit: str = "ns", several: str = "batches") -> float:
    """The median of so many batches, which has to be between the least and the most."""
    least, middle, most = (node.at(f"{key}_{unit}").number() for key in ("least", "median", "most"))
    if not 0 < least <= middle <= most:
        raise Unfit(node.line, f"{node.where}: the median is not between the least and the most")
    if node.at(several).number() < FEWEST_BATCHES:
        raise Unfit(node.line, f"{node.where}: fewer than {FEWEST_BATCHES} {several}")
    return middle


def time_of_one(node: Node, metric: Metric, step_ns: float) -> Value:
    """The median time of an operation; refused where the shortest batch is not a few hundred steps of the clock."""
    time_ns = median(node)
    batch_ns = node.at("least_ns").number() * node.at("operations").number()
    if batch_ns < STEPS * step_ns / 2:  # half: the shortest may be shorter than that with which the length was chosen
        raise Unfit(
            node.line,
            f"{node.where}: a batch of {batch_ns:.0f} ns is too short for a clock with steps of {step_ns:g} ns",
        )
    return Value(metric, time_ns / NANOSECONDS, node.at("median_ns").line)


def quantiles(node: Node, metrics: Mapping[str, Metric]) -> Iterator[Value]:
    """Quantiles by the beginning of their keys (p50, p99), from the smallest: each is at least the one before."""
    before = 0.0
    for key, metric in metrics.items():
        found = node.at(f"{key}_ns")
        time_ns = found.number()
        if time_ns < before or time_ns == 0:
            raise Unfit(found.line, f"{key}_ns is {time_ns:g}: less than a smaller quantile, or nothing")
        before = time_ns
        yield Value(metric, time_ns / NANOSECONDS, found.line)
