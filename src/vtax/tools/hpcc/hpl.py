"""hpl: a dense linear system solved by xhpl, for every size and block size of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

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
from vtax.tools.hpcc.metrics import HPL_METRICS
from vtax.tools.hpcc.own import read_own
from vtax.tools.hpcc.systems import read_hpl
from vtax.tools.reading import Output

MOST = 20  # values in one list, HPL_MAX_PARAM of the source
FIXED_S = 0.4  # mpirun, and the generation of the matrix


def _distinct(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        raise ValueError("a value is listed twice")
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
    requires = ("xhpl", "mpirun")
    scopes = (Scope.WORKERS, Scope.NODE, Scope.CLUSTER)
    default_scopes = (Scope.WORKERS,)
    metrics = HPL_METRICS
    params = HplParams

    def resolve(self, params: HplParams, target: Target) -> HplParams:
        params, ranks = placed(params, target)
        n = largest_n(params, target, ranks, max(_blocks(params))) if params.n == "auto" else params.n
        params = params.model_copy(update={"n": n})
        check_n(max(_sizes(params)), target, ranks)
        return params.model_copy(update={"timeout_s": limit_s(params, self.estimate_s(params, target))})

    def steps(self, params: HplParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        return (step("xhpl", params, _sizes(params), _blocks(params), target, launcher),)

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        return read_own(record, read_hpl)

    def estimate_s(self, params: HplParams, target: Target) -> float:
        ranks = ranks_of(params, target)
        return FIXED_S + sum(solve_s(n, ranks) for n in _sizes(params)) * len(_blocks(params))

    def clocked_s(self, params: HplParams, target: Target) -> float:
        return 0.0
