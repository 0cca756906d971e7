"""The facts of one node, in one go: a POSIX shell script for its root file system, and a pure parser.

The script needs coreutils, grep and sed; what other tools would show is left out where they are missing. Commands that
could wait for another machine have their own time limit, and none waits for input. It starts as few processes as
it can: where the CPU is emulated, each takes a twentieth of a second.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from vtax.facts import cgroup, nesting
from vtax.facts.cpu import TOPOLOGY_FILES, agreed, chosen, cpu_list, model_values, topology_values, turbo
from vtax.facts.sections import END, PRELUDE, contents, decimal, fields, kibibytes, present, split, whole
from vtax.model.cluster import NodeFacts

PACKAGES = ("openmpi-bin", "libopenblas0-pthread", "libc6")  # besides those of the tools
LIBRARY_HEAD_BYTES = 2**20  # holds the build id, and costs 1/40 of the whole library

WORKLOAD, WORKLOAD_ROOT = "/workload/workload.json", "/workload/root"  # of the study's own image, where there is one
OVERRIDES = "^((OPENBLAS|GOTO|OMP|GOMP|KMP|MALLOC)_[A-Z0-9_]+|LD_PRELOAD|LD_LIBRARY_PATH|GLIBC_TUNABLES)="

KERNEL_FILES = (  # that `kernel_values` reads, on nodes and on the host
    *("/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/randomize_va_space"),
    *("/proc/sys/kernel/random/boot_id", "/proc/sys/vm/nr_hugepages", "/proc/sys/vm/swappiness"),
    *("/proc/sys/net/ipv4/tcp_congestion_control", "/proc/loadavg", "/proc/pressure/cpu", "/etc/os-release"),
    *("/sys/devices/system/cpu/vulnerabilities/*", "/sys/devices/system/cpu/smt/control"),
    *("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", "/sys/devices/system/cpu/cpufreq/boost"),
    *("/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/kernel/mm/transparent_hugepage/enabled"),
    "/sys/devices/system/clocksource/clocksource0/*_clocksource",
)
SCRIPT = f"""\
section files
try grep -as '' {" ".join(KERNEL_FILES)} \\
  /sys/class/dmi/id/product_name /sys/class/dmi/id/sys_vendor /sys/hypervisor/type /run/systemd/container \\
  {" ".join(TOPOLOGY_FILES)} /sys/devices/system/node/node[0-9]*/cpulist \\
  /sys/block/*/dev /sys/block/*/*/dev /sys/block/*/queue/scheduler /sys/class/net/*/speed {WORKLOAD}
section status
try grep -aE '^(Cpus_allowed_list|CapEff|Seccomp):' /proc/self/status
section memory
try grep -aE '^(MemTotal|SwapTotal):' /proc/meminfo
section cpuinfo
try sed '/^$/q' /proc/cpuinfo
section cpuid
try lscpu
section namespaces
try readlink /proc/self/ns/ipc /proc/self/ns/pid /proc/self/ns/user /proc/self/ns/uts
for marker in /.dockerenv /run/.containerenv; do [ -e "$marker" ] && echo "$marker"; done
section cgroup
while read -r line; do echo "$line"; done </proc/self/cgroup
section levels
cgroup_levels
section mounts
try sed '/ - \\(cgroup\\|nfs\\|nfs4\\) /!s/ - \\([^ ]* [^ ]*\\) .*/ - \\1/' /proc/self/mountinfo
section filesystems
try stat -f -c %n:%T / "$scratch"
limited stat -f -c %n:%T "$shared"
section limits
ulimit -Sn; ulimit -Hn
section process
ulimit -s; ulimit -l; wc -c </proc/$$/environ; echo "$PWD"
section space
try df -P -k "$scratch" "$shared"
section libc
try getconf GNU_LIBC_VERSION
section network
try ip -j -d addr show; for link in /sys/class/net/*/device; do [ -e "$link" ] && echo "physical $link"; done
section packages
try dpkg-query -W -f '${{Package}} ${{Version}}\\n' $packages
section mpi
limited mpirun --version | (read -r line && echo "$line")
section environment
env | grep -E '{OVERRIDES}'
section blas
try vtax-blas
section hashes
set --
for program in $hashed; do
  path=$(command -v "$program") && set -- "$@" "$path"
done
[ $# -eq 0 ] || try sha256sum "$@" | while read -r hash path; do echo "${{path##*/}} $hash $path"; done
for path in /usr/lib/*/libopenblas.so.0 /usr/lib64/libopenblas.so.0; do
  [ -f "$path" ] || continue
  echo "libopenblas $(try stat -L -c %s "$path") $(try head -c {LIBRARY_HEAD_BYTES} "$path" | sha256sum)"
done
try sha256sum /var/lib/dpkg/status
"""

HASH = re.compile(r"^([\w.+-]+) \\?([0-9a-f]{64}) ", re.MULTILINE)
PACKAGES_HASH = re.compile(r"^([0-9a-f]{64})  /var/lib/dpkg/status$", re.MULTILINE)
LIBRARY = re.compile(r"^libopenblas ([0-9]+) ([0-9a-f]{64}) ", re.MULTILINE)
MOUNT = re.compile(r"^[0-9]+ [0-9]+ [0-9:]+ [^ ]+ ([^ ]+) .*? - ([^ ]+) ", re.MULTILINE)
OCTAL = re.compile(r"\\([0-7]{3})")
DEVICE = re.compile(r"^[0-9]+ [0-9]+ ([0-9]+:[0-9]+) [^ ]+ ([^ ]+) ([^ ]+) ", re.MULTILINE)
SPACE = re.compile(r"^\S+ +([0-9]{1,15}) +[0-9]+ +([0-9]{1,15}) +[0-9]+% (/.*)$", re.MULTILINE)
BLOCK = re.compile(r"/sys/block/([^/]+)/(?:[^/]+/)?dev")
PHYSICAL = re.compile(r"^physical /sys/class/net/([^/\n]+)/device$", re.MULTILINE)
SECCOMP = {"0": "disabled", "1": "strict", "2": "filter"}
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities/"


def script(
    scratch: str = "/scratch", shared: str = "/shared", packages: Sequence[str] = (), hashed: Sequence[str] = ()
) -> str:
    """The script that prints all sections.

    `scratch` and `shared` are the directories whose file systems matter, `packages` the Debian packages of the tools,
    of which it prints the versions, and `hashed` programs whose contents count.
    """
    lists = f"packages={shlex.quote(' '.join((*PACKAGES, *packages)))} hashed={shlex.quote(' '.join(hashed))}\n"
    paths = f"scratch={shlex.quote(scratch)} shared={shlex.quote(shared)}\n"
    return PRELUDE + cgroup.SHELL + paths + lists + SCRIPT + END


def parse(node: str, text: str, scratch: str = "/scratch", shared: str = "/shared") -> NodeFacts:
    """The facts in what `script` printed. What is missing or not understood is absent."""
    parts = split(text)
    files = contents(parts.get("files", ""))
    values: dict[str, object] = {
        **kernel_values(files),
        **process_values(parts),
        **cpu_place(parts, files),
        **model_values(parts.get("cpuinfo", "")),
        **storage_values(parts, files, scratch),
        **limit_values(parts),
        **filesystem_values(parts, scratch, shared),
        **program_values(parts),
        **workload_values(parts, files),
        "libc": parts.get("libc"),
        "interfaces": interfaces(parts.get("network", ""), files),
        "virtualization": virtualization(parts, files),
    }
    observed = dict(present(values))
    if values["virtualization"] == []:
        observed["virtualization"] = []  # looked, and found none
    return NodeFacts(node=node, values=observed)


def kernel_values(files: Mapping[str, str]) -> dict[str, object]:
    """What the kernel shows in files of one line each."""
    release = fields(files.get("/etc/os-release", ""), "=")
    governors = [text for path, text in files.items() if path.endswith("/scaling_governor")]
    pressure = re.match(r"some avg10=([0-9.]+) ", files.get("/proc/pressure/cpu", ""))
    faults = {path: text for path, text in files.items() if path.startswith(VULNERABILITIES)}
    return {
        "hostname": files.get("/proc/sys/kernel/hostname"),
        "kernel": files.get("/proc/sys/kernel/osrelease"),
        "os": release.get("PRETTY_NAME", "").strip('"'),
        "aslr": files.get("/proc/sys/kernel/randomize_va_space"),
        "tcp_congestion_control": files.get("/proc/sys/net/ipv4/tcp_congestion_control"),
        "mitigations": {path.removeprefix(VULNERABILITIES): text for path, text in sorted(faults.items())},
        "smt": files.get("/sys/devices/system/cpu/smt/control"),
        "governor": agreed(governors),
        "clock_source": files.get("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "thp": chosen(files.get("/sys/kernel/mm/transparent_hugepage/enabled", "")),
        "boot_id": files.get("/proc/sys/kernel/random/boot_id"),
        "huge_pages": whole(files.get("/proc/sys/vm/nr_hugepages")),
        "swappiness": whole(files.get("/proc/sys/vm/swappiness")),
        "turbo": turbo(
            files.get("/sys/devices/system/cpu/intel_pstate/no_turbo", ""),
            files.get("/sys/devices/system/cpu/cpufreq/boost", ""),
        ),
        "load1": decimal(files.get("/proc/loadavg", "").partition(" ")[0]),
        "psi_cpu_some_avg10": None if pressure is None else decimal(pressure[1]),
    }


def process_values(parts: Mapping[str, str]) -> dict[str, object]:
    """What applies to the processes of the node: CPUs, rights, open files, memory of the machine."""
    status, memory = fields(parts.get("status", "")), fields(parts.get("memory", ""))
    allowed = status.get("Cpus_allowed_list", "")
    open_files = parts.get("limits", "").split()
    soft, hard = open_files if len(open_files) == 2 else (None, None)
    process = parts.get("process", "").splitlines()
    stack, locked, variables, cwd = process if len(process) == 4 else (None, None, None, None)
    return {
        "cpus_allowed": allowed if cpu_list(allowed) else None,
        "cpus": len(cpu_list(allowed)) or None,
        "capabilities": status.get("CapEff"),
        "seccomp": SECCOMP.get(status.get("Seccomp", "")),
        "memory_total_bytes": kibibytes(memory.get("MemTotal")),
        "swap_total_bytes": kibibytes(memory.get("SwapTotal")),
        "open_files_soft": whole(soft),
        "open_files_hard": whole(hard),
        "stack_limit_kib": stack,
        "locked_memory_kib": locked,
        "environment_bytes": whole(variables),
        "working_directory": cwd,
    }


def cpu_place(parts: Mapping[str, str], files: Mapping[str, str]) -> dict[str, object]:
    """Cores, NUMA nodes and last caches behind the CPUs that the node may use."""
    allowed = cpu_list(fields(parts.get("status", "")).get("Cpus_allowed_list", ""))
    numa = [cpu_list(text) for path, text in files.items() if path.startswith("/sys/devices/system/node/node")]
    return {
        **topology_values(files, allowed),
        "numa_nodes": sum(bool(set(cpus) & set(allowed)) for cpus in numa) or None,
    }


def storage_values(parts: Mapping[str, str], files: Mapping[str, str], scratch: str) -> dict[str, object]:
    """Mount options, I/O scheduler and free space of the file system that holds `scratch`."""
    inside = [
        (point, device, options)
        for device, point, options in DEVICE.findall(parts.get("mounts", ""))
        if scratch == point or scratch.startswith(point.rstrip("/") + "/")
    ]
    values: dict[str, object] = {}
    if inside:
        _, device, options = max(inside, key=lambda mount: len(mount[0]))
        names = [
            match[1] for path, text in files.items() if (match := BLOCK.fullmatch(path)) and text.strip() == device
        ]
        schedulers = files.get(f"/sys/block/{names[0]}/queue/scheduler", "") if names else ""
        values = {"scratch_options": options, "scratch_scheduler": chosen(schedulers) or schedulers}
    for size, free, point in SPACE.findall(parts.get("space", "")):
        if (scratch == point or scratch.startswith(point.rstrip("/") + "/")) and int(size) > 0:
            values |= {"scratch_free_bytes": int(free) * 1024, "scratch_free_fraction": round(int(free) / int(size), 4)}
            break  # the first line is of `scratch`
    return values


def limit_values(parts: Mapping[str, str]) -> dict[str, object]:
    """What control groups allow, and what that has cost so far."""
    groups = cgroup.levels(parts.get("levels", ""))
    return {
        "memory_limit_bytes": cgroup.memory_limit_bytes(groups),
        "swap_limit_bytes": cgroup.swap_limit_bytes(groups),
        "cpu_quota_cpus": cgroup.cpu_quota_cpus(groups),
        **cgroup.throttling(groups),
        "cgroup_version": cgroup.version(mounts(parts["mounts"]), parts.get("cgroup", ""))
        if "mounts" in parts
        else None,
    }


def mounts(text: str) -> tuple[tuple[str, str], ...]:
    """Mount point and file system type of every line of mountinfo, in order."""
    return tuple((OCTAL.sub(lambda code: chr(int(code[1], 8)), point), kind) for point, kind in MOUNT.findall(text))


def filesystem_values(parts: Mapping[str, str], scratch: str, shared: str) -> dict[str, object]:
    """File system types by the mount table; as statfs names them where a chroot hides its own root."""
    if "filesystems" not in parts:
        return {}
    table, by_statfs = mounts(parts.get("mounts", "")), fields(parts["filesystems"])
    exists = {path for path, name in by_statfs.items() if name}
    names = {"root_filesystem": "/", "scratch_filesystem": scratch, "shared_filesystem": shared}
    return {name: (mounted(path, table) or by_statfs[path]) if path in exists else None for name, path in names.items()}


def workload_values(parts: Mapping[str, str], files: Mapping[str, str]) -> dict[str, object]:
    """The study's own image, where the node has one: what it is, and what is mounted for it."""
    try:
        described = json.loads(files.get(WORKLOAD, ""))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(described, dict):
        return {}
    words = {name: described.get(name) for name in ("digest", "libc", "architecture")}
    table = mounts(parts.get("mounts", ""))
    return {
        **{f"workload_{name}": word for name, word in words.items() if isinstance(word, str)},
        "workload_filesystem": next((kind for point, kind in reversed(table) if point == WORKLOAD_ROOT), None),
        "workload_mounts": sorted(
            {point.removeprefix(WORKLOAD_ROOT) for point, _ in table if point.startswith(f"{WORKLOAD_ROOT}/")}
        ),
    }


def mounted(path: str, table: tuple[tuple[str, str], ...]) -> str:
    """The type of the file system that holds `path`; "" when no mount above it is listed. A later mount covers."""
    best, kind = "", ""
    for point, candidate in table:
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, candidate
    return kind


def program_values(parts: Mapping[str, str]) -> dict[str, object]:
    """Versions and hashes of the programs that are measured with."""
    blas = parts.get("blas", "").splitlines()
    versions = dict(
        line.split(" ", 1) for line in parts.get("packages", "").splitlines() if re.match(r"^\S+ \S+$", line)
    )
    hashes = dict(HASH.findall(parts.get("hashes", "")))
    for size, digest in LIBRARY.findall(parts.get("hashes", "")):
        hashes["libopenblas"] = f"{digest} (of the first MiB; {size} bytes)"
    return {
        "environment_overrides": fields(parts.get("environment", ""), "="),
        "blas_core": blas[0].strip() if len(blas) == 2 else None,
        "blas_config": blas[1].strip() if len(blas) == 2 else None,
        "mpi_version": parts.get("mpi"),
        "versions": versions,
        "binary_sha256": hashes,
        "packages_sha256": next(iter(PACKAGES_HASH.findall(parts.get("hashes", ""))), None),
    }


def interfaces(text: str, files: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Name, MTU, MAC and addresses of every interface, from `ip -j -d addr`; speeds of physical ones by `files`."""
    try:
        links = json.loads(PHYSICAL.sub("", text))
    except (ValueError, RecursionError):
        return []
    physical = set(PHYSICAL.findall(text))
    named = [link for link in records(links) if isinstance(link.get("ifname"), str)]
    speeds = {name: whole((files or {}).get(f"/sys/class/net/{name}/speed")) for name in physical}
    return [interface(link, speeds.get(link["ifname"])) for link in named]


def interface(link: Mapping[str, Any], speed_mbit: int | None) -> dict[str, Any]:
    """One interface of `ip -j -d addr`, without what is not there. A virtual device has a speed of -1, or none."""
    known = {
        "gso_max_size": link.get("gso_max_size") if isinstance(link.get("gso_max_size"), int) else None,
        "speed_bits": speed_mbit * 1_000_000 if speed_mbit is not None and speed_mbit > 0 else None,
        "mtu": link.get("mtu") if isinstance(link.get("mtu"), int) else None,
        "mac": link.get("address") if link.get("link_type") == "ether" else None,
    }
    addresses = [f"{entry.get('local')}/{entry.get('prefixlen')}" for entry in records(link.get("addr_info"))]
    return {"name": link["ifname"], **dict(present(known)), "addresses": addresses}


def records(value: object) -> list[dict[str, Any]]:
    """The objects of a JSON list; nothing for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def virtualization(parts: Mapping[str, str], files: Mapping[str, str]) -> list[str] | None:
    """What the node runs inside of, outermost first; None when the evidence is not complete."""
    if not {"files", "cpuinfo", "cpuid", "namespaces", "cgroup"} <= parts.keys() or not parts["cpuinfo"]:
        return None
    cpu = model_values(parts["cpuinfo"])
    flags = cpu["cpu_flags"]
    evidence = nesting.Evidence(
        flags=tuple(flags) if isinstance(flags, list) else (),
        cpu_model=str(cpu["cpu_model"] or ""),
        dmi=" ".join(files.get(f"/sys/class/dmi/id/{name}", "") for name in ("product_name", "sys_vendor")),
        vendor=fields(parts["cpuid"]).get("Hypervisor vendor", ""),
        hypervisor_type=files.get("/sys/hypervisor/type", ""),
        clock_sources=files.get("/sys/devices/system/clocksource/clocksource0/available_clocksource", ""),
        namespaces=nesting.namespaces(parts["namespaces"]),
        markers=tuple(line for line in parts["namespaces"].splitlines() if line.startswith("/")),
        container=files.get("/run/systemd/container", ""),
        membership=parts["cgroup"],
    )
    return nesting.stack(evidence)
