"""Second readers, written apart from vtax's own: plain searches without any check, by tool.

Each gives everything that a text could mean: metric -> numbers in base units. A number that vtax takes and that is not
among them is wrong. They find more than vtax does on purpose: what is damaged is for vtax to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from builders.other_readers.computing import gups, hpl, intel_linpack, stream, stress_ng
from builders.other_readers.documents import fio, google_benchmark, hyperfine, pyperf
from builders.other_readers.messages import hpcc, imb, osu
from builders.other_readers.network import iperf3, nuttcp, ping
from builders.other_readers.servers import (
    fio_text,
    hackbench,
    kernel_paths,
    memcslap,
    mpi_messages,
    netperf,
    oltp,
    openssl,
    pgbench,
    redis,
    sevenzip,
    sockperf,
    wrk,
)
from builders.other_readers.storage import iozone, sysbench

Numbers = Mapping[str, set[float]]
READERS: Mapping[str, Callable[[str], Numbers]] = {
    "fio": fio,
    "fio text": fio_text,
    "google-benchmark": google_benchmark,
    "gups": gups,
    "hackbench": hackbench,
    "kernel-paths": kernel_paths,
    "memcslap": memcslap,
    "mpi-messages": mpi_messages,
    "netperf": netperf,
    "openssl-speed": openssl,
    "pgbench": pgbench,
    "redis-benchmark": redis,
    "sevenzip": sevenzip,
    "sockperf": sockperf,
    "wrk": wrk,
    "hpcc": hpcc,
    "hyperfine": hyperfine,
    "imb": imb,
    "osu": osu,
    "pyperf": pyperf,
    "hpl": hpl,
    "intel-linpack": intel_linpack,
    "stream": stream,
    "stress-ng": stress_ng,
    "iperf3": iperf3,
    "nuttcp": nuttcp,
    "ping": ping,
    "iozone": iozone,
    "sysbench": sysbench,
    "sysbench-oltp": oltp,
}


def finds(numbers: Numbers, metric: str, value: float) -> bool:
    """Whether a number is among those of its metric, but for the last bits of a division."""
    return any(abs(one - value) <= 1e-9 * max(abs(one), abs(value)) for one in numbers.get(metric, ()))
