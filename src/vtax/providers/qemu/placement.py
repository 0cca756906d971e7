"""On which CPUs the threads of running machines and switches run."""

from __future__ import annotations

import os
from typing import Any

from vtax.model.nodes import ClusterShape
from vtax.providers.guest import pinning
from vtax.providers.qemu import qmp
from vtax.providers.qemu.command import Machine, QemuOptions
from vtax.providers.qemu.processes import processes


def pin(machine: Machine, options: QemuOptions) -> tuple[str, dict[str, Any]]:
    """Pin the threads of a machine. Returns the sentence for the record, and the facts."""
    node = machine.node
    if not options.pin:
        return pinning.unpinned_sentence(node), {"vm_pinned": False}
    pid = int((machine.directory / "pid").read_text())
    workers = pinning.vhost_workers(pid) if machine.vhost else ()
    places = pinning.pin(pid, qmp.threads(machine.directory / "qmp"), node.cpu_ids, workers)
    facts = {"vm_pinned": True, "vm_cpu_places": list(places), "vm_emulator_cpus": list(node.cpu_ids)}
    if not machine.vhost:
        return pinning.pinned_sentence(node, places), facts
    facts["vm_vhost_cpus"] = list(node.cpu_ids) if workers else []
    how = "with them" if workers else "not found, so where the host puts it"
    return f"{pinning.pinned_sentence(node, places)}; vhost {how}", facts


def pin_switch(
    campaign: str, shape: ClusterShape, options: QemuOptions
) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Pin the switch of a cluster, where it has one, to the CPUs of its nodes. Returns the same as `pin`."""
    if not options.pin or options.network != "switch":
        return (), {}
    cpus = sorted({cpu for node in shape.nodes for cpu in node.cpu_ids})
    for one in processes():
        if one.campaign == campaign and not one.node:
            os.sched_setaffinity(one.pid, cpus)
    return (f"switch: on CPU {','.join(map(str, cpus))}",), {"vm_switch_cpus": cpus}
