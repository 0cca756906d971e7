"""The small readers that node and host facts share: control groups, CPU lists, nesting."""

from __future__ import annotations

import pytest

from vtax.facts import cgroup, nesting
from vtax.facts.cpu import agreed, chosen, cpu_list, model_values
from vtax.facts.sections import MARK, contents, decimal, split, whole

OWN = {"ipc": 1, "uts": 2, "pid": 3, "user": nesting.FIRST_NAMESPACES["user"]}
INSIDE = nesting.Evidence(namespaces=OWN)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-1,4", (0, 1, 4)),
        ("3", (3,)),
        ("0-2,1-3\n", (0, 1, 2, 3)),
        ("", ()),
        ("a-b", ()),
        ("3-1", ()),
        ("0-9999999", ()),
    ],
)
def test_cpu_list(text: str, cpus: tuple[int, ...]) -> None:
    assert cpu_list(text) == cpus


def test_the_smallest_limit_of_all_levels_counts() -> None:
    groups = cgroup.levels(
        "/sys/fs/cgroup/a/b/memory.max:max\n/sys/fs/cgroup/a/memory.max:1000\n/sys/fs/cgroup/memory.max:2000\n"
        "/sys/fs/cgroup/a/b/cpu.max:200000 100000\n/sys/fs/cgroup/a/cpu.max:50000 100000\n"
    )
    assert cgroup.memory_limit_bytes(groups) == 1000
    assert cgroup.cpu_quota_cpus(groups) == 0.5


def test_version_1_knows_limits_of_levels_that_are_not_visible() -> None:
    groups = cgroup.levels(
        "/sys/fs/cgroup/memory/memory.limit_in_bytes:9223372036854771712\n"
        "/sys/fs/cgroup/memory/memory.stat:hierarchical_memory_limit 4096\n"
        "/sys/fs/cgroup/memory/memory.stat:hierarchical_memsw_limit 9223372036854771712\n"
    )
    assert cgroup.memory_limit_bytes(groups) == 4096
    assert cgroup.swap_limit_bytes(groups) is None


def test_no_limit_is_none() -> None:
    groups = cgroup.levels(
        "/g/memory.limit_in_bytes:9223372036854771712\n/g/cpu.cfs_quota_us:-1\n/g/cpu.cfs_period_us:100000\n"
    )
    assert cgroup.memory_limit_bytes(groups) is None
    assert cgroup.cpu_quota_cpus(groups) is None


def test_throttling_is_of_the_level_that_suffered_most() -> None:
    groups = cgroup.levels(
        "/g/a/cpu.stat:nr_periods 0\n/g/a/cpu.stat:nr_throttled 0\n/g/a/cpu.stat:throttled_time 0\n"
        "/g/cpu.stat:nr_periods 10\n/g/cpu.stat:nr_throttled 4\n/g/cpu.stat:throttled_time 3000000000\n"
    )
    assert cgroup.throttling(groups) == {"cpu_periods": 10, "cpu_throttled_periods": 4, "cpu_throttled_s": 3.0}


def test_a_colon_in_the_name_of_a_group_does_no_harm() -> None:
    groups = cgroup.levels("/sys/fs/cgroup/pod:cri:1/memory.max:77\n")
    assert cgroup.memory_limit_bytes(groups) == 77


@pytest.mark.parametrize(
    ("membership", "version"), [("4:memory:/\n1:cpu:/", "1"), ("0::/", "2"), ("1:cpu:/\n0::/", "hybrid"), ("", None)]
)
def test_version_without_visible_mounts(membership: str, version: str | None) -> None:
    assert cgroup.version((), membership) == version


def test_bare_metal_runs_inside_of_nothing() -> None:
    assert nesting.stack(nesting.Evidence(flags=("sse2", "vmx"), dmi="PowerEdge Dell Inc.")) == []


@pytest.mark.parametrize(
    ("evidence", "name"),
    [
        (nesting.Evidence(dmi="VirtualBox innotek GmbH", clock_sources="kvm-clock tsc"), "VirtualBox"),
        (nesting.Evidence(dmi="VMware Virtual Platform VMware, Inc."), "VMware"),
        (nesting.Evidence(dmi="Virtual Machine Microsoft Corporation"), "Hyper-V"),
        (nesting.Evidence(hypervisor_type="xen"), "Xen"),
        (nesting.Evidence(cpu_model="QEMU TCG CPU version 2.5+", dmi="Standard PC QEMU"), "QEMU, software emulation"),
        (nesting.Evidence(dmi="Standard PC QEMU", clock_sources="kvm-clock"), "KVM"),
        (nesting.Evidence(dmi="Standard PC QEMU"), "QEMU"),
        (nesting.Evidence(vendor="KVM"), "KVM"),
        (nesting.Evidence(), ""),
    ],
)
def test_hypervisor(evidence: nesting.Evidence, name: str) -> None:
    assert nesting.hypervisor(evidence) == name


def test_a_virtual_machine_of_unknown_make_is_still_one() -> None:
    assert nesting.stack(nesting.Evidence(flags=("hypervisor",))) == ["virtual machine (hypervisor not identified)"]


def test_a_marker_in_the_first_namespaces_is_only_a_file() -> None:
    assert nesting.container(nesting.Evidence(namespaces=nesting.FIRST_NAMESPACES, markers=("/.dockerenv",))) == []


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"markers": ("/.dockerenv",)}, "container (docker)"),
        ({"markers": ("/run/.containerenv",)}, "container (podman)"),
        ({"container": "lxc"}, "container (lxc)"),
        ({"membership": "4:memory:/kubepods/burstable/pod1"}, "container (kubernetes)"),
        ({}, "own namespaces (ipc, pid, uts)"),
    ],
)
def test_container(more: dict[str, object], word: str) -> None:
    evidence = nesting.Evidence(namespaces=OWN, **more)  # type: ignore[arg-type]
    assert nesting.container(evidence) == [word]


def test_one_namespace_of_its_own_and_a_marker_do_not_make_a_container() -> None:
    evidence = nesting.Evidence(namespaces={"user": 1}, markers=("/.dockerenv",))
    assert nesting.container(evidence) == ["own namespaces (user)"]


def test_cpuinfo_of_arm() -> None:
    values = model_values("processor\t: 0\nFeatures\t: fp asimd\n\nprocessor\t: 1\nFeatures\t: none\n")
    assert values["cpu_flags"] == ["asimd", "fp"]
    assert values["cpu_model"] is None


def test_words() -> None:
    assert chosen("always [madvise] never") == "madvise"
    assert chosen("always") == ""
    assert agreed(["performance", "performance"]) == "performance"
    assert agreed(["powersave", "performance"]) == "performance, powersave"


def test_numbers() -> None:
    assert (whole(" 42 "), whole("-1"), whole("4.2"), whole("٣"), whole(None)) == (42, -1, None, None, None)
    assert (decimal("1.5"), decimal("nan"), decimal("-1"), decimal(None)) == (1.5, None, None, None)


def test_a_section_without_the_next_marker_does_not_count() -> None:
    assert split(f"{MARK} a\none\n{MARK} b\ntwo\n") == {"a": "one"}


def test_lines_of_one_file_stay_together() -> None:
    assert contents("/a:1\n/b:x:y\n/a:2\nnoise\n") == {"/a": "1\n2", "/b": "x:y"}
