"""What HPC Challenge and HPL measure: the figures of hpcc's summary, and of every system that xhpl solves."""

from __future__ import annotations

from typing import NamedTuple

from vtax.model.metric import Kind, Metric

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
    meaning="time of one solution, computed from the rate, because xhpl prints the time to 0.01 s only",
)
RESIDUAL = Metric(
    name="residual", unit="1", kind=Kind.COUNT, meaning="scaled residual of one solution; wrong from 16 upwards"
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
    _figure("PTRANS_time", "time of a transposition"),
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
MESSAGES = (  # a single process has no peer to send to: hpcc then prints -1 for all of these
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
SUCCESS = _count("success", "1: hpcc found its results correct; without it there are no results")
HPL_RESIDUAL = _count("HPL_residual", "scaled residual of HPL's solution; wrong from 16 upwards")
STAR_FFT = _count("StarFFT_maxErr", "largest error of process 0 after a Fourier transform and back")
CHECKS = (  # as they stand in the summary
    _count("PTRANS_residual", "largest error of the transposed matrix"),
    _count("MPIFFT_maxErr", "largest error after a Fourier transform and back"),
    _count("MPIRandomAccess_ErrorsFraction", "words of the table with a wrong value; up to 0.01 is allowed"),
    _count("MPIRandomAccess_LCG_ErrorsFraction", "words of the table with a wrong value; up to 0.01 is allowed"),
    _count("MPIRandomAccess_N", "words in the table"),
    _count("MPIRandomAccess_LCG_N", "words in the table"),
    _count("MPIRandomAccess_ExeUpdates", "updates made; fewer than 4 per word if 60 s ran out first"),
    _count("MPIRandomAccess_LCG_ExeUpdates", "updates made; fewer than 4 per word if 60 s ran out first"),
    _count("STREAM_VectorSize", "doubles in each of STREAM's three arrays, of one process"),
    _count("CommWorldProcs", "processes"),
)
HPL_METRICS = (HPL, HPL_TIME, RESIDUAL)
HPCC_METRICS = (*(figure.metric for figure in (*FIGURES, *MESSAGES)), SUCCESS, HPL_RESIDUAL, STAR_FFT, *CHECKS)
