"""hyperfine's `--export-json`: the times of every run, and what hyperfine makes of them.

All numbers are made again from the times of the runs, so a damaged one is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median

from vtax.model.metric import Kind, Metric
from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import Reader, Wants, labelled, must_agree, read_document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Reading, Section, Value

MEAN = Metric(name="time_mean", unit="s", kind=Kind.COST, meaning="mean wall time of a run")
MEDIAN = Metric(name="time_median", unit="s", kind=Kind.COST, meaning="median wall time of a run")
MIN = Metric(name="time_min", unit="s", kind=Kind.COST, meaning="shortest wall time of a run")
USER = Metric(name="time_user", unit="s", kind=Kind.AMOUNT, meaning="mean CPU time of a run in user mode")
SYSTEM = Metric(name="time_system", unit="s", kind=Kind.AMOUNT, meaning="mean CPU time of a run in the kernel")


def read(section: Section, _wants: Wants) -> Reading:
    return read_document("hyperfine", section, _take)


def _take(reading: Reading, top: Node) -> None:
    labelled(
        reading, "command", ((one.at("command").string(), list(_result(one))) for one in top.at("results").every())
    )


def _result(one: Node) -> Iterator[Value]:
    times = [time.number() for time in one.at("times").every()]
    _succeeded(one)
    for metric, key, value in (
        (MEAN, "mean", fmean(times)),
        (MEDIAN, "median", median(times)),
        (MIN, "min", min(times)),
    ):
        node = one.at(key)
        must_agree(node, value, f"the {key} of its {len(times)} times is")
        yield Value(metric, node.number(), node.line)
    must_agree(one.at("max"), max(times), "the longest of its times is")
    for metric, key in ((USER, "user"), (SYSTEM, "system")):
        node = one.at(key)
        yield Value(metric, node.number(), node.line)  # 0 of a short command is below what the kernel accounts


def _succeeded(one: Node) -> None:
    """Raises Unfit where a run ended with another exit code than 0 (hyperfine -i goes on then)."""
    codes = one.get("exit_codes")  # not there before 1.13
    for code in codes.every() if codes else ():
        if code.value != 0:
            raise Unfit(code.line, f"{code.where} is {code.value!r}: a run failed")


HYPERFINE = Reader("hyperfine", read, (MEAN, MEDIAN, MIN, USER, SYSTEM))
