"""hpcc: the HPC Challenge suite in one run: HPL, DGEMM, PTRANS, RandomAccess, STREAM, FFT, latency and bandwidth.

Its summary is one `key=value` a line, with the unit in the key. "Single" is one process with all others idle, "Star"
is every process at once but each for itself (per process, not a total), and "MPI" or nothing is all together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import sqrt
from typing import NamedTuple

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import found, number, refuse
from vtax.tools.excerpts import Piece, pieces
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

# The whole end of the file, so that nothing cut off after the numbers passes for a complete run.
SUMMARY = re.compile(
    r"^Begin of Summary section\.\n((?:\w+=.*\n)+)End of Summary section\.\n#+\nEnd of HPC Challenge tests\.\n",
    re.MULTILINE,
)
BEGIN = "Begin of Summary section."
ENTRY = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
STAR_FFT_ERROR = re.compile(
    r"^Begin of StarFFT section\.\n(?:(?!max|End of ).*\n)*max\(\|x-x0\|\): +(\S+)\n", re.MULTILINE
)

# In hpcc's source "G" is 10⁹, "T" is 10¹² and "usec" is 10⁻⁶ s, everywhere.
UNITS = {
    "_Tflops": ("flop/s", 1e12),
    "_Gflops": ("flop/s", 1e9),
    "_GUPs": ("update/s", 1e9),
    "_GBs": ("byte/s", 1e9),
    "_GBytes": ("byte/s", 1e9),
    "_usec": ("s", 1e-6),
    "_time": ("s", 1.0),
}
GIGABYTES = ("byte/s", 1e9)  # STREAM's keys carry no unit


class Figure(NamedTuple):
    """A key of the summary, and what it is in base units."""

    key: str
    scale: float
    metric: Metric


def _figure(key: str, meaning: str, primary: bool = False) -> Figure:
    suffix = next((suffix for suffix in UNITS if key.endswith(suffix)), "")
    unit, scale = UNITS.get(suffix, GIGABYTES)
    name = key if suffix == "_time" else key.removesuffix(suffix)
    kind = Kind.COST if unit == "s" else Kind.RATE_FIXED_WORK
    return Figure(key, scale, Metric(name=name, unit=unit, kind=kind, primary=primary, meaning=meaning))


def _count(name: str, meaning: str) -> Metric:
    return Metric(name=name, unit="1", kind=Kind.COUNT, meaning=meaning)


UPDATES = "updates of random words of a table in memory"
OF_EACH = "mean over processes that run at once"
OF_ONE = "one process, the others idle"
PASSES = "best of nine passes"
FIGURES = (
    _figure("HPL_Tflops", "dense linear system, all processes together", primary=True),
    _figure("HPL_time", "time to solve that system"),
    _figure("StarDGEMM_Gflops", f"product of dense matrices: {OF_EACH}"),
    _figure("SingleDGEMM_Gflops", f"product of dense matrices: {OF_ONE}"),
    _figure("PTRANS_GBs", "transposition of a distributed matrix, slowest of five, all processes together"),
    _figure("MPIRandomAccess_GUPs", f"{UPDATES} spread over all processes"),
    _figure("MPIRandomAccess_LCG_GUPs", f"{UPDATES} spread over all processes, linear congruential sequence"),
    _figure("StarRandomAccess_GUPs", f"{UPDATES}: {OF_EACH}"),
    _figure("StarRandomAccess_LCG_GUPs", f"{UPDATES}, linear congruential sequence: {OF_EACH}"),
    _figure("SingleRandomAccess_GUPs", f"{UPDATES}: {OF_ONE}"),
    _figure("SingleRandomAccess_LCG_GUPs", f"{UPDATES}, linear congruential sequence: {OF_ONE}"),
    _figure("StarSTREAM_Copy", f"a = b, {PASSES}: per process, all at once between two barriers"),
    _figure("StarSTREAM_Scale", f"a = s·b, {PASSES}: per process, all at once between two barriers"),
    _figure("StarSTREAM_Add", f"a = b + c, {PASSES}: per process, all at once between two barriers"),
    _figure("StarSTREAM_Triad", f"a = b + s·c, {PASSES}: per process, all at once between two barriers", primary=True),
    _figure("SingleSTREAM_Copy", f"a = b, {PASSES}: {OF_ONE}"),
    _figure("SingleSTREAM_Scale", f"a = s·b, {PASSES}: {OF_ONE}"),
    _figure("SingleSTREAM_Add", f"a = b + c, {PASSES}: {OF_ONE}"),
    _figure("SingleSTREAM_Triad", f"a = b + s·c, {PASSES}: {OF_ONE}"),
    _figure("StarFFT_Gflops", f"Fourier transform: {OF_EACH}"),
    _figure("SingleFFT_Gflops", f"Fourier transform: {OF_ONE}"),
    _figure("MPIFFT_Gflops", "one Fourier transform over the largest power of two of the processes"),
)
MESSAGES = (  # a single process has nobody to send to: hpcc then prints -1 for all of these
    _figure("MinPingPongLatency_usec", "8 bytes one way, fastest pair of processes"),
    _figure("AvgPingPongLatency_usec", "8 bytes one way, mean over pairs of processes"),
    _figure("MaxPingPongLatency_usec", "8 bytes one way, slowest pair of processes"),
    _figure("MinPingPongBandwidth_GBytes", "2 MB one way, slowest pair of processes"),
    _figure("AvgPingPongBandwidth_GBytes", "2 MB one way, mean over pairs of processes"),
    _figure("MaxPingPongBandwidth_GBytes", "2 MB one way, fastest pair of processes"),
    _figure("NaturallyOrderedRingLatency_usec", "8 bytes to both neighbours, all at once, ring in the order of ranks"),
    _figure("RandomlyOrderedRingLatency_usec", "8 bytes to both neighbours, all at once, mean of random rings"),
    _figure("NaturallyOrderedRingBandwidth_GBytes", "per process, 2 MB to both neighbours, ring in the order of ranks"),
    _figure("RandomlyOrderedRingBandwidth_GBytes", "per process, 2 MB to both neighbours, mean of random rings"),
)
SUCCESS = _count("success", "1: hpcc checked its own results and found them right; otherwise there are none here")
RESIDUAL = _count("HPL_residual", "scaled residual of HPL's solution; wrong from 16 upwards")
STAR_FFT = _count("StarFFT_maxErr", "largest error of process 0 after a Fourier transform and back")
CHECKS = (  # as they stand in the summary
    _count("PTRANS_residual", "largest error of the transposed matrix"),
    _count("MPIFFT_maxErr", "largest error after a Fourier transform and back"),
    _count("MPIRandomAccess_ErrorsFraction", "words of the table with a wrong value; up to 0.01 is allowed"),
    _count("MPIRandomAccess_LCG_ErrorsFraction", "words of the table with a wrong value; up to 0.01 is allowed"),
    _count("MPIRandomAccess_N", "words in the table"),
    _count("MPIRandomAccess_LCG_N", "words in the table"),
    _count("MPIRandomAccess_ExeUpdates", "updates made; fewer than 4 a word when 60 s were over first"),
    _count("MPIRandomAccess_LCG_ExeUpdates", "updates made; fewer than 4 a word when 60 s were over first"),
    _count("STREAM_VectorSize", "doubles in each of STREAM's three arrays, of one process"),
    _count("CommWorldProcs", "processes"),
)

FIXED_S = 6.0  # STREAM, FFT and, above all, the fixed number of messages of the latency test
UPDATES_BOUND_S = 60.0  # hpcc stops MPIRandomAccess after that
MPI_UPDATE_RATE = 1e7  # of all ranks together, over a slow network
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
    package = "hpcc"
    requires = ("hpcc", "mpirun")
    scopes = (Scope.WORKERS, Scope.NODE, Scope.CLUSTER)
    default_scopes = (Scope.WORKERS,)
    metrics = (*(figure.metric for figure in (*FIGURES, *MESSAGES)), SUCCESS, RESIDUAL, STAR_FFT, *CHECKS)
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

    def steps(self, params: HpccParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        return (step("hpcc", params, (known(params.n),), (params.nb,), target, launcher),)

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        text, source = output(record)
        summary = _summary(text, record)
        if summary.get("Success") != "1":
            what = "hpcc found its own results wrong: the summary does not say Success=1"
            raise refuse(record, what, summary.get("Success", text))
        alone = _value(summary, "CommWorldProcs", record) == 1
        values = {
            figure.metric: _positive(summary, figure.key, record) * figure.scale
            for figure in (FIGURES if alone else FIGURES + MESSAGES)
        }
        values[SUCCESS] = 1.0
        values[RESIDUAL] = max(row.residual for row in rows(text, record))
        (error,) = found(STAR_FFT_ERROR, text, record)
        if number(error, record) < 0:
            raise refuse(record, f"an error of StarFFT is {error}", error)
        values[STAR_FFT] = number(error, record)
        values |= {metric: _value(summary, metric.name, record) for metric in CHECKS}
        return tuple(Measurement.of(record, metric, value, source=source) for metric, value in values.items())

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


def _summary(text: str, record: TrialRecord) -> Mapping[str, Piece]:
    """The keys and values of the only summary. Raises ParseError when a key stands there twice."""
    if text.count(BEGIN) != 1:
        raise refuse(record, f"{text.count(BEGIN)} summaries instead of one", text)
    (section,) = found(SUMMARY, text, record)
    summary: dict[str, Piece] = {}
    for key, value in map(pieces, ENTRY.finditer(text, section.start, section.start + len(section))):
        if key in summary:
            raise refuse(record, f"{key} stands twice in the summary", key)
        summary[key] = value
    return summary


def _value(summary: Mapping[str, Piece], key: str, record: TrialRecord) -> float:
    """A number that cannot be negative: hpcc starts with -1 everywhere, so that is a test that did not run."""
    if key not in summary:
        raise refuse(record, f"the summary has no {key}", next(iter(summary.values())).whole)
    value = number(summary[key], record)
    if value < 0:
        raise refuse(record, f"{key}={summary[key]} in the summary: this test did not run", summary[key])
    return value


def _positive(summary: Mapping[str, Piece], key: str, record: TrialRecord) -> float:
    """A rate or a time."""
    value = _value(summary, key, record)
    if value == 0:
        raise refuse(record, f"{key}=0 in the summary: this test measured nothing", summary[key])
    return value
