"""What works on this machine, what does not, and the command that fixes it. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vtax.facts.host import host_facts
from vtax.image import build, recipe
from vtax.model.capabilities import NodeKind
from vtax.model.record import Record
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.providers import all_providers, runners
from vtax.providers import broken_plugins as broken_providers
from vtax.running.leftovers import leftovers
from vtax.tools import broken_plugins as broken_benchmarks
from vtax.transport import process

PROGRAMS = {
    "mmdebstrap": "apt-get install mmdebstrap",
    "ssh": "apt-get install openssh-client",
    "ssh-keygen": "apt-get install openssh-client",
    "unshare": "apt-get install util-linux",
    "ip": "apt-get install iproute2",
    "sysctl": "apt-get install procps",
    "skopeo": "apt-get install skopeo (for studies with an image of their own)",
    "umoci": "apt-get install umoci (for studies with an image of their own)",
}
WIDE = {"avx512f": ("SkylakeX", "Cooperlake", "SapphireRapids"), "avx2": ("Haswell", "Zen", "Excavator")}


class ProviderState(Record):
    name: str
    kind: NodeKind
    works: bool
    reason: str
    remedy: str  # how to make it work, or work better
    limits_memory: bool
    note: str = ""  # machine-specific status, if any


class Diagnosis(Record):
    """The machine and what works on it. `notes` are sentences for the user."""

    host: Mapping[str, Any]
    programs: Mapping[str, str]  # missing program -> the command that installs it
    providers: tuple[ProviderState, ...]
    image_reason: str  # why the root file system cannot be built here, "" when it can
    image_cached: str  # its directory when the default one is in the cache
    blas_core: str  # the kernel that OpenBLAS chooses in it, "" when unknown
    left_behind: int
    notes: tuple[str, ...]

    @property
    def works(self) -> bool:
        """Whether a comparison is possible: the host and at least one other kind of nodes."""
        kinds = {one.kind for one in self.providers if one.works}
        return NodeKind.HOST in kinds and len(kinds) > 1 and not self.image_reason


def diagnose(paths: Paths) -> Diagnosis:
    """Examine the machine."""
    facts = host_facts(runners=runners())
    programs = {name: command for name, command in PROGRAMS.items() if not process.installed(name)}
    states = []
    for name, one in all_providers(paths.runtime).items():
        reason = one.unavailable()
        states.append(
            ProviderState(
                name=name,
                kind=one.capabilities.kind,
                works=not reason,
                reason=reason,
                remedy=one.install_hint if reason else one.improvement_hint(),
                limits_memory=one.capabilities.limits_memory,
                note="" if reason else one.status_note(),
            )
        )
    image = build.cached(paths.images, recipe.recipe(ImageSpec(), build.find_machine_mirror()))
    core = build.blas_core(image) if image else ""
    return Diagnosis(
        host=facts,
        programs=programs,
        providers=tuple(states),
        image_reason=build.missing(),
        image_cached=image.directory if image else "",
        blas_core=core,
        left_behind=len(leftovers(paths)),
        notes=(*_notes(facts, core), *broken_benchmarks(), *broken_providers()),
    )


def _notes(facts: Mapping[str, Any], core: str) -> list[str]:
    notes = []
    flags = set(facts.get("cpu_flags", ()))
    for flag, cores in WIDE.items():
        if flag in flags:
            if core and core not in cores and not (flag == "avx2" and core in WIDE["avx512f"]):
                notes.append(
                    f"OpenBLAS chooses its kernel {core}, although the CPU has {flag}: HPL may reach only a fraction "
                    "of what the CPU can do; this is the same in every environment, and recorded"
                )
            break
    return notes
