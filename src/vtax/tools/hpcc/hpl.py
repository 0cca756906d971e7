"""hpl: a dense linear system solved by xhpl, for every size and block size of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
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
    output,
    placed,
    ranks_of,
    rows,
    solve_s,
    step,
)

MOST = 20  # values in one list, HPL_MAX_PARAM of the source
FIXED_S = 1.0  # mpirun, and the generation of the matrix

HPL = Metric(
    name="HPL",
    unit="flop/s",
    kind=Kind.RATE_FIXED_WORK,
    primary=True,
    meaning="2/3 n³ + 3/2 n² operations of one solution by its time, all ranks together",
)
HPL_TIME = Metric(
    name="HPL_time",
    unit="s",
    kind=Kind.COST,
    meaning="time of one solution, worked out from the rate, because xhpl prints the time to 0.01 s only",
)
RESIDUAL = Metric(
    name="residual", unit="1", kind=Kind.COUNT, meaning="scaled residual of one solution; wrong from 16 upwards"
)


def _distinct(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        raise ValueError("a value stands in the list twice")
    return values


Sizes = Annotated[tuple[Size, ...], Field(min_length=1, max_length=MOST), AfterValidator(_distinct)]
Blocks = Annotated[tuple[Block, ...], Field(min_length=1, max_length=MOST), AfterValidator(_distinct)]


class HplParams(LinpackParams):
    """Every `n` with every `nb`. An "auto" `n` is a multiple of the largest `nb`.

    192 is a multiple of the tiles that OpenBLAS's kernels work in on all x86-64 CPUs, and of a cache line.
    """

    n: Size | Sizes | Auto = "auto"
    nb: Block | Blocks = 192


def _sizes(params: HplParams) -> Sequence[int]:
    return params.n if isinstance(params.n, tuple) else (known(params.n),)


def _blocks(params: HplParams) -> Sequence[int]:
    return params.nb if isinstance(params.nb, tuple) else (params.nb,)


class Hpl:
    name = "hpl"
    group = "Compute"
    package = "hpcc"
    requires = ("xhpl", "mpirun")
    scopes = (Scope.WORKERS, Scope.NODE, Scope.CLUSTER)
    default_scopes = (Scope.WORKERS,)
    metrics = (HPL, HPL_TIME, RESIDUAL)
    params = HplParams

    def resolve(self, params: HplParams, target: Target) -> HplParams:
        params, ranks = placed(params, target)
        n = largest_n(params, target, ranks, max(_blocks(params))) if params.n == "auto" else params.n
        params = params.model_copy(update={"n": n})
        check_n(max(_sizes(params)), target, ranks)
        return params.model_copy(update={"timeout_s": limit_s(params, self.estimate_s(params, target))})

    def steps(self, params: HplParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        return (step("xhpl", params, _sizes(params), _blocks(params), target, launcher),)

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        text, source = output(record)
        measurements: list[Measurement] = []
        for row in rows(text, record):
            labels = {"n": str(row.n), "nb": str(row.nb), "p": str(row.p), "q": str(row.q)}
            values = {HPL: row.flop_rate, HPL_TIME: row.time_s, RESIDUAL: row.residual}
            measurements += [Measurement.of(record, metric, x, labels, source) for metric, x in values.items()]
        return tuple(measurements)

    def estimate_s(self, params: HplParams, target: Target) -> float:
        ranks = ranks_of(params, target)
        return FIXED_S + sum(solve_s(n, ranks) for n in _sizes(params)) * len(_blocks(params))

    def clocked_s(self, params: HplParams, target: Target) -> float:
        return 0.0
