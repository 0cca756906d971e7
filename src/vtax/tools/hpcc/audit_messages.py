"""M06: whether the messages of hpcc in other people's logs went over a network."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.tools.hpcc.metrics import MESSAGES
from vtax.units import format_quantity

FASTEST, AVERAGE, SLOWEST = (f"{which}PingPongLatency" for which in ("Min", "Avg", "Max"))
FIGURES = tuple(figure.metric.name for figure in MESSAGES)
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
    source="the fastest, mean and slowest of hpcc's ping-pongs between pairs of ranks, in logs",
    note="vtax's own: two orders of magnitude between pairs of one run are two kinds of paths, and below a microsecond "
    "there is no network. A warning where only some pairs are inside a node: the mean is then of both",
    benchmarks=("hpcc",),
    needs=Needs("latencies of ping-pongs", metrics=(FASTEST, AVERAGE, SLOWEST)),
    applies=in_logs,
)
def messages(evidence: Evidence) -> Iterator[Result]:
    """M06: latencies of pairs of ranks that no network has, or that cannot be of one kind of path."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        found = {
            metric: median(values)
            for metric in (FASTEST, AVERAGE, SLOWEST)
            if (values := evidence.values(environment, label, metric))
        }
        if not trials or not found:
            continue
        where, shown = f"{label} in {environment}", {name: format_quantity(v, "s") for name, v in found.items()}
        slowest = found.get(SLOWEST, found.get(AVERAGE))
        fastest = found.get(FASTEST, found.get(AVERAGE))
        if slowest is not None and slowest < NETWORK_S:
            name = SLOWEST if SLOWEST in found else AVERAGE
            message = (
                f"{where}: even the slowest ping-pong takes {shown[name]}, and no network is that fast: all ranks "
            )
            yield Failed(f"{message}were on one node", environment, label, metrics=FIGURES)
        elif fastest is not None and slowest is not None and slowest >= ORDERS * fastest:
            message = f"{where}: pairs of ranks differ by a factor of {slowest / fastest:.0f} ({shown[FASTEST]} to "
            message += f"{shown[SLOWEST]}): some are on one node, and the mean is of two kinds of paths"
            yield Failed(message, environment, label, Severity.WARNING, metrics=FIGURES)
        elif fastest is not None and fastest < NETWORK_S:
            name = FASTEST if FASTEST in found else AVERAGE
            message = f"{where}: the fastest ping-pong takes {shown[name]}, and no network is that fast: at least two "
            yield Failed(f"{message}ranks were on one node", environment, label, Severity.WARNING, metrics=FIGURES)
        else:
            yield f"{where}: ping-pongs of {shown.get(FASTEST, '?')} to {shown.get(SLOWEST, '?')}"
