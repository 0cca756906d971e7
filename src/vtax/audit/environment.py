"""T02 to T06, T08, T09: kernel, C library and CPU as the nodes see them, what runs them, and the process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vtax.audit.programs import merged
from vtax.evidence.campaign import (
    Evidence,
    blocker,
    canonical,
    differences,
    emulated,
    info,
    observed,
    shown,
    unknown,
    values_of,
    warning,
)
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity

FACTS = {"kernel": "kernel", "libc": "C library", "microcode": "microcode"}

# Instructions that programs use; what a kernel alone uses (vmx, smep, ...) may be hidden without harm.
USED_BY_PROGRAMS = re.compile(
    r"(avx|amx|sse|ssse|fma|bmi|aes|vaes|sha|pclmul|vpclmul|gfni|f16c|popcnt|abm|adx|movbe|erms|fsrm|rdrand|rdtscp)"
)


@row(
    "T02",
    Severity.WARNING,
    "kernel, C library, microcode or mitigations differ",
    why="they change the cost of system calls and switches, so a part of any difference may be theirs",
    remedy="a guest's kernel may differ; where it can be the same, make it the same",
    source="facts of every node; imported logs do not tell",
)
def different(evidence: Evidence) -> Iterator[Finding | str]:
    """T02: kernel, C library, microcode or mitigations differ from the reference."""
    for environment in evidence.environments:
        kernels = {str(v) for every in values_of(evidence, environment, "kernel").values() for v in every}
        if kernels:
            yield f"{environment}: kernel {shown(sorted(kernels))}"
        else:
            yield unknown("T02", "no node told its kernel", environment)
    for fact, name in FACTS.items():
        for one in differences(evidence, fact):
            message = f"{name} differs: {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
            why = "part of any difference may be its own"
            remedy = "a guest's kernel may differ; where it can be the same, make it the same"
            yield warning("T02", f"{message}{evidence.reference}; {why}", remedy, one.environment)
    for one in differences(evidence, "mitigations"):
        theirs, ours = merged(one.theirs), merged(one.reference)
        names = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
        here, there = theirs.get(names[0], "not listed"), ours.get(names[0], "not listed")
        message = (
            f"mitigations differ: {shown(names)} ({names[0]}: {here} in {one.environment}, {there} in "
            f"{evidence.reference}); they cost system calls and context switches"
        )
        remedy = "boot the guest with the same mitigations= as the host, or take their cost as part of it"
        yield warning("T02", message, remedy, one.environment)


@row(
    "T03",
    Severity.BLOCKER,
    "instructions of the host's CPU are hidden from a node",
    why="libraries then run other code (AVX2 instead of AVX-512, say), which is published as a cost of virtualization",
    remedy="give the guest the host's CPU model (host-passthrough, -cpu host)",
    source="/proc/cpuinfo of the host and of every node; imported logs do not tell",
)
def hidden_flags(evidence: Evidence) -> Iterator[Finding | str]:
    """T03: instructions that the host's CPU has and a node does not see."""
    for environment in evidence.environments:
        host = used(evidence.host_facts(environment).get("cpu_flags", ()))
        nodes = values_of(evidence, environment, "cpu_flags")
        if not host or not nodes:
            missing = "the CPU flags of the host are not known" if not host else "no node told its CPU flags"
            yield unknown("T03", missing, environment)
            continue
        for node, flags in nodes.items():
            hidden = sorted(host - {flag for seen in flags for flag in used(seen)})
            if hidden:
                message = f"{node} in {environment} lacks {shown(hidden)}, which the host's CPU has: other code runs"
                remedy = "give the guest the host's CPU model (host-passthrough, -cpu host)"
                said = warning if emulated(evidence, environment) else blocker  # of emulation, T04 says all
                yield said("T03", message, remedy, environment)
                break
        else:
            yield f"{environment}: all {len(host)} kinds of instructions of the host"


@row(
    "T04",
    Severity.BLOCKER,
    "an environment ran in software emulation",
    why="no CPU ran the guest's instructions, a program did: that is no virtualization",
    remedy="run it on a host with working KVM; allow_emulation = true compares it all the same",
    source="what the provider records and what the nodes see of their machine; imported logs do not tell",
)
def emulation(evidence: Evidence) -> Iterator[Finding | str]:
    """T04: no CPU ran the guest's instructions, a program did."""
    known = {name for name in evidence.environments if values_of(evidence, name, "virtualization")}
    made_here = {cell.environment for cell in evidence.provisioned if cell.commands}
    missing = "what its nodes run inside of is not known"
    yield from (unknown("T04", missing, name) for name in evidence.environments if name not in known | made_here)
    for environment in evidence.environments:
        if not emulated(evidence, environment):
            if environment in known | made_here:
                yield f"{environment}: no software emulation"
            continue
        message = f"{environment} ran in software emulation: its figures say nothing about virtualization"
        remedy = "run it where the CPU runs guests (`vtax doctor`); allow_emulation = true compares it all the same"
        said = warning if evidence.option(environment, "allow_emulation") is True else blocker
        yield said("T04", message, remedy, environment)


def used(flags: Any) -> set[str]:
    """The flags of instructions that programs use."""
    return {flag for flag in flags if USED_BY_PROGRAMS.match(flag)}


@row(
    "T05",
    Severity.WARNING,
    "the host is a virtual machine itself",
    why="the baseline is not bare metal, virtual machines on it are nested, and results do not transfer",
    remedy="run the campaign on bare metal",
    source="the `hypervisor` flag, DMI and clock sources of the host; imported logs do not tell",
)
def nested(evidence: Evidence) -> Iterator[Finding | str]:
    """T05: the host is a guest itself, so its own cost is in every environment."""
    facts = evidence.host_facts()
    if "is_virtual" not in facts:
        yield unknown("T05", "what the machine runs inside of is not known")
        return
    if not facts["is_virtual"]:
        yield "the host is no virtual machine, as far as the inside can tell"
        return
    stack = ", in it ".join(facts.get("virtualization", ())) or "a virtual machine"
    message = (
        f"this host is itself virtual ({stack}): the baseline is not bare metal, virtual machines on it are nested, "
        "and results do not transfer to real hardware"
    )
    yield warning("T05", message, "run the campaign on bare metal")


@row(
    "T06",
    Severity.INFO,
    "the place of stacks and libraries in memory is the same in every run",
    why="the size of the environment variables moves the stack, which alone made programs 10 % faster or slower; with "
    "the addresses drawn anew at every start it is noise, without it is a bias",
    remedy="set kernel.randomize_va_space to 2, or vary the size of the environment between rounds",
    source="size of the environment variables, working directory and randomize_va_space of every node; imported logs "
    "do "
    "not tell",
)
def layout(evidence: Evidence) -> Iterator[Finding | str]:
    """T06: what fixes the layout of processes."""
    for environment in evidence.environments:
        drawn = {str(value) for values in values_of(evidence, environment, "aslr").values() for value in values}
        sizes = values_of(evidence, environment, "environment_bytes")
        if not drawn:
            yield unknown("T06", "no node told whether addresses are drawn anew", environment)
            continue
        size = ", ".join(f"{node} {'/'.join(map(str, values))}" for node, values in sizes.items()) or "not known"
        said = f"{environment}: randomize_va_space {shown(sorted(drawn))}, bytes of environment variables {size}"
        if drawn != {"2"}:
            yield info("T06", said, "", environment)
        else:
            yield said


STEADY = {
    "boot_id": "the boot",
    "kernel": "the kernel",
    "microcode": "the microcode",
    "cpu_model": "the model of the CPU",
    "dmi_product": "the machine",
}


@row(
    "T08",
    Severity.WARNING,
    "the machine changed during the campaign",
    why="rounds before and after a reboot, an update or a migration are rounds on two machines; a campaign that was "
    "resumed later does not notice by itself",
    remedy="look whether the difference between environments is the same before and after; else run a new campaign",
    source="facts of the machine at every cell; imported logs do not tell",
)
def machine_changed(evidence: Evidence) -> Iterator[Finding | str]:
    """T08: another boot, kernel, CPU or machine in later cells. Not in METHOD's catalogue."""
    cells = [cell for cell in evidence.provisioned if cell.host_facts]
    for fact, name in STEADY.items():
        told = {canonical(cell.host_facts[fact]): cell for cell in reversed(cells) if fact in cell.host_facts}
        if len(told) > 1:
            first, *later = sorted(told.values(), key=lambda cell: cell.started)
            message = (
                f"{name} was {first.host_facts[fact]} and, from cell {later[0].cell} on, {later[0].host_facts[fact]}"
            )
            yield warning("T08", message)
    if not any(fact in cell.host_facts for cell in cells for fact in STEADY):
        yield unknown("T08", "the facts of the machine were not kept")
    else:
        yield f"{len(cells)} cells: " + ", ".join(name for fact, name in STEADY.items() if fact in cells[0].host_facts)


DECISIVE = frozenset({"vm_accelerator", "vm_network"})  # another one is another environment


def told_machines(evidence: Evidence) -> tuple[str, ...]:
    """What providers told of their virtual machines in any cell: names of facts."""
    found = (name for place in evidence.environments for _, values in observed(evidence, place) for name in values)
    return tuple(sorted({name for name in found if name.startswith("vm_")}))


def has_machines(evidence: Evidence) -> str:
    return "" if told_machines(evidence) else "no provider told how it made virtual machines"


@row(
    "T09",
    Severity.BLOCKER,
    "virtual machines of one environment were made otherwise in some cells",
    why='"auto" is settled anew in every cell, so a device, a module or a program that comes or goes during the '
    "campaign makes two environments of one name",
    remedy='name what is wanted (`network = "tap"`, say) in place of "auto", and run a new campaign',
    source="what the provider told of every machine when it made it; imported logs do not tell",
    applies=has_machines,
)
def machines_changed(evidence: Evidence) -> Iterator[Finding | str]:
    """T09: a fact of how a node's virtual machine was made that has several values. Not in METHOD's catalogue."""
    for environment in evidence.environments:
        names = [name for name in told_machines(evidence) if values_of(evidence, environment, name)]
        for name in names:
            nodes = values_of(evidence, environment, name)
            if several := next(((node, values) for node, values in nodes.items() if len(values) > 1), None):
                node, values = several
                message = f"{name} of {node} in {environment} was {shown(values)}, by cell"
                said = blocker if name in DECISIVE else warning
                yield said("T09", message, "", environment)
        if names:
            cells = sum(cell.environment == environment for cell in evidence.provisioned)
            yield f"{environment}: {len(names)} facts of its machines over {cells} cells"
