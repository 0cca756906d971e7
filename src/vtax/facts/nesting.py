"""What a machine runs inside of, outermost first, from evidence that several sources give; nothing is assumed.

The first namespaces of a kernel have fixed numbers. A marker such as /.dockerenv without own namespaces is only a file
that came with a root file system, and does not make a container.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST_NAMESPACES = {
    "ipc": 4026531839,
    "uts": 4026531838,
    "user": 4026531837,
    "pid": 4026531836,
}  # include/linux/proc_ns.h: IPC, UTS, USER, PID _INIT_INO
NAMESPACE = re.compile(r"^([a-z]+):\[([0-9]{1,19})\]$", re.MULTILINE)

# Words in DMI and the hypervisor that they show, in the order in which they are searched.
DMI_WORDS = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("virtual machine microsoft", "Hyper-V"),
    ("xen", "Xen"),
    ("bochs", "Bochs"),
    ("bhyve", "bhyve"),
    ("parallels", "Parallels"),
    ("amazon ec2", "KVM"),
    ("google compute engine", "KVM"),
    ("kvm", "KVM"),
)
EMULATION = "software emulation"
CONTAINER_PATHS = (("docker", "docker"), ("libpod", "podman"), ("kubepods", "kubernetes"), ("lxc", "lxc"))


@dataclass(frozen=True)
class Evidence:
    """What the sources show; "" where one shows nothing. `dmi` is product name and vendor, `vendor` that of cpuid."""

    flags: tuple[str, ...] = ()
    cpu_model: str = ""
    dmi: str = ""
    vendor: str = ""
    hypervisor_type: str = ""  # /sys/hypervisor/type
    clock_sources: str = ""
    namespaces: Mapping[str, int] = field(default_factory=dict)
    markers: tuple[str, ...] = ()  # /.dockerenv, /run/.containerenv, as far as they exist
    container: str = ""  # /run/systemd/container
    membership: str = ""  # /proc/self/cgroup


def namespaces(text: str) -> dict[str, int]:
    """Kind -> number, from `readlink /proc/self/ns/*`."""
    return {kind: int(number) for kind, number in NAMESPACE.findall(text)}


def stack(evidence: Evidence) -> list[str]:
    """`["virtual machine (KVM)", "container (docker)"]`; empty is bare metal, as far as can be seen from inside."""
    return [*machine(evidence), *container(evidence)]


def machine(evidence: Evidence) -> list[str]:
    """The virtual machine, if the CPU reports a hypervisor."""
    if "hypervisor" not in evidence.flags and not evidence.hypervisor_type:
        return []
    return [f"virtual machine ({hypervisor(evidence) or 'hypervisor not identified'})"]


def hypervisor(evidence: Evidence) -> str:
    """The hypervisor of this virtual machine, or "". VirtualBox also offers the KVM clock, so DMI comes first."""
    if evidence.hypervisor_type:
        return evidence.hypervisor_type.capitalize()
    dmi = evidence.dmi.lower()
    named = next((name for word, name in DMI_WORDS if word in dmi), "")
    if named:
        return named
    if "TCG" in evidence.cpu_model:
        return f"QEMU, {EMULATION}"
    if evidence.vendor:
        return evidence.vendor
    if "kvm-clock" in evidence.clock_sources:
        return "KVM"
    if "hyperv" in evidence.clock_sources:
        return "Hyper-V"
    return "QEMU" if "qemu" in dmi or "qemu" in evidence.cpu_model.lower() else ""


def container(evidence: Evidence) -> list[str]:
    """The container, if the process has own namespaces; without a marker only the namespaces are named."""
    own = sorted(kind for kind, first in FIRST_NAMESPACES.items() if evidence.namespaces.get(kind, first) != first)
    if not own:
        return []
    kind = evidence.container
    contained = len({"ipc", "pid", "uts"} & set(own)) >= 2  # what every container has, unless configured differently
    if not kind and evidence.markers and contained:
        kind = "docker" if "/.dockerenv" in evidence.markers else "podman"
    if not kind:
        kind = next((name for word, name in CONTAINER_PATHS if f"/{word}" in evidence.membership), "")
    return [f"container ({kind})"] if kind else [f"own namespaces ({', '.join(own)})"]
