"""T07: which kernels the BLAS chose, on which every figure of linear algebra depends."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.campaign import Evidence, differences, emulated, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import ADDITIONAL, Failed, Result, row
from vtax.facts.blas import AVX2_CORES, AVX512_CORES
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.tools.hpcc.audit import PROGRAMS


@row(
    "T07",
    Severity.BLOCKER,
    "the BLAS chose another kernel",
    short="another BLAS kernel",
    why="which kernel runs decides HPL by up to a factor of five, with the same library and the same CPU",
    remedy="give guests the host's CPU model, and unset OPENBLAS_CORETYPE",
    source="`vtax-blas` on every node",
    benchmarks=PROGRAMS,
    needs=Needs(
        "the kernel that the BLAS chose (by vtax-blas in the image)",
        node=("blas_core",),
        each="entry",
        origin=Origin.RUN,
    ),
    note=ADDITIONAL,
)
def blas_core(evidence: Evidence) -> Iterator[Result]:
    """T07: the BLAS chose another kernel than in the reference, or one that leaves vectors of the CPU unused."""
    labels = evidence.labels_of(*PROGRAMS)
    for one in differences(evidence, "blas_core"):
        message = (
            f"the BLAS runs its {shown(one.theirs)} kernel in {one.environment} and its {shown(one.reference)} kernel "
            f"in {one.base} ({one.node}): two programs are compared"
        )
        severity = Severity.WARNING if emulated(evidence, one.environment) else None
        yield from (Failed(message, one.environment, label, severity, against=one.base) for label in labels)
    for environment in evidence.environments:
        cores = {str(core) for seen in values_of(evidence, environment, "blas_core").values() for core in seen}
        every = values_of(evidence, environment, "cpu_flags").values()
        flags = {flag for values in every for value in values for flag in value}
        if cores:
            yield f"{environment}: {shown(sorted(cores))}"
        for core in sorted(cores):
            yield from (one for label in labels for one in unfit(environment, label, core, flags))


def unfit(environment: str, label: str, core: str, flags: set[str]) -> Iterator[Failed]:
    """A kernel that does not use the widest vectors of the CPU: alike everywhere, but not this machine's best; or one
    that needs wider ones than the CPU reports."""
    if unused := unused_vectors(core, flags):
        message = f"the CPU has {unused}, the {core} kernel of the BLAS in {environment} does not use it"
        remedy = "a newer OpenBLAS may know this CPU; all figures of linear algebra are below what it can do"
        yield Failed(message, environment, label, Severity.INFO, remedy)
    elif core.lower() in AVX512_CORES and flags and "avx512f" not in flags:
        message = f"the {core} kernel of the BLAS in {environment} needs AVX-512, which the CPU does not report"
        yield Failed(message, environment, label, Severity.WARNING, "unset OPENBLAS_CORETYPE")


def unused_vectors(core: str, flags: set[str]) -> str:
    """The vectors that a CPU has and a kernel of OpenBLAS does not use; "" when it uses the widest."""
    if "avx512f" in flags and core.lower() not in AVX512_CORES:
        return "AVX-512"
    if {"avx2", "fma"} <= flags and core.lower() not in AVX512_CORES | AVX2_CORES:
        return "AVX2"
    return ""
