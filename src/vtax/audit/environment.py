"""T02 to T06, T08, T09: kernel, C library and CPU as the nodes see them, what runs them, and the process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vtax.audit.programs import merged
from vtax.evidence.campaign import Evidence, canonical, differences, emulated, observed, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import ADDITIONAL, Failed, Result, row
from vtax.model.capabilities import NodeKind
from vtax.model.finding import Severity
from vtax.model.plan import Origin

FACTS = {"kernel": "kernel", "libc": "C library", "microcode": "microcode", "machine": "architecture"}

# Instructions that programs use; what a kernel alone uses (vmx, smep, ...) may be hidden without harm.
USED_BY_PROGRAMS = re.compile(
    r"(avx|amx|sse|ssse|fma|bmi|aes|vaes|sha|pclmul|vpclmul|gfni|f16c|popcnt|abm|adx|movbe|erms|fsrm|rdrand|rdtscp)"
)
STEADY = {
    "boot_id": "the boot",
    "kernel": "the kernel",
    "microcode": "the microcode",
    "cpu_model": "the model of the CPU",
    "dmi_product": "the machine",
    "machine_id": "the identity of the machine",
    "firmware": "the firmware",
}
COMPLETE: tuple[str, frozenset[str]] = ("", frozenset())  # no node lacks an instruction
DECISIVE = frozenset({"vm_accelerator", "vm_network"})  # another one is another environment


@row(
    "T02",
    Severity.WARNING,
    "kernel, C library, microcode or mitigations differ",
    short="different system software",
    why="they change the cost of system calls and context switches, so they may account for part of any difference",
    remedy="a guest's kernel may differ; where it can be the same, make it the same",
    source="facts of every node; in logs the kernel and the C library that they print",
    needs=(
        Needs("the kernel of its nodes", node=("kernel",), origin=Origin.RUN),
        Needs("kernels and C libraries", node=("kernel", "libc", "machine"), compares=True, origin=Origin.IMPORTED),
    ),
)
def different(evidence: Evidence) -> Iterator[Result]:
    """T02: kernel, C library, microcode or mitigations differ from the reference."""
    for environment in evidence.environments:
        kernels = {str(v) for every in values_of(evidence, environment, "kernel").values() for v in every}
        if kernels:
            yield f"{environment}: kernel {shown(sorted(kernels))}"
    for fact, name in FACTS.items():
        for one in differences(evidence, fact):
            message = f"{name} differs: {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
            yield Failed(message + one.base, one.environment, against=one.base)
    for one in differences(evidence, "mitigations"):
        theirs, ours = merged(one.theirs), merged(one.reference)
        names = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
        here, there = theirs.get(names[0], "not listed"), ours.get(names[0], "not listed")
        message = f"mitigations differ: {shown(names)} ({names[0]}: {here} in {one.environment}, {there} in {one.base})"
        remedy = "boot the guest with the same mitigations= as the host, or take their cost as part of it"
        yield Failed(message, one.environment, remedy=remedy, against=one.base)


@row(
    "T03",
    Severity.BLOCKER,
    "instructions of the host's CPU are hidden from a node",
    short="hidden CPU instructions",
    why="libraries then run other code (such as AVX2 instead of AVX-512), and that is published as a cost of "
    "virtualization",
    remedy="give the guest the host's CPU model (host-passthrough, -cpu host)",
    source="/proc/cpuinfo of the host and of every node",
    needs=Needs("the CPU flags of the host and of its nodes", ("cpu_flags",), ("cpu_flags",), origin=Origin.RUN),
    note="a note where what it is compared with lacks them too",
)
def hidden_flags(evidence: Evidence) -> Iterator[Result]:
    """T03: instructions that the host's CPU has and a node does not see."""
    hidden = {environment: lacking(evidence, environment) for environment in evidence.environments}
    for environment, (node, flags) in hidden.items():
        if not flags:
            yield f"{environment}: every node has all instructions of the host"
            continue
        message = f"{node} in {environment} lacks {shown(sorted(flags))}, which the host's CPU has: other code runs"
        others = [other for both in evidence.pairs if environment in both for other in both if other != environment]
        unlike = [other for other in dict.fromkeys(others) if flags - hidden.get(other, COMPLETE)[1]]
        # T04 says all about emulation
        severity = Severity.WARNING if emulated(evidence, environment) else None
        yield from (Failed(f"{message} than in {other}", environment, "", severity, against=other) for other in unlike)
        if not unlike:  # what it is compared with lacks them too
            yield Failed(message, environment, severity=Severity.INFO)


def lacking(evidence: Evidence, environment: str) -> tuple[str, frozenset[str]]:
    """The first node that lacks instructions of the host's CPU, and which; none where all have all."""
    machines = [used(facts["cpu_flags"]) for facts in evidence.machines_facts(environment) if "cpu_flags" in facts]
    host = set.intersection(*machines)  # where nodes are on several, what all of these have
    for node, several in values_of(evidence, environment, "cpu_flags").items():
        if flags := host - {flag for seen in several for flag in used(seen)}:
            return node, frozenset(flags)
    return COMPLETE


def used(flags: Any) -> set[str]:
    """The flags of instructions that programs use."""
    return {flag for flag in flags if USED_BY_PROGRAMS.match(flag)}


@row(
    "T04",
    Severity.BLOCKER,
    "an environment ran in software emulation",
    short="software emulation",
    why="the guest's instructions were run by a program instead of a CPU: that is not virtualization",
    remedy="run it on a host with working KVM (`vtax doctor`); allow_emulation = true compares it all the same",
    source="what the provider records, and the virtualization that its nodes detect",
    whole=True,
    note="such an environment is not compared, and no other row looks at it, apart from those about the course of the "
    "campaign (R02, R03, R07); a note where the study says what an emulated environment runs (`emulated`), a warning "
    "where it allows the comparison, a blocker where it was not foreseen, or where the baseline is emulated",
    needs=(
        Needs("the virtualization that its nodes detect", node=("virtualization", "emulated"), origin=Origin.RUN),
        Needs("the commands that started it", commands=True, origin=Origin.RUN),
    ),
)
def emulation(evidence: Evidence) -> Iterator[Result]:
    """T04: no CPU ran the guest's instructions, a program did."""
    for environment in evidence.environments:
        if not emulated(evidence, environment):
            yield f"{environment}: no software emulation"
        elif environment not in evidence.emulated:
            allowed = evidence.option(environment, "allow_emulation") is True
            message = f"{environment} ran in software emulation: its figures say nothing about virtualization"
            yield Failed(message, environment, severity=Severity.WARNING if allowed else None)
        else:
            message = f"{environment} works here, but in software emulation: its figures say nothing about "
            message += "virtualization, and it is not compared"
            yield Failed(message, environment, severity=Severity.INFO if foreseen(evidence, environment) else None)


def foreseen(evidence: Evidence, environment: str) -> bool:
    """Whether the study says what to run in an environment that is emulated."""
    return any(spec.emulated is not None for spec in evidence.plan.environments if spec.name == environment)


@row(
    "T05",
    Severity.WARNING,
    "the host is itself a virtual machine",
    short="a virtual host",
    why="the baseline is not bare metal, virtual machines on it are nested, and results do not transfer to real "
    "hardware",
    remedy="run the campaign on bare metal",
    source="the `hypervisor` flag, DMI and clock sources of the host",
    note="a note where no virtual machine is compared: what is alike below all environments does not favour one of "
    "them, and only nested machines pay for it twice",
    needs=Needs("whether the host is virtual", host=("is_virtual",), origin=Origin.RUN),
)
def nested(evidence: Evidence) -> Iterator[Result]:
    """T05: the host is a guest itself, so its own cost is in every environment."""
    facts = evidence.host_facts()
    if not facts.get("is_virtual"):
        yield "the host is not a virtual machine, as far as can be detected from inside"
        return
    stack = ", in it ".join(facts.get("virtualization", ())) or "a virtual machine"
    guests = [name for name in evidence.environments if evidence.capabilities(name).kind is NodeKind.VM]
    severity = Severity.WARNING if guests else Severity.INFO
    yield Failed(f"this host is itself virtual ({stack})", severity=severity)


@row(
    "T06",
    Severity.INFO,
    "stacks and libraries are at the same addresses in every run",
    short="a fixed memory layout",
    why="the size of the environment variables moves the stack, which alone made programs 10 % faster or slower; with "
    "randomised addresses that is noise, without them it is a bias",
    remedy="set kernel.randomize_va_space to 2, or vary the size of the environment between rounds",
    source="size of the environment variables, working directory and randomize_va_space of every node",
    needs=Needs("whether its nodes randomise addresses", node=("aslr",), origin=Origin.RUN),
    note="passes where addresses are randomised at every start: the place of the stack is then noise and not a bias",
)
def layout(evidence: Evidence) -> Iterator[Result]:
    """T06: what fixes the layout of processes."""
    for environment in evidence.environments:
        randomised = {str(value) for values in values_of(evidence, environment, "aslr").values() for value in values}
        sizes = values_of(evidence, environment, "environment_bytes")
        size = ", ".join(f"{node} {'/'.join(map(str, values))}" for node, values in sizes.items()) or "unknown"
        said = f"{environment}: randomize_va_space {shown(sorted(randomised))}, bytes of environment variables {size}"
        yield said if randomised == {"2"} else Failed(said, environment)


@row(
    "T08",
    Severity.WARNING,
    "the machine changed during the campaign",
    short="a machine that changed",
    why="rounds before and after a reboot, an update or a migration are rounds on two machines; a campaign that was "
    "resumed later does not notice by itself",
    remedy="check whether the difference between environments is the same before and after; if not, run a new campaign",
    source="facts of the machine at every cell",
    needs=Needs("facts of the machine", host=tuple(STEADY), origin=Origin.RUN),
    note=ADDITIONAL,
)
def machine_changed(evidence: Evidence) -> Iterator[Result]:
    """T08: another boot, kernel, CPU or machine in later cells."""
    for machine, several in evidence.identities.items():
        where = f"{machine}: " if machine else ""
        for fact, name in STEADY.items():
            values = {canonical(facts[fact]): (cell, facts[fact]) for cell, facts in reversed(several) if fact in facts}
            if len(values) > 1:
                (_, first), (cell, later) = sorted(values.values(), key=lambda one: one[0].started)[:2]
                yield Failed(f"{where}{name} was {first} and, from cell {cell.cell} on, {later}")
        known = (name for fact, name in STEADY.items() if fact in several[0][1])
        yield f"{where}{len(several)} cells: {', '.join(known)}"


def machine_facts(evidence: Evidence) -> tuple[str, ...]:
    """What providers recorded of their virtual machines in any cell: names of facts."""
    found = (name for place in evidence.environments for _, values in observed(evidence, place) for name in values)
    return tuple(sorted({name for name in found if name.startswith("vm_")}))


def has_machines(evidence: Evidence) -> str:
    return "" if machine_facts(evidence) else "no provider recorded how it made virtual machines"


@row(
    "T09",
    Severity.BLOCKER,
    "virtual machines of one environment were made differently in some cells",
    short="virtual machines made differently",
    why='"auto" is resolved in every cell, so a device, a module or a program that comes or goes during the campaign '
    "makes two environments of one name",
    remedy='name what is wanted (such as `network = "tap"`) instead of "auto", and run a new campaign',
    source="what the provider recorded of every machine when it made it",
    applies=has_machines,
    note=ADDITIONAL,
)
def machines_changed(evidence: Evidence) -> Iterator[Result]:
    """T09: a fact of how a node's virtual machine was made that has several values."""
    for environment in evidence.environments:
        names = [name for name in machine_facts(evidence) if values_of(evidence, environment, name)]
        for name in names:
            nodes = values_of(evidence, environment, name)
            if several := next(((node, values) for node, values in nodes.items() if len(values) > 1), None):
                message = f"{name} of {several[0]} in {environment} was {shown(several[1])}, depending on the cell"
                yield Failed(message, environment, severity=None if name in DECISIVE else Severity.WARNING)
        if names:
            cells = sum(cell.environment == environment for cell in evidence.provisioned)
            yield f"{environment}: {len(names)} facts of its machines over {cells} cells"
