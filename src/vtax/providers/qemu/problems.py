"""What keeps virtual machines from working here as the study asks. Changes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape
from vtax.providers.qemu.command import HUGE_PAGE, MIB, QEMU, Accelerator, QemuOptions, cpu_models
from vtax.providers.qemu.kvm import Answer
from vtax.transport import process

HUGE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")


def emulation(name: str, options: QemuOptions, accel: Accelerator, kvm: Answer) -> Iterator[Problem]:
    """Where KVM does not work: a blocker or a warning; `kvm` is the reason, empty where KVM is not wanted."""
    if options.accel == "kvm" and kvm.reason:
        yield Problem.blocker(
            f"no working KVM on this machine: {kvm.reason}",
            f'{kvm.remedy}; or set accel = "tcg" for software emulation',
        )
    elif accel == "tcg":
        why = f": {kvm.reason}" if kvm.reason else ""
        remedy = kvm.remedy or "run on a host with working KVM"
        yield Problem.warning(
            f"{name} runs in software emulation{why}; its results say nothing about virtualization",
            f"{remedy}; allow_emulation = true compares it anyway",
        )


def cpu(options: QemuOptions, accel: Accelerator) -> Iterator[Problem]:
    """Whether this QEMU has the CPU that was asked for."""
    name = (options.cpu or "").partition(",")[0]
    if not name:
        return
    known = cpu_models(process.run((QEMU, "-cpu", "help"), timeout_s=20).stdout)
    if name == "host" and accel == "tcg":
        yield Problem.blocker(
            'cpu = "host" needs KVM, and this environment runs in software emulation',
            'set cpu = "max", or leave it out',
        )
    elif name not in known:
        near = difflib.get_close_matches(name, known, n=5, cutoff=0.4)
        yield Problem.blocker(
            f"this QEMU has no CPU model {name!r}",
            f"choose {', '.join(near)}; `{QEMU} -cpu help` lists all" if near else f"`{QEMU} -cpu help` lists all",
        )


def huge_pages(shape: ClusterShape, options: QemuOptions) -> Iterator[Problem]:
    """Huge pages that are asked for but not free, and memory sizes that are not multiples of them."""
    if not options.hugepages:
        return
    for node in shape.nodes:
        if node.memory_bytes % HUGE_PAGE:
            yield Problem.blocker(
                f"{node.name} has {node.memory_bytes / MIB:g} MiB of memory, which is not a multiple of 2 MiB, "
                "the size of `hugepages`",
                "set `memory` to an even number of MiB, or leave `hugepages` out",
            )
    wanted = sum(-(-node.memory_bytes // HUGE_PAGE) for node in shape.nodes)
    free = int(HUGE.read_text()) if HUGE.exists() else 0
    if free < wanted:
        yield Problem.blocker(
            f"the nodes need {wanted} huge pages of 2 MiB, but {free} are free",
            f"as root: echo {wanted} >/proc/sys/vm/nr_hugepages",
        )
