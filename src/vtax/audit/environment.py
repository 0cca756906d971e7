"""T02 to T05: the kernel, the C library and the CPU as the nodes see them, and what runs them."""

from __future__ import annotations

import re
from typing import Any

from vtax.audit.evidence import Evidence, blocker, differences, emulated, shown, unknown, values_of, warning
from vtax.audit.programs import merged
from vtax.model import Finding

FACTS = {"kernel": "kernel", "libc": "C library", "microcode": "microcode"}

# Instructions that programs use; what a kernel alone uses (vmx, smep, ...) may be hidden without harm.
USED_BY_PROGRAMS = re.compile(
    r"(avx|amx|sse|ssse|fma|bmi|aes|vaes|sha|pclmul|vpclmul|gfni|f16c|popcnt|abm|adx|movbe|erms|fsrm|rdrand|rdtscp)"
)


def different(evidence: Evidence) -> tuple[Finding, ...]:
    """T02: kernel, C library, microcode or mitigations differ from the reference."""
    found = []
    for fact, name in FACTS.items():
        for one in differences(evidence, fact):
            message = f"{name} differs: {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
            why = "part of any difference may be its own"
            remedy = "a guest's kernel may differ; where it can be the same, make it the same"
            found.append(warning("T02", f"{message}{evidence.reference}; {why}", remedy, one.environment))
    for one in differences(evidence, "mitigations"):
        theirs, ours = merged(one.theirs), merged(one.reference)
        names = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
        here, there = theirs.get(names[0], "not listed"), ours.get(names[0], "not listed")
        message = (
            f"mitigations differ: {shown(names)} ({names[0]}: {here} in {one.environment}, {there} in "
            f"{evidence.reference}); they cost system calls and context switches"
        )
        remedy = "boot the guest with the same mitigations= as the host, or take their cost as part of it"
        found.append(warning("T02", message, remedy, one.environment))
    return tuple(found)


def hidden_flags(evidence: Evidence) -> tuple[Finding, ...]:
    """T03: instructions that the host's CPU has and a node does not see."""
    found = []
    for environment in evidence.environments:
        host = used(evidence.host_facts(environment).get("cpu_flags", ()))
        nodes = values_of(evidence, environment, "cpu_flags")
        if not host or not nodes:
            missing = "the CPU flags of the host are not known" if not host else "no node told its CPU flags"
            found.append(unknown("T03", missing, environment))
            continue
        for node, flags in nodes.items():
            hidden = sorted(host - {flag for seen in flags for flag in used(seen)})
            if hidden:
                message = f"{node} in {environment} lacks {shown(hidden)}, which the host's CPU has: other code runs"
                remedy = "give the guest the host's CPU model (host-passthrough, -cpu host)"
                said = warning if emulated(evidence, environment) else blocker  # of emulation, T04 says all
                found.append(said("T03", message, remedy, environment))
                break
    return tuple(found)


def emulation(evidence: Evidence) -> tuple[Finding, ...]:
    """T04: no CPU ran the guest's instructions, a program did."""
    found = []
    for environment in (name for name in evidence.environments if emulated(evidence, name)):
        message = f"{environment} ran in software emulation: its figures say nothing about virtualization"
        remedy = "run it where the CPU runs guests (`vtax doctor`); allow_emulation = true compares it all the same"
        said = warning if evidence.option(environment, "allow_emulation") is True else blocker
        found.append(said("T04", message, remedy, environment))
    return tuple(found)


def used(flags: Any) -> set[str]:
    """The flags of instructions that programs use."""
    return {flag for flag in flags if USED_BY_PROGRAMS.match(flag)}


def nested(evidence: Evidence) -> tuple[Finding, ...]:
    """T05: the host is a guest itself, so its own cost is in every environment."""
    facts = evidence.host_facts()
    if not facts.get("is_virtual"):
        return ()
    stack = ", in it ".join(facts.get("virtualization", ())) or "a virtual machine"
    message = (
        f"this host is itself virtual ({stack}): the baseline is not bare metal, virtual machines on it are nested, "
        "and results do not transfer to real hardware"
    )
    return (warning("T05", message, "run the campaign on bare metal"),)
