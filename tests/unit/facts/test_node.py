"""What a node says of itself: recorded and hand-written outputs of the script, cut off and spoilt ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vtax.facts import node
from vtax.facts.node import parse
from vtax.facts.sections import MARK

DATA = Path(__file__).parents[2] / "data" / "facts"
CASES = sorted(path.name for path in DATA.iterdir() if (path / "expected.json").exists())
SECTIONS = [line.split()[1] for line in node.script().splitlines() if line.startswith("section ")]


def recorded(case: str) -> str:
    return (DATA / case / "stdout").read_text("utf-8")


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_found_by_hand(case: str) -> None:
    expected = json.loads((DATA / case / "expected.json").read_text("utf-8"))
    values = parse("worker1", recorded(case)).values
    assert {name: values.get(name) for name in expected["values"]} == expected["values"]
    assert [name for name in expected["absent"] if name in values] == []


@pytest.mark.parametrize("case", CASES)
def test_cut_off_output_gives_a_part_of_the_facts_and_no_others(case: str) -> None:
    text = recorded(case)
    full = parse("worker1", text).values
    for end in range(0, len(text), 37):
        values = parse("worker1", text[:end]).values
        assert {name: full.get(name) for name in values} == values


def test_nothing_observed_is_nothing_known() -> None:
    facts = parse("worker1", "sh: not found\n")
    assert facts.node == "worker1"
    assert facts.values == {}


def test_hashes_name_the_programs_and_say_what_of_the_library_was_hashed() -> None:
    hashes = parse("worker1", recorded("docker-cgroup1")).values["binary_sha256"]
    assert hashes["hpcc"].startswith("e567d606")
    assert hashes["libopenblas"].endswith("(of the first MiB; 39608152 bytes)")


def test_versions_are_of_the_packages() -> None:
    versions = parse("worker1", recorded("docker-cgroup1")).values["versions"]
    assert versions["hpcc"] == "1.5.0-4+b1"
    assert versions["iputils-ping"] == "3:20240905-3"


def test_variables_that_change_what_a_library_does_are_facts() -> None:
    text = f"{MARK} environment\nOPENBLAS_CORETYPE=Haswell\nOMP_NUM_THREADS=1\n{MARK} end\n"
    overrides = parse("worker1", text).values["environment_overrides"]
    assert overrides == {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "1"}


def test_other_directories_can_be_scratch_and_shared() -> None:
    mounts = "25 1 8:1 / / rw - ext4 /dev/sda\n26 25 0:9 / /mnt rw - tmpfs none\n27 25 0:8 / /mnt/a rw - nfs4 m:/"
    text = f"{MARK} mounts\n{mounts}\n{MARK} filesystems\n/:ext2/ext3\n/mnt/b:tmpfs\n/mnt/a:nfs\n{MARK} end\n"
    values = parse("worker1", text, scratch="/mnt/b", shared="/mnt/a").values
    assert (values["root_filesystem"], values["scratch_filesystem"], values["shared_filesystem"]) == (
        "ext4",
        "tmpfs",
        "nfs4",
    )


def test_a_chroot_without_mounts_names_file_systems_as_statfs_does() -> None:
    text = f"{MARK} mounts\n{MARK} filesystems\n/:ext2/ext3\n/scratch:\n/shared:tmpfs\n{MARK} end\n"
    values = parse("worker1", text).values
    assert values["root_filesystem"] == "ext2/ext3"
    assert values["shared_filesystem"] == "tmpfs"
    assert "scratch_filesystem" not in values


def test_script_quotes_directories() -> None:
    assert "scratch='/a b' shared=/shared\n" in node.script(scratch="/a b")


def test_script_and_parser_name_the_same_sections() -> None:
    assert SECTIONS[-1] == "end"
    assert len(set(SECTIONS)) == len(SECTIONS)
    for name in SECTIONS:
        assert f"\n{MARK} {name}\n" in "\n" + recorded("docker-place") + "\n"


@given(st.text())
def test_no_text_crashes_the_parser(text: str) -> None:
    parse("worker1", text)


@given(st.dictionaries(st.sampled_from(SECTIONS), st.text(alphabet="0-,: \n./[]{}\"=abmx'\\/sys٣\x00", max_size=200)))
def test_no_section_crashes_the_parser(sections: dict[str, str]) -> None:
    text = "".join(f"\n{MARK} {name}\n{body}\n" for name, body in sections.items())
    parse("worker1", text + f"\n{MARK} end\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ifname", "mtu", "address", "addr_info", "local", "link_type"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_json_crashes_the_reader_of_interfaces(value: Any) -> None:
    for found in node.interfaces(json.dumps(value)):
        assert isinstance(found["name"], str)


def test_a_physical_interface_has_a_speed_and_a_virtual_one_has_none() -> None:
    links = '[{"ifname": "eth0", "mtu": 1500}, {"ifname": "veth1", "mtu": 9000}]\nphysical /sys/class/net/eth0/device'
    speeds = {"/sys/class/net/eth0/speed": "1000", "/sys/class/net/veth1/speed": "10000"}
    assert node.interfaces(links, speeds) == [
        {"name": "eth0", "mtu": 1500, "speed_bits": 10**9, "addresses": []},
        {"name": "veth1", "mtu": 9000, "addresses": []},
    ]
    assert "speed_bits" not in node.interfaces(links, {"/sys/class/net/eth0/speed": "-1"})[0]


def test_cores_and_caches_behind_the_allowed_cpus() -> None:
    top = "/sys/devices/system/cpu"
    files = [f"{top}/cpu{cpu}/topology/core_id:{cpu // 2}" for cpu in range(4)]
    files += [f"{top}/cpu{cpu}/topology/physical_package_id:0" for cpu in range(4)]
    files += [f"{top}/cpu{cpu}/cache/index3/size:16384K" for cpu in range(4)]
    files += [f"{top}/cpu{cpu}/cache/index3/shared_cpu_list:{'0-1' if cpu < 2 else '2-3'}" for cpu in range(4)]
    files += ["/sys/devices/system/node/node0/cpulist:0-1", "/sys/devices/system/node/node1/cpulist:2-3"]
    text = "\n".join([f"{MARK} files", *files, f"{MARK} status", "Cpus_allowed_list:\t0-2", f"{MARK} end", ""])
    values = parse("worker1", text).values
    assert (values["cores"], values["numa_nodes"], values["last_cache_bytes"]) == (2, 2, 2 * 16 * 2**20)


def test_the_image_of_the_study() -> None:
    """A later mount covers an earlier one: a virtual machine has the image's disk below its own layer."""
    values = {"digest": "5e" * 32, "libc": "musl 1.2.5", "architecture": "amd64", "entry": ["app"]}
    described = json.dumps(values, indent=1)
    table = "".join(
        f"{number} 1 0:{number} / {point} rw - {kind} {kind}\n"
        for number, (point, kind) in enumerate(
            [
                ("/", "ext4"),
                ("/workload", "ext4"),
                ("/workload/root", "overlay"),
                ("/workload/root/proc", "proc"),
                ("/workload/rootless", "tmpfs"),
            ]
        )
    )
    lines = "\n".join(f"/workload/workload.json:{line}" for line in described.splitlines())
    text = f"\n{MARK} files\n{lines}\n{MARK} mounts\n{table}\n{MARK} end\n"
    assert {name: value for name, value in node.parse("n", text).values.items() if "workload" in name} == {
        "workload_digest": "5e" * 32,
        "workload_libc": "musl 1.2.5",
        "workload_architecture": "amd64",
        "workload_filesystem": "overlay",
        "workload_mounts": ["/proc"],
    }
    for other in ("", "[]", '"x"', "[" * 100_000, '{"digest": 1}'):
        text = f"\n{MARK} files\n/workload/workload.json:{other}\n{MARK} end\n"
        assert "workload_digest" not in node.parse("n", text).values


def test_the_disk_below_scratch() -> None:
    text = "\n".join(
        [
            f"{MARK} files",
            "/sys/block/vda/dev:254:0",
            "/sys/block/vda/vda1/dev:254:1",
            "/sys/block/vda/queue/scheduler:[none] mq-deadline",
            f"{MARK} mounts",
            "25 1 254:1 / / rw,noatime - ext4 /dev/vda1",
            f"{MARK} space",
            "Filesystem 1024-blocks Used Available Capacity Mounted on",
            "/dev/vda1 1000 800 200 80% /",
            f"{MARK} end",
            "",
        ]
    )
    values = parse("worker1", text).values
    assert values["scratch_options"] == "rw,noatime"
    assert values["scratch_scheduler"] == "none"
    assert (values["scratch_free_bytes"], values["scratch_free_fraction"]) == (204_800, 0.2)


def test_endless_nesting_is_no_interface() -> None:
    assert node.interfaces("[" * 100_000) == []
