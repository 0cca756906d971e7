"""T: whether every environment ran the same programs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.audit.imported.evidence import against_reference, runs, told, values
from vtax.evidence.campaign import Evidence, blocker, warning
from vtax.model.finding import Finding

BUILDS = {  # fact -> what it is, of which benchmarks
    "hpcc_compiled": ("hpcc was compiled on", ("hpcc",)),
    "FFT_API": ("the FFT of hpcc is", ("hpcc",)),
    "compiler": ("stress-ng was compiled with", ("stress-ng",)),
    "sysbench_lua": ("sysbench uses", ("sysbench-cpu", "sysbench-memory", "sysbench-fileio")),
    "iozone_version": ("iozone is version", ("iozone",)),
    "iperf3_version": ("iperf3 is version", ("iperf3",)),
}
SOLELY = frozenset({"hpcc_compiled", "FFT_API", "compiler"})  # another one is another program; the rest is a warning
APART = 2.0


def builds(evidence: Evidence) -> Iterator[Finding]:
    """T01: programs that were built at another time, with another compiler, or are of another version."""
    remedy = "run the same binaries everywhere; this may compare programs and libraries, not virtualization"
    for fact, (words, benchmarks) in BUILDS.items():
        for environment, theirs, ours in against_reference(told(evidence, fact, *benchmarks), evidence.reference):
            said = blocker if fact in SOLELY else warning
            message = f"{words} {theirs} in {environment}, {ours} in {evidence.reference}"
            for benchmark in benchmarks:
                if any(trial.environment == environment for trial, _ in runs(evidence, benchmark)):
                    yield said("T01", message, remedy, environment, benchmark)


def blas(evidence: Evidence) -> Iterator[Finding]:
    """T01: matrices that are multiplied far faster by one process than its memory is: another BLAS or kernel of it."""
    reference = evidence.reference
    ours = [values(evidence, reference, "hpcc", metric) for metric in ("SingleDGEMM", "SingleSTREAM_Triad")]
    for environment in {trial.environment: 0 for trial, _ in runs(evidence, "hpcc")}:
        theirs = [values(evidence, environment, "hpcc", metric) for metric in ("SingleDGEMM", "SingleSTREAM_Triad")]
        if environment == reference or not all((*ours, *theirs)):
            continue
        product, memory = (median(one) / median(other) for one, other in zip(theirs, ours, strict=True))
        if not 1 / APART <= product / memory <= APART:
            message = (
                f"one process multiplies matrices {product:.2f} times as fast in {environment} as in {reference}, but "
                f"moves memory {memory:.2f} times as fast: another BLAS, or another kernel of it"
            )
            yield blocker("T01", message, "compare the BLAS, and the CPU flags that it sees", environment, "hpcc")


def kernels(evidence: Evidence) -> Iterator[Finding]:
    """T02: another kernel or C library; a guest's own is expected, but part of any difference."""
    for fact, name in (("kernel", "kernel"), ("libc", "C library"), ("machine", "architecture")):
        for environment, theirs, ours in against_reference(told(evidence, fact), evidence.reference):
            message = f"{name} differs: {theirs} in {environment}, {ours} in {evidence.reference}"
            yield warning("T02", message, "where it can be the same, make it the same", environment)


def sizes(evidence: Evidence) -> Iterator[Finding]:
    """C03: nodes with other CPUs or another memory."""
    for environment, theirs, ours in against_reference(told(evidence, "cpus"), evidence.reference):
        message = f"nodes see {theirs} CPUs in {environment}, {ours} in {evidence.reference}"
        yield blocker("C03", message, "give all nodes the same CPUs", environment)
    for environment, theirs, ours in against_reference(told(evidence, "memory_bytes"), evidence.reference):
        message = f"nodes see {theirs} bytes of memory in {environment}, {ours} in {evidence.reference}"
        yield blocker("C03", message, "give all nodes the same memory", environment)
