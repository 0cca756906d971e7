"""M06: whether the messages between ranks in other people's logs went over a network."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.tools import tools
from vtax.tools.tool import Messages
from vtax.units import format_quantity

MESSAGES = {benchmark: one for tool in tools() for benchmark, one in tool.messages.items()}
LATENCIES = tuple(dict.fromkeys(name for one in MESSAGES.values() for name in (one.fastest, one.mean, one.slowest)))
NETWORK_S = (
    1e-6  # 8 bytes one way: below, no network that Linux drives; InfiniBand needs about this, Ethernet ten times
)
ORDERS = 100.0  # between the slowest and the fastest pair: two kinds of paths


def in_logs(evidence: Evidence) -> str:
    imported = evidence.plan.origin is Origin.IMPORTED
    return "" if imported else "vtax ran this campaign and knows where each rank was (M01, N02)"


@row(
    "M06",
    Severity.BLOCKER,
    "ranks on one node behind a latency that is called one of a network",
    short="messages inside a node",
    why="ranks of one node exchange messages through its memory: such a latency, or a mean of such and others, is not "
    "one of the network",
    remedy="start ranks on different nodes (`mpirun --map-by node`, a hostfile), and keep what tells where they were",
    source="the times of the shortest messages between pairs of ranks, in logs",
    note="vtax's own: two orders of magnitude between pairs of one run are two kinds of paths, and below a microsecond "
    "there is no network. A warning where only some pairs are inside a node: the mean is then of both",
    benchmarks=tuple(MESSAGES),
    needs=Needs("latencies of messages", metrics=LATENCIES),
    applies=in_logs,
)
def messages(evidence: Evidence) -> Iterator[Result]:
    """M06: latencies of pairs of ranks that no network has, or that cannot be of one kind of path."""
    for (environment, label), trials in evidence.entries(*MESSAGES).items():
        if not trials:
            continue
        meant = MESSAGES[trials[0].benchmark]
        known = {name: _latency(evidence, environment, label, name, meant) for name in meant[:3]}
        found = {name: seconds for name, seconds in known.items() if seconds is not None}
        if found:
            yield _judged(environment, label, meant, found)


def _latency(evidence: Evidence, environment: str, label: str, metric: str, meant: Messages) -> float | None:
    """The median over runs, of the shortest messages that were sent; None where there is none."""
    every = [
        one
        for one in evidence.measurements
        if (one.environment, one.label, one.metric) == (environment, label, metric)
        and not one.warmup
        and meant.labels.items() <= one.labels.items()
    ]
    sizes = [int(one.labels.get(meant.size, "0")) for one in every]
    values = [one.value for one, size in zip(every, sizes, strict=True) if size == min(sizes)]
    return median(values) if values else None


def _judged(environment: str, label: str, meant: Messages, found: dict[str, float]) -> Result:
    where, shown = f"{label} in {environment}", {name: format_quantity(v, "s") for name, v in found.items()}
    slow = meant.slowest if meant.slowest in found else meant.mean
    fast = meant.fastest if meant.fastest in found else meant.mean
    slowest, fastest = found.get(slow), found.get(fast)
    if slowest is not None and slowest < NETWORK_S:
        which = "even the slowest ping-pong" if slow != fast else "a message"
        message = f"{where}: {which} takes {shown[slow]}, and no network is that fast: all ranks were on one node"
        return Failed(message, environment, label, metrics=meant.figures)
    if fastest is not None and slowest is not None and slowest >= ORDERS * fastest:
        message = f"{where}: pairs of ranks differ by a factor of {slowest / fastest:.0f} ({shown[fast]} to "
        message += f"{shown[slow]}): some are on one node, and the mean is of two kinds of paths"
        return Failed(message, environment, label, Severity.WARNING, metrics=meant.figures)
    if fastest is not None and fastest < NETWORK_S:
        message = f"{where}: the fastest ping-pong takes {shown[fast]}, and no network is that fast: at least two "
        return Failed(f"{message}ranks were on one node", environment, label, Severity.WARNING, metrics=meant.figures)
    return f"{where}: messages of {shown.get(fast, '?')} to {shown.get(slow, '?')}"
