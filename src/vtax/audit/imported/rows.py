"""Which rows of the catalogue logs can answer, and from what: one entry for each check of imported runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vtax.audit.imported import hpc, method, network, programs, scores, storage
from vtax.audit.imported.evidence import runs
from vtax.evidence.campaign import Evidence
from vtax.model.finding import Finding

Check = Callable[[Evidence], Iterator[Finding]]
SYSBENCH = ("sysbench-cpu", "sysbench-memory", "sysbench-fileio")


@dataclass(frozen=True)
class LogRow:
    """One check of logs, for one row of the catalogue. It can see where a run has one of `facts`, or of `metrics`."""

    id: str
    check: Check
    needs: str  # what a log must say, in words
    benchmarks: tuple[str, ...] = ()  # of which it speaks; () is all
    facts: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    compares: bool = False  # the baseline and another environment must both say it

    def applies(self, evidence: Evidence) -> bool:
        """Whether there are runs of its benchmarks."""
        return any(True for _ in runs(evidence, *self.benchmarks))

    def sees(self, evidence: Evidence) -> bool:
        """Whether logs say what it looks for."""
        told = {
            trial.environment
            for trial, facts in runs(evidence, *self.benchmarks)
            if not (self.facts or self.metrics) or any(name in facts for name in self.facts)
        }
        told |= {
            one.environment
            for one in evidence.measurements
            if one.metric in self.metrics and (not self.benchmarks or one.benchmark in self.benchmarks)
        }
        if self.compares:
            return evidence.reference in told and len(told) > 1
        return bool(told)


TITLES = {  # of rows whose condition is another one for logs
    "M01": "ranks are unevenly placed, or idle",
    "H05": "figures are of one process, and not of the machine",
    "R01": "runs are no rounds, or too few",
    "R02": "environments were not measured in turns",
    "U03": "a file or its values were given twice, or its name says another test",
}
DISKS = ("iozone", "sysbench-fileio")
LOG_ROWS: tuple[LogRow, ...] = (
    LogRow("N01", network.loopback, "addresses of both ends", ("iperf3", "ping"), ("client_address", "server_address")),
    LogRow("N03", network.udp_rate, "UDP rates", ("iperf3",), ("protocol",)),
    LogRow("N06", network.retransmits, "counts of segments sent again", ("iperf3",), metrics=("retransmits",)),
    LogRow("M01", hpc.placement, "nodes of ranks (stress-ng --verbose)", ("stress-ng",), ("ranks_on_nodes",)),
    LogRow("M01", hpc.unused_ranks, "P, Q and the number of ranks", ("hpcc",)),
    LogRow("M03", hpc.transport, "latencies of messages", ("hpcc",), metrics=("MaxPingPongLatency",), compares=True),
    LogRow(
        "M05", hpc.bound_threads, "threads, and how they shared the work", SYSBENCH[:2], ("thread_imbalance", "bind_to")
    ),
    LogRow(
        "T01", programs.builds, "versions, compilers, dates of compilation", (), tuple(programs.BUILDS), compares=True
    ),
    LogRow("T01", programs.blas, "DGEMM and STREAM of one process", ("hpcc",), metrics=("SingleDGEMM",), compares=True),
    LogRow("T02", programs.kernels, "kernels and C libraries", (), ("kernel", "libc", "machine"), compares=True),
    LogRow("C03", programs.sizes, "CPUs and memory of nodes", (), ("cpus", "memory_bytes"), compares=True),
    LogRow(
        "O01", scores.killed, "messages of stress-ng --verbose about killed workers", ("stress-ng",), ("oom_kills",)
    ),
    LogRow("O03", hpc.timer, "the tick of MPI's timer", ("hpcc",), ("MPI_Wtick",)),
    LogRow("O05", scores.too_short, "times of runs", (*SYSBENCH, "iperf3"), ("total_time_s",)),
    LogRow("D02", storage.page_cache, "sizes of files, and rates", DISKS),
    LogRow("D03", storage.flush, "whether the flush is timed", ("iozone",), ("fsync_timed",)),
    LogRow("D05", storage.not_shared, "types of file systems (stress-ng --verbose)", (), ("filesystem",)),
    LogRow(
        "S01", scores.stress_ng, "versions and methods", ("stress-ng",), ("stress_ng_version", "method"), compares=True
    ),
    LogRow("S02", scores.cpu_shares, "CPU time of workers", ("stress-ng",), ("cpu_share_of_worker",)),
    LogRow("S03", scores.sysbench, "versions and options", SYSBENCH, compares=True),
    LogRow("U01", method.unit_factors, "values in two environments", compares=True),
    LogRow("U03", method.reused, "the bytes of files and their values"),
    LogRow("U03", method.wrong_names, "names of files and tests", ("sysbench-fileio", "iperf3")),
    LogRow("R01", method.few_runs, "the number of runs"),
    LogRow("R02", method.windows, "times of runs"),
)


def of(row: str) -> tuple[LogRow, ...]:
    """The checks of logs for one row of the catalogue."""
    return tuple(one for one in LOG_ROWS if one.id == row)
