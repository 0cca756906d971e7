"""T01, T07: whether every environment ran the same programs, with the same kernels inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vtax.evidence.campaign import (
    Evidence,
    blocker,
    canonical,
    differences,
    shown,
    unknown,
    values_of,
)
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity

ONE_IMAGE = "give all environments the same root file system"

# Kernels of OpenBLAS by the widest vectors that they use (lower case).
AVX512_CORES = frozenset({"skylakex", "cooperlake", "sapphirerapids"})
AVX2_CORES = frozenset({"haswell", "zen", "excavator"})


@row(
    "T01",
    Severity.BLOCKER,
    "programs, libraries or their versions differ",
    why="then libraries are compared, not virtualization",
    remedy=ONE_IMAGE,
    source="hashes and versions of programs, the BLAS build and steering variables of every node; of imported logs the "
    "versions that they print",
)
def different(evidence: Evidence) -> Iterator[Finding | str]:
    """T01: binaries, versions, BLAS build or variables that steer libraries differ from the reference."""
    found = [
        *mapping_findings(evidence, "binary_sha256", "program"),
        *mapping_findings(evidence, "versions", "package"),
        *variable_findings(evidence),
    ]
    cores = {
        str(core).lower()
        for environment in evidence.environments
        for seen in values_of(evidence, environment, "blas_core").values()
        for core in seen
    }
    for fact, name in (("mpi_version", "MPI"), ("blas_config", "BLAS build")):
        for one in differences(evidence, fact):
            pair = [without_core(shown(values), fact, cores) for values in (one.theirs, one.reference)]
            if pair[0] != pair[1]:
                message = f"{name} in {one.environment} is {pair[0]}, in {evidence.reference} {pair[1]}"
                found.append(blocker("T01", f"{message}: programs are compared", ONE_IMAGE, one.environment))
    yield from found
    for environment in evidence.environments:
        if hashes := all_values(evidence, environment, "binary_sha256"):
            yield f"{environment}: hashes of {shown(sorted(hashes))}"
        else:
            yield unknown("T01", "no hashes of the programs were taken", environment)


def without_core(config: str, fact: str, cores: set[str]) -> str:
    """OpenBLAS names the kernel that it chose in its configuration, which is T07's matter; kernels are single words.
    `cores` are those that nodes named."""
    if fact != "blas_config":
        return config
    words = config.split()
    known = cores | AVX512_CORES | AVX2_CORES | {"sandybridge", "nehalem", "prescott", "core2", "penryn", "generic"}
    return " ".join(word for word in words if word.lower() not in known)


def mapping_findings(evidence: Evidence, fact: str, kind: str) -> Iterator[Finding]:
    """One finding for each environment that has other values than the reference under the same names."""
    for one in differences(evidence, fact):
        theirs, ours = merged(one.theirs), merged(one.reference)
        names = sorted(name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name])
        if names:
            name = names[0]
            message = (
                f"{kind} differs between {one.environment} and {evidence.reference}: {shown(names)} "
                f"({name}: {brief(theirs[name])}, {brief(ours[name])}); this compares programs, not virtualization"
            )
            yield blocker("T01", message, ONE_IMAGE, one.environment)


def variable_findings(evidence: Evidence) -> Iterator[Finding]:
    """A variable that steers a library and is set otherwise; one that nobody set is not a fact of the node."""
    ours = all_values(evidence, evidence.reference, "environment_overrides")
    for environment in evidence.compared:
        theirs = all_values(evidence, environment, "environment_overrides")
        names = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
        if names:
            name = names[0]
            here, there = theirs.get(name, "not set"), ours.get(name, "not set")
            message = (
                f"variables that steer libraries differ: {shown(names)} ({name} in {environment}: {here}, in "
                f"{evidence.reference}: {there}); the same program then runs other code"
            )
            yield blocker("T01", message, "unset them in the shell that starts vtax", environment)


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
