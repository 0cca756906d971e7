"""The machine that vtax itself runs on: what it offers, and what it runs inside of.

Reads /proc, /sys and /etc; needs no root. Nothing here claims that a thing works because its device file exists.
"""

from __future__ import annotations

import hashlib
import os
import pwd
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from vtax.facts import cgroup, nesting
from vtax.facts.cpu import TOPOLOGY_FILES, cpu_list, last_caches, model_values, topology_values
from vtax.facts.node import KERNEL_FILES, kernel_values, mounts
from vtax.facts.sections import fields, kibibytes, present, whole
from vtax.model.nodes import HostCapacity, LastCache

CPUS = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
OTHER_RUNNERS = {"vmware-vmx": "virtual machines"}  # of hypervisors that vtax has no provider for

Read = Callable[[str], str]


def host_facts(root: Path = Path("/"), runners: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Everything that can be observed here, ready for JSON; /proc, /sys, /dev and /etc are those below `root`.

    `runners`: program that runs a container or virtual machine, one process each -> what these are counted as.
    """

    def read(path: str) -> str:
        try:
            return (root / path.lstrip("/")).read_text("utf-8", "replace").strip("\n")
        except OSError:  # not there, not readable, or an error of the driver
            return ""

    values: dict[str, object] = {
        **kernel_values(existing(root, read, KERNEL_FILES)),
        **cpu_values(root, read),
        **memory_values(root, read),
        **virtualization_values(root, read),
        "running": running(root, runners or {}),
        **user_values(read, name_of(os.geteuid()), os.geteuid()),
        **identity_values(read),
        "slurm_job": slurm_job(os.environ),
    }
    observed: dict[str, Any] = dict(present(values))
    observed["virtualization"] = values["virtualization"]
    return observed


def capacity(facts: Mapping[str, Any]) -> HostCapacity:
    """The CPUs this process may use, one of every core before any second one, and the memory it may use.

    A CPU quota below the number of CPUs shortens the list, since more CPUs than that cannot run at full speed.
    Raises KeyError when the facts have no CPUs or no memory.
    """
    usable = tuple(facts["cpus_usable"])
    cores = {cpu["id"]: (cpu.get("socket", 0), cpu.get("core", cpu["id"])) for cpu in facts.get("cpus", ())}
    ordered = cores_first(usable, cores)
    if "cpu_quota_cpus" in facts:
        ordered = ordered[: max(1, int(facts["cpu_quota_cpus"]))]
    total = facts["memory_total_bytes"]
    return HostCapacity(
        cpu_ids=ordered,
        memory_bytes=min(total, facts.get("memory_limit_bytes", total)),
        last_caches=tuple(map(LastCache.model_validate, facts.get("last_caches", ()))),
    )


def cores_first(cpus: tuple[int, ...], cores: Mapping[int, tuple[int, int]]) -> tuple[int, ...]:
    """`cpus` with the first hardware thread of every core before any second one; unknown CPUs count as own cores."""
    seen: dict[tuple[int, int], int] = {}
    ranked = []
    for cpu in sorted(cpus):
        core = cores.get(cpu, (-1, cpu))
        ranked.append((seen.get(core, 0), cpu))
        seen[core] = seen.get(core, 0) + 1
    return tuple(cpu for _, cpu in sorted(ranked))


def cpu_values(root: Path, read: Read) -> dict[str, object]:
    """Model and flags, every CPU's place, and which of them this process may use."""
    model = model_values(read("/proc/cpuinfo"))
    flags = model["cpu_flags"] if isinstance(model["cpu_flags"], list) else []
    nodes = {
        cpu: number
        for path in (root / "sys/devices/system/node").glob("node[0-9]*")
        if (number := whole(path.name.removeprefix("node"))) is not None
        for cpu in cpu_list(read(f"/sys/devices/system/node/{path.name}/cpulist"))
    }
    cpus = []
    for cpu in cpu_list(read(f"{CPUS}/online")):
        topology = f"{CPUS}/cpu{cpu}/topology"
        place = {
            "core": whole(read(f"{topology}/core_id")),
            "socket": whole(read(f"{topology}/physical_package_id")),
            "siblings": list(cpu_list(read(f"{topology}/thread_siblings_list"))),
            "numa_node": nodes.get(cpu),
        }
        cpus.append({"id": cpu, **dict(present(place))})
    files = existing(root, read, TOPOLOGY_FILES)
    return {
        **model,
        "cpus": cpus,
        "cpus_usable": sorted(os.sched_getaffinity(0)),
        **topology_values(files, tuple(sorted(os.sched_getaffinity(0)))),
        "last_caches": [
            {"cpu_ids": list(cpus), "size_bytes": size} for cpus, size in sorted(last_caches(files).items())
        ],
        "virtualization_extensions": sorted({"vmx", "svm"} & set(flags)),
    }


def identity_values(read: Read) -> dict[str, object]:
    """What shows that a machine is another one than before: its system's id, and the version of its firmware. The id is
    confidential, so a hash of it is kept."""
    machine_id = read("/etc/machine-id").strip()
    firmware = (read(f"/sys/class/dmi/id/{name}").strip() for name in ("bios_vendor", "bios_version", "bios_date"))
    return {
        "machine_id": hashlib.sha256(f"vtax {machine_id}".encode()).hexdigest()[:16] if machine_id else None,
        "firmware": " ".join(filter(None, firmware)) or None,
    }


def slurm_job(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The allocation of Slurm that this process runs in, and how Slurm calls its node; None outside of one."""
    if "SLURM_JOB_ID" not in environment:
        return None
    names = {"job": "SLURM_JOB_ID", "node": "SLURMD_NODENAME", "restarts": "SLURM_RESTART_COUNT"}
    return {name: environment[variable] for name, variable in names.items() if variable in environment}


def existing(root: Path, read: Read, patterns: Iterable[str]) -> dict[str, str]:
    """Path -> content of the files that match and hold anything."""
    found = (f"/{path.relative_to(root)}" for pattern in patterns for path in sorted(root.glob(pattern.lstrip("/"))))
    return {path: text for path in found if (text := read(path))}


def memory_values(root: Path, read: Read) -> dict[str, object]:
    """Memory of the machine, and the control groups of this process with their limits."""
    memory, membership = fields(read("/proc/meminfo")), read("/proc/self/cgroup")
    table = mounts(read("/proc/self/mountinfo"))
    groups = cgroup.levels(group_files(root, read, membership))
    controllers = {name for line in membership.splitlines() for name in line.split(":")[1:2] if name}
    unified = read("/sys/fs/cgroup/cgroup.controllers") or read("/sys/fs/cgroup/unified/cgroup.controllers")
    return {
        "memory_total_bytes": kibibytes(memory.get("MemTotal")),
        "memory_available_bytes": kibibytes(memory.get("MemAvailable")),
        "swap_total_bytes": kibibytes(memory.get("SwapTotal")),
        "memory_limit_bytes": cgroup.memory_limit_bytes(groups),
        "cpu_quota_cpus": cgroup.cpu_quota_cpus(groups),
        "cgroup_version": cgroup.version(table, membership),
        "cgroup_controllers": sorted({*",".join(controllers).split(","), *unified.split()} - {"", "name=systemd"}),
    }


def group_files(root: Path, read: Read, membership: str) -> str:
    """What the shell function `cgroup_levels` prints on a node, read here without a shell."""
    lines = []
    for entry in membership.splitlines():
        number, _, rest = entry.partition(":")
        controllers, _, path = rest.partition(":")
        mounted = ["/sys/fs/cgroup"] if number == "0" else [f"/sys/fs/cgroup/{name}" for name in controllers.split(",")]
        for mount in mounted:
            for directory in inside_out(root, mount, path):
                for name in cgroup.FILES.split():
                    lines += [f"{directory}/{name}:{line}" for line in read(f"{directory}/{name}").splitlines()]
    return "\n".join(lines)


def inside_out(root: Path, mount: str, path: str) -> list[str]:
    """The directories of a group and of all groups around it, as far as they are mounted."""
    names = [name for name in path.split("/") if name and name != ".."]
    while names and not (root / mount.lstrip("/")).joinpath(*names).is_dir():
        names = names[1:]
    return ["/".join((mount, *names[:depth])) for depth in range(len(names), -1, -1)]


def virtualization_values(root: Path, read: Read) -> dict[str, object]:
    """What this machine runs inside of, and what it has to run virtual machines itself."""
    model = model_values(read("/proc/cpuinfo"))
    flags = model["cpu_flags"] if isinstance(model["cpu_flags"], list) else []
    dmi = {name: read(f"/sys/class/dmi/id/{name}") for name in ("product_name", "sys_vendor")}
    markers = tuple(path for path in ("/.dockerenv", "/run/.containerenv") if (root / path.lstrip("/")).exists())
    links = [link(root / "proc/self/ns" / kind) for kind in nesting.FIRST_NAMESPACES]
    evidence = nesting.Evidence(
        flags=tuple(flags),
        cpu_model=str(model["cpu_model"] or ""),
        dmi=" ".join(dmi.values()),
        hypervisor_type=read("/sys/hypervisor/type"),
        clock_sources=read(f"{CLOCK}/available_clocksource"),
        namespaces=nesting.namespaces("\n".join(links)),
        markers=markers,
        container=read("/run/systemd/container"),
        membership=read("/proc/self/cgroup"),
    )
    stack = nesting.stack(evidence)
    return {
        "virtualization": stack,
        "is_virtual": bool(nesting.machine(evidence)),
        "hypervisor": nesting.hypervisor(evidence) if nesting.machine(evidence) else "",
        "dmi_vendor": dmi["sys_vendor"],
        "dmi_product": dmi["product_name"],
        "kvm": kvm(root / "dev/kvm"),
    }


def link(path: Path) -> str:
    """Where a symbolic link points; "" when there is none."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def kvm(device: Path) -> str:
    """Whether /dev/kvm opens, which does not mean that a guest runs."""
    if not device.exists():
        return "absent"
    try:
        descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"present, does not open: {error.strerror}"
    os.close(descriptor)
    return "opens"


def name_of(uid: int) -> str:
    """The name of a user, or the number where it has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def user_values(read: Read, user: str, uid: int) -> dict[str, object]:
    """Whether this user may make user namespaces, and which subordinate ids it has."""
    limit = whole(read("/proc/sys/user/max_user_namespaces"))
    refused = [
        name
        for name, value in (
            ("kernel.unprivileged_userns_clone", "0"),
            ("kernel.apparmor_restrict_unprivileged_userns", "1"),
        )
        if uid != 0 and read(f"/proc/sys/{name.replace('.', '/', 1)}").strip() == value
    ]
    return {
        "euid": uid,
        "user_namespaces": None if limit is None else limit > 0 and not refused,
        "user_namespaces_refused_by": refused,
        "subuid": subordinate(read("/etc/subuid"), user, uid),
        "subgid": subordinate(read("/etc/subgid"), user, uid),
    }


def subordinate(text: str, user: str, uid: int) -> list[str]:
    """The `first:count` ranges that /etc/subuid or /etc/subgid gives to a user, by name or number."""
    entries = (line.strip().split(":") for line in text.splitlines())
    return [f"{entry[1]}:{entry[2]}" for entry in entries if len(entry) == 3 and entry[0] in (user, str(uid))]


def running(root: Path, runners: Mapping[str, str]) -> dict[str, int]:
    """How many containers and virtual machines run on this machine, as far as this process may see them."""
    runners = {**OTHER_RUNNERS, **runners}
    counts = dict.fromkeys(runners.values(), 0)
    for place in (root / "proc").glob("[0-9]*"):
        try:
            program = (place / "cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace").rpartition("/")[2]
        except OSError:
            continue  # gone meanwhile
        if program in runners:
            counts[runners[program]] += 1
    return counts
