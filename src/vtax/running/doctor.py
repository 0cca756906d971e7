"""What works on this machine, what does not, and the command that mends it. Looks; changes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from vtax.facts.host import host_facts
from vtax.image import build, recipe
from vtax.model.record import Record
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.planning.preparation import all_providers
from vtax.providers import broken_plugins as broken_providers
from vtax.running.leftovers import leftovers
from vtax.tools import broken_plugins as broken_benchmarks

PROGRAMS = {
    "mmdebstrap": "apt-get install mmdebstrap",
    "ssh": "apt-get install openssh-client",
    "ssh-keygen": "apt-get install openssh-client",
    "unshare": "apt-get install util-linux",
}
WIDE = {"avx512f": ("SkylakeX", "Cooperlake", "SapphireRapids"), "avx2": ("Haswell", "Zen", "Excavator")}


class ProviderState(Record):
    name: str
    works: bool
    reason: str
    remedy: str  # what makes it work, or work better
    limits_memory: bool
    note: str = ""  # how it works here, where that is not the same everywhere


class Diagnosis(Record):
    """The machine and everything that was asked of it. `notes` are sentences for a person."""

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
        """Whether a comparison is possible: the host and at least one other provider."""
        able = [one.name for one in self.providers if one.works]
        return "host" in able and len(able) > 1 and not self.image_reason


def diagnose(paths: Paths) -> Diagnosis:
    """Ask the machine."""
    facts = host_facts()
    search = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    programs = {name: mend for name, mend in PROGRAMS.items() if shutil.which(name, path=search) is None}
    states = []
    for name, one in all_providers(paths).items():
        reason = one.unavailable()
        states.append(
            ProviderState(
                name=name,
                works=not reason,
                reason=reason,
                remedy=one.mend if reason else one.advice(),
                limits_memory=one.capabilities.limits_memory,
                note="" if reason else one.note(),
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
        notes=(*_notes(facts, core, states), *broken_benchmarks(), *broken_providers()),
    )


def _notes(facts: Mapping[str, Any], core: str, states: list[ProviderState]) -> list[str]:
    notes = []
    flags = set(facts.get("cpu_flags", ()))
    for flag, cores in WIDE.items():
        if flag in flags:
            if core and core not in cores and not (flag == "avx2" and core in WIDE["avx512f"]):
                notes.append(
                    f"OpenBLAS chooses its kernel {core}, though the CPU has {flag}: HPL may show a fraction of what "
                    "the CPU can do; it does so in every environment alike, and is recorded"
                )
            break
    if os.geteuid() != 0 and any(one.name == "host" and one.works for one in states):
        notes.append("without root, the host environment pins CPUs but has no memory limit: the audit says so")
    return notes
