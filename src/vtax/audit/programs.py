"""T01 and T10: whether every environment ran the same programs, of the root file system and of a study's own image."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from vtax.evidence.campaign import Evidence, canonical, differences, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.facts.blas import AVX2_CORES, AVX512_CORES, OTHER_CORES
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord
from vtax.providers.base import WORKLOAD
from vtax.tools import tools
from vtax.tools.tool import Build

BUILDS = tuple(build for tool in tools() for build in tool.builds)
VERSIONS = tuple(
    Build(fact, f"{package} is version", decisive=False) for tool in tools() for fact, package in tool.versions.items()
)
APART = 2.0  # times: one process multiplies matrices faster than its memory explains


@row(
    "T01",
    Severity.BLOCKER,
    "programs, libraries or their versions differ",
    short="different programs",
    why="then libraries are compared, not virtualization",
    remedy="give all environments the same root file system, or run the same binaries",
    source="hashes and versions of programs, the BLAS build and steering variables of every node; in logs the "
    "versions, compilers and dates that programs print, and DGEMM against STREAM of one process",
    needs=(
        Needs("the hashes of its programs", node=("binary_sha256",), origin=Origin.RUN),
        Needs(
            "versions, compilers, dates of compilation",
            facts=tuple(build.fact for build in (*VERSIONS, *BUILDS)),
            compares=True,
            origin=Origin.IMPORTED,
        ),
        Needs("DGEMM and STREAM of one process", metrics=("SingleDGEMM",), compares=True, origin=Origin.IMPORTED),
    ),
)
def different(evidence: Evidence) -> Iterator[Result]:
    """T01: binaries, versions, BLAS build or variables that steer libraries differ from the reference."""
    if evidence.plan.origin is Origin.IMPORTED:
        yield from builds(evidence)
        yield from matrices(evidence)
        return
    yield from mapping_differs(evidence, "binary_sha256", "program")
    yield from mapping_differs(evidence, "versions", "package")
    yield from variables_differ(evidence)
    chosen = (values_of(evidence, environment, "blas_core") for environment in evidence.environments)
    cores = {str(core).lower() for nodes in chosen for seen in nodes.values() for core in seen}
    for fact, name in (("mpi_version", "MPI"), ("blas_config", "BLAS build")):
        for one in differences(evidence, fact):
            theirs, ours = (without_core(shown(values), fact, cores) for values in (one.theirs, one.reference))
            if theirs != ours:
                message = f"{name} in {one.environment} is {theirs}, in {one.base} {ours}"
                yield Failed(f"{message}: programs are compared", one.environment, against=one.base)
    for environment in evidence.environments:
        yield f"{environment}: hashes of {shown(sorted(all_values(evidence, environment, 'binary_sha256')))}"


def without_core(config: str, fact: str, cores: set[str]) -> str:
    """OpenBLAS names the kernel that it chose in its configuration, which is T07's matter; kernels are single words.
    `cores` are those that nodes named."""
    if fact != "blas_config":
        return config
    known = cores | AVX512_CORES | AVX2_CORES | OTHER_CORES
    return " ".join(word for word in config.split() if word.lower() not in known)


def mapping_differs(evidence: Evidence, fact: str, kind: str) -> Iterator[Failed]:
    """One for each environment that has other values under the same names than what it is compared with."""
    for one in differences(evidence, fact):
        theirs, ours = merged(one.theirs), merged(one.reference)
        names = sorted(name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name])
        if names:
            name = names[0]
            message = (
                f"{kind} differs between {one.environment} and {one.base}: {shown(names)} "
                f"({name}: {brief(theirs[name])}, {brief(ours[name])}); this compares programs, not virtualization"
            )
            yield Failed(message, one.environment, against=one.base)


def variables_differ(evidence: Evidence) -> Iterator[Failed]:
    """A variable that steers a library and has another value; one that is not set is not a fact of the node."""
    for environment, base in evidence.pairs:
        ours, theirs = (all_values(evidence, name, "environment_overrides") for name in (base, environment))
        names = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
        if names:
            name = names[0]
            here, there = theirs.get(name, "not set"), ours.get(name, "not set")
            message = (
                f"variables that steer libraries differ: {shown(names)} ({name} in {environment}: {here}, in "
                f"{base}: {there}); the same program then runs other code"
            )
            yield Failed(message, environment, remedy="unset them in the shell that starts vtax", against=base)


def builds(evidence: Evidence) -> Iterator[Result]:
    """Of logs: programs of another version, or built differently."""
    for fact, words, decisive in (*VERSIONS, *BUILDS):
        values = evidence.values_by_environment(fact)
        for environment, theirs in values.items():
            ours = values.get(evidence.reference, theirs)
            if set(theirs) == set(ours):
                yield f"{words} {shown(theirs)} in {environment}"
                continue
            message = f"{words} {shown(theirs)} in {environment}, {shown(ours)} in {evidence.reference}"
            for benchmark in evidence.benchmarks_with(fact, environment):
                yield Failed(message, environment, benchmark, None if decisive else Severity.WARNING)


def matrices(evidence: Evidence) -> Iterator[Result]:
    """Of logs: one process multiplies matrices far faster than its memory explains: another BLAS, or kernel of it."""
    metrics = ("SingleDGEMM", "SingleSTREAM_Triad")
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in evidence.measurements:
        if one.metric in metrics:
            found.setdefault((one.benchmark, one.environment), {}).setdefault(one.metric, []).append(one.value)
    for (benchmark, environment), theirs in found.items():
        ours = found.get((benchmark, evidence.reference), {})
        if environment == evidence.reference or not all(name in each for name in metrics for each in (ours, theirs)):
            continue
        product, memory = (median(theirs[name]) / median(ours[name]) for name in metrics)
        said = (
            f"one process multiplies matrices {product:.2f} times as fast in {environment} as in "
            f"{evidence.reference}, and moves memory {memory:.2f} times as fast"
        )
        if 1 / APART <= product / memory <= APART:
            yield said
        else:
            remedy = "compare the BLAS, and the CPU flags that it sees"
            yield Failed(f"{said}: another BLAS, or another kernel of it", environment, benchmark, remedy=remedy)


def all_values(evidence: Evidence, environment: str, fact: str) -> dict[str, Any]:
    """All entries of a mapping that is a fact, over all nodes."""
    return merged(tuple(value for values in values_of(evidence, environment, fact).values() for value in values))


def merged(mappings: tuple[Any, ...]) -> dict[str, Any]:
    """Entries of several mappings; where they differ among themselves, all values."""
    found: dict[str, list[Any]] = {}
    for mapping in mappings:
        for name, value in mapping.items():
            if value not in found.setdefault(str(name), []):
                found[str(name)].append(value)
    return {name: values[0] if len(values) == 1 else sorted(values, key=canonical) for name, values in found.items()}


def brief(value: object) -> str:
    """A hash by its beginning."""
    text = str(value)
    return f"{text[:12]}…" if len(text) >= 64 else text


def entered(trial: TrialRecord) -> bool:
    """Whether a command of a trial ran in the study's own image."""
    return any(WORKLOAD in step.argv for step in trial.steps)


def has_own_image(evidence: Evidence) -> str:
    return "" if any(map(entered, evidence.trials)) else "no command ran in an image of the study's own"


@row(
    "T10",
    Severity.BLOCKER,
    "the study's own image differs, or what is written into it is on another kind of storage",
    short="unequal own images",
    why="then images are compared, not virtualization; and files in memory are not files on a disk",
    remedy="run all environments with the same image; keep the state directory of vtax, where the host and containers "
    "write, on a file system that can hold the upper layer of an overlay (ext4, xfs, btrfs)",
    source="the description of the image on every node, and the mount table of the machine",
    needs=Needs("the study's own image on its nodes", node=("workload_digest",), origin=Origin.RUN),
    applies=has_own_image,
    about=entered,
    note="a warning where only the storage differs: figures of what is written into the image, not of /scratch and the "
    "shared directory, are then of two kinds of storage",
)
def own_image(evidence: Evidence) -> Iterator[Result]:
    """T10: the image that commands ran in, and where its upper layer is."""
    for one in differences(evidence, "workload_digest"):
        message = f"the image in {one.environment} has sha256 {shown(one.theirs)}, in {one.base} {shown(one.reference)}"
        yield Failed(message, one.environment, against=one.base)
    for one in differences(evidence, "workload_layer"):
        theirs, ours = ({kind == "tmpfs" for kind in kinds} for kinds in (one.theirs, one.reference))
        if theirs != ours:
            message = (
                f"what is written into the image is on {shown(one.theirs)} in {one.environment}, on "
                f"{shown(one.reference)} in {one.base}"
            )
            yield Failed(message, one.environment, severity=Severity.WARNING, against=one.base)
    for environment in evidence.environments:
        found = {
            fact: sorted({str(value) for each in values_of(evidence, environment, fact).values() for value in each})
            for fact in ("workload_digest", "workload_libc", "workload_layer")
        }
        if found["workload_digest"]:
            digest, libc, layer = (shown(values) or "unknown" for values in found.values())
            yield f"{environment}: sha256 {digest}, libc {libc}, written to {layer}"
