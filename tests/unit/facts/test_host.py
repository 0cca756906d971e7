"""The facts of this machine, from a tree of files that stands for its /proc and /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

import vtax
from vtax.facts.host import capacity, cores_first, host_facts, kvm, subordinate, user_values

CPUS = "sys/devices/system/cpu"
FILES = {
    "proc/sys/kernel/hostname": "host\n",
    "proc/sys/kernel/osrelease": "6.12.0\n",
    "proc/sys/user/max_user_namespaces": "1000\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu vmx hypervisor avx2\n\n",
    "proc/meminfo": "MemTotal:  4096 kB\nMemAvailable: 1024 kB\nSwapTotal: 0 kB\n",
    "proc/loadavg": "0.25 0.1 0.1 1/100 99\n",
    "proc/pressure/cpu": "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\n",
    "proc/self/cgroup": "0::/user/session\n",
    "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "sys/fs/cgroup/user/memory.max": "1048576\n",
    "sys/fs/cgroup/user/session/memory.max": "max\n",
    "etc/os-release": 'PRETTY_NAME="Some OS 1"\n',
    "sys/class/dmi/id/sys_vendor": "VMware, Inc.\n",
    "sys/class/dmi/id/product_name": "VMware7,1\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
    f"{CPUS}/online": "0-3\n",
    f"{CPUS}/vulnerabilities/meltdown": "Mitigation: PTI\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node1/cpulist": "2-3\n",
    **{f"{CPUS}/cpu{cpu}/topology/core_id": f"{cpu // 2}\n" for cpu in range(4)},
    **{f"{CPUS}/cpu{cpu}/topology/physical_package_id": "0\n" for cpu in range(4)},
    **{f"{CPUS}/cpu{cpu}/topology/thread_siblings_list": f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}\n" for cpu in range(4)},
    **{f"{CPUS}/cpu{cpu}/cpufreq/scaling_governor": "performance\n" for cpu in range(4)},
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    return tmp_path


def test_what_is_there_is_read(machine: Path) -> None:
    facts = host_facts(machine)
    expected = {
        "hostname": "host",
        "kernel": "6.12.0",
        "os": "Some OS 1",
        "cpu_model": "Some CPU",
        "virtualization_extensions": ["vmx"],
        "memory_total_bytes": 4 * 2**20,
        "memory_limit_bytes": 2**20,
        "cgroup_version": "2",
        "cgroup_controllers": ["cpu", "memory"],
        "governor": "performance",
        "thp": "always",
        "load1": 0.25,
        "psi_cpu_some_avg10": 1.5,
        "mitigations": {"meltdown": "Mitigation: PTI"},
        "virtualization": ["virtual machine (VMware)"],
        "is_virtual": True,
        "hypervisor": "VMware",
        "kvm": "absent",
        "user_namespaces": True,
    }
    assert {name: facts.get(name) for name in expected} == expected
    assert facts["cpus"][3] == {"id": 3, "core": 1, "socket": 0, "siblings": [2, 3], "numa_node": 1}


def test_an_empty_machine_gives_few_facts_and_no_error(tmp_path: Path) -> None:
    facts = host_facts(tmp_path)
    assert facts["virtualization"] == []
    assert facts["kvm"] == "absent"
    assert "memory_total_bytes" not in facts
    with pytest.raises(KeyError, match="memory_total_bytes"):
        capacity(facts)


def test_capacity_takes_the_memory_limit_and_every_core_once_first(machine: Path) -> None:
    offered = capacity({**host_facts(machine), "cpus_usable": [0, 1, 2, 3]})
    assert offered.cpu_ids == (0, 2, 1, 3)
    assert offered.memory_bytes == 2**20


def test_capacity_without_a_limit_is_all_memory() -> None:
    assert capacity({"cpus_usable": [5, 4], "memory_total_bytes": 99}).memory_bytes == 99


def test_the_last_caches_are_those_of_the_machine() -> None:
    facts = {"cpus_usable": [0, 1], "memory_total_bytes": 99}
    caches = [{"cpu_ids": [0, 1], "size_bytes": 2**20}, {"cpu_ids": [2, 3], "size_bytes": 2**19}]
    assert capacity({**facts, "last_caches": caches}).last_cache_bytes((1, 2)) == 2**20 + 2**19
    assert capacity(facts).last_cache_bytes((0,)) is None


def test_a_quota_shortens_the_list() -> None:
    facts = {"cpus_usable": [0, 1, 2], "memory_total_bytes": 99}
    assert capacity({**facts, "cpu_quota_cpus": 2.5}).cpu_ids == (0, 1)
    assert capacity({**facts, "cpu_quota_cpus": 0.5}).cpu_ids == (0,)


def test_siblings_far_apart_in_number_are_found() -> None:
    cores = {0: (0, 0), 1: (0, 1), 2: (0, 0), 3: (0, 1), 4: (1, 0)}
    assert cores_first((3, 2, 1, 0, 4), cores) == (0, 1, 4, 2, 3)
    assert cores_first((2, 3), cores) == (2, 3)  # only what this process may use


def test_a_device_that_opens_is_not_said_to_work(tmp_path: Path) -> None:
    device = tmp_path / "kvm"
    device.write_bytes(b"")
    assert kvm(device) == "opens"
    assert kvm(tmp_path).startswith("present, does not open: ")


def test_subordinate_ids_by_name_or_number() -> None:
    text = "alice:100000:65536\n1000:300000:10\nbob:1:2\nbroken\n"
    assert subordinate(text, "alice", 1000) == ["100000:65536", "300000:10"]


def test_user_namespaces_can_be_refused_to_users_but_not_to_root() -> None:
    files = {
        "/proc/sys/user/max_user_namespaces": "1000",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    }

    def read(path: str) -> str:
        return files.get(path, "")

    alice = user_values(read, "alice", 1000)
    assert alice["user_namespaces"] is False
    assert alice["user_namespaces_refused_by"] == ["kernel.apparmor_restrict_unprivileged_userns"]
    assert user_values(read, "root", 0)["user_namespaces"] is True


def test_no_pattern_looks_into_the_directories_of_processes() -> None:
    """pathlib asks for each file that a pattern could match: a process that ends just then is a ProcessLookupError."""
    package = Path(vtax.__file__).parent
    looks = [str(one.relative_to(package)) for one in package.rglob("*.py") if 'glob("[0-9]*/' in one.read_text()]
    assert looks == []
