"""hpcc: the HPC Challenge suite in one run: HPL, DGEMM, PTRANS, RandomAccess, STREAM, FFT, latency and bandwidth.

Its summary is one `key=value` a line, with the unit in the key. "Single" is one process with all others idle, "Star"
is every process at once but each for itself (per process, not a total), and "MPI" or nothing is all together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import sqrt

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.fields import Auto
from vtax.tools.hpcc.linpack import (
    Block,
    LinpackParams,
    Size,
    check_n,
    known,
    largest_n,
    limit_s,
    placed,
    ranks_of,
    solve_s,
    step,
)
from vtax.tools.hpcc.metrics import HPCC_METRICS
from vtax.tools.hpcc.own import read_own
from vtax.tools.hpcc.reader import read
from vtax.tools.reading import Output

FIXED_S = 1.0  # STREAM, FFT and, above all, the fixed number of messages of the latency test
UPDATES_BOUND_S = 60.0  # hpcc stops MPIRandomAccess after that
MPI_UPDATE_RATE = 4e6  # of all ranks together, over a slow network
LOCAL_UPDATE_RATE = 5e7


ABOUT_NETWORK = re.compile(r"PingPong|Ring|Latency|Bandwidth")
ABOUT_MEMORY = re.compile(r"STREAM|RandomAccess|PTRANS")


class HpccParams(LinpackParams):
    """One matrix of order `n`; the sizes of all other tests follow from it.

    192 is a multiple of the tiles that OpenBLAS's kernels work in on all x86-64 CPUs, and of a cache line.
    """

    n: Size | Auto = "auto"
    nb: Block = 192


class Hpcc:
    name = "hpcc"
    requires = ("hpcc", "mpirun")
    scopes = (Scope.WORKERS, Scope.NODE, Scope.CLUSTER)
    default_scopes = (Scope.WORKERS,)
    metrics = HPCC_METRICS
    params = HpccParams

    def group_of(self, metric: str, labels: Mapping[str, str]) -> str:
        """The part of the machine that a test is about."""
        if ABOUT_NETWORK.search(metric):
            return "Network"
        return "Memory" if ABOUT_MEMORY.search(metric) else "Compute"

    def resolve(self, params: HpccParams, target: Target) -> HpccParams:
        params, ranks = placed(params, target)
        n = largest_n(params, target, ranks, params.nb) if params.n == "auto" else params.n
        check_n(n, target, ranks)
        params = params.model_copy(update={"n": n})
        return params.model_copy(update={"timeout_s": limit_s(params, self.estimate_s(params, target))})

    def steps(self, params: HpccParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        return (step("hpcc", params, (known(params.n),), (params.nb,), target, launcher),)

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        return read_own(record, read)

    def estimate_s(self, params: HpccParams, target: Target) -> float:
        """HPL, two products of matrices that fill a rank's memory, and RandomAccess in its six forms."""
        ranks, n = ranks_of(params, target), known(params.n)
        updates = 4 * n * n / 2  # four for each word of tables that fill half the memory
        shared_s = min(UPDATES_BOUND_S, updates / MPI_UPDATE_RATE)
        local_s = updates / ranks.total / LOCAL_UPDATE_RATE
        products_s = solve_s(n, ranks) * 2 / sqrt(3 * ranks.total)  # 2 · 2 · (n / √(3 ranks))³ operations a rank
        return FIXED_S + solve_s(n, ranks) + products_s + 2 * shared_s + 4 * local_s

    def clocked_s(self, params: HpccParams, target: Target) -> float:
        return 0.0
