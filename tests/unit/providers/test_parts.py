"""Clusters in parts: which network connects the machines, the exact commands that make it, what is one cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from vtax.errors import UsageError
from vtax.facts.uplink import parsed, uplinks
from vtax.model.cluster import Image
from vtax.model.finding import Severity
from vtax.model.link import Interconnect, Interface, Uplink
from vtax.model.nodes import ClusterShape, NodeShape, Role
from vtax.providers import parts, tunnel
from vtax.providers.base import Site
from vtax.providers.container import engine
from vtax.providers.docker.provider import Docker
from vtax.providers.podman.provider import Podman
from vtax.providers.qemu import bridge, command
from vtax.providers.qemu.command import QemuOptions
from vtax.providers.qemu.machines import machines_of
from vtax.providers.qemu.machines import parts as qemu_parts

GIB = 2**30
LONGEST_NAME = 15  # of a network interface, for the kernel


def node(name: str, machine: str) -> NodeShape:
    role = Role.MASTER if name == "master" else Role.WORKER
    return NodeShape(name=name, role=role, cpus=2, cpu_ids=(0, 1), memory_bytes=GIB, disk_bytes=GIB, machine=machine)


SHAPE = ClusterShape(nodes=(node("master", "b"), node("worker1", "a"), node("worker2", "b")))
BETWEEN = Interconnect(
    kind="vxlan",
    uplinks={
        "a": Uplink(address="192.0.2.1", interface="eno1", mtu=1500, speed_bits=10**9, driver="igb"),
        "b": Uplink(address="192.0.2.2", interface="eno1", mtu=9000),
        "c": Uplink(address="192.0.2.3", interface="eno1", mtu=1500),
    },
    mtu=1450,
    port=4789,
    prefix="10.213.7",
    vni=66,
)
LINKS = parts.links(SHAPE, BETWEEN, {})


def lines(commands: Sequence[tuple[str, ...]]) -> list[str]:
    return [" ".join(command) for command in commands]


def interface(name: str, *addresses: str, mtu: int = 1500, driver: str = "") -> Interface:
    return Interface(name=name, mtu=mtu, addresses=addresses, driver=driver)


def test_the_tunnel_is_in_the_clusters_namespace_and_leaves_from_the_machines() -> None:
    assert lines(tunnel.inside(LINKS["b"], "vtax-c1.bridge")) == [
        "ip link add name tunnel netns vtax-c1.bridge mtu 1450 type vxlan id 66 local 192.0.2.2 dstport 4789 df set",
        "ip -n vtax-c1.bridge link set tunnel master bridge up",
        "bridge -n vtax-c1.bridge fdb append 00:00:00:00:00:00 dev tunnel dst 192.0.2.1",
        "bridge -n vtax-c1.bridge fdb append 00:00:00:00:00:00 dev tunnel dst 192.0.2.3",
    ]


def test_the_tunnel_of_an_engine_names_its_provider_and_its_directory() -> None:
    made = lines(tunnel.beside(LINKS["a"], "0123abcd", "engine", Path("/run/0123abcd/c"), "vb-0123abcd"))
    assert made[:2] == [
        "ip link add name vx-0123abcd mtu 1450 type vxlan id 66 local 192.0.2.1 dstport 4789 df set",
        "ip link set vx-0123abcd alias engine:/run/0123abcd/c master vb-0123abcd up",
    ]
    listed = json.dumps([{"ifname": "vx-0123abcd", "ifalias": "engine:/run/0123abcd/c"}, {"ifname": "flannel.1"}])
    assert list(tunnel.listed(listed)) == [("0123abcd", "engine", Path("/run/0123abcd/c"))]
    assert list(tunnel.listed("[{}]")) == []


def test_virtual_machines_of_a_part_have_the_bridge_with_the_tunnel_and_no_others_address(tmp_path: Path) -> None:
    """The first node on each machine is the way in; the cards have addresses of the whole cluster, and its MTU."""
    image = Image(recipe="", digest="", directory=str(tmp_path), archive="", kernel="k")
    options = QemuOptions(network="tap", pin=False)
    made = {}
    for machine, link in LINKS.items():
        site = Site("c1", tmp_path, image, tmp_path, link=link)
        made[machine] = machines_of(site, SHAPE.on(machine), options, "tcg", None)
        between, *_ = qemu_parts(site, made[machine], options, "tcg", (7, 2))
        assert lines(between)[-3:] == lines(tunnel.inside(link, "vtax-c1"))[-3:]
        assert " ".join(between[0]) == "ip netns add vtax-c1"
    assert [(one.node.name, one.number, one.way_in, one.mtu) for part in made.values() for one in part] == [
        ("master", 0, True, 1450),
        ("worker2", 2, False, 1450),
        ("worker1", 1, True, 1450),
    ]
    (alone,) = made["a"]
    said = command.guest_config(alone, LINKS["a"].places, "/shared", options).splitlines()
    assert {"ADDRESS='10.213.7.11'", "SERVER='10.213.7.10'", "NETWORK='10.213.7.0/24'", "MTU='1450'"} <= set(said)
    assert f"OUTER_MAC='{command.OUTER_MAC}'" in said, "it is the way in, and no server"


def test_a_switch_in_user_space_joins_no_machines() -> None:
    (problem,) = bridge.unjoined("vm", SHAPE, QemuOptions(network="switch"))
    assert problem.severity is Severity.BLOCKER and "vm" in problem.message
    assert list(bridge.unjoined("vm", SHAPE, QemuOptions(network="tap"))) == []
    here = ClusterShape(nodes=(node("master", ""), node("worker1", "")))
    assert list(bridge.unjoined("vm", here, QemuOptions(network="switch"))) == []


def test_names_of_interfaces_are_short_enough() -> None:
    assert max(map(len, (tunnel.name_of("up-0123abcd"), engine.bridge_name("up-0123abcd")))) <= LONGEST_NAME


def test_every_part_knows_all_nodes() -> None:
    assert list(LINKS) == ["b", "a"], "only machines with nodes, the master's first"
    assert LINKS["a"].places == {"master": "10.213.7.10", "worker1": "10.213.7.11", "worker2": "10.213.7.12"}
    assert LINKS["a"].places == LINKS["b"].places
    assert LINKS["a"].machines == {"master": "b", "worker1": "a", "worker2": "b"}
    assert [one.name for one in SHAPE.on("b").nodes] == ["master", "worker2"]
    assert SHAPE.machines == ("b", "a")


def test_on_the_machines_own_network_nodes_have_the_machines_addresses() -> None:
    own = BETWEEN.model_copy(update={"kind": "host", "mtu": 1500, "port": 20123})
    spread = ClusterShape(nodes=SHAPE.nodes[:2])
    assert parts.links(spread, own, {})["a"].places == {"master": "192.0.2.2", "worker1": "192.0.2.1"}


def test_the_narrowest_uplink_decides_how_large_packets_are() -> None:
    """1500 bytes less 20 of IPv4, 8 of UDP, 8 of VXLAN and 14 of Ethernet."""
    made = parts.interconnect("vxlan", BETWEEN.uplinks)
    assert (made.mtu, made.port) == (1450, 4789)
    assert 0 < made.vni < 2**24
    own = parts.interconnect("host", BETWEEN.uplinks)
    assert (own.mtu, own.vni) == (1500, 0)
    assert 20_000 <= own.port < 30_000


def test_the_parts_of_an_engines_network_have_addresses_of_their_own(tmp_path: Path) -> None:
    """Nodes end at .74, and the bridges of machines begin at .254, downwards."""
    assert " ".join(Docker(tmp_path).part_of("c1", LINKS["a"])) == (
        "--opt com.docker.network.driver.mtu=1450 --opt com.docker.network.bridge.name=vb-c1 --gateway 10.213.7.254"
    )
    assert " ".join(Podman(tmp_path).part_of("c1", LINKS["b"])) == (
        "--opt mtu=1450 --interface-name vb-c1 --gateway 10.213.7.253"
    )


def test_what_connects_machines_is_said() -> None:
    assert list(parts.sentences(LINKS["a"]))[:3] == [
        "network between machines: a VXLAN tunnel (number 66, UDP port 4789) between the bridges of the machines, "
        "MTU 1450",
        "a: 192.0.2.1 on eno1 (igb) of 1.000 Gbit/s, MTU 1500",
        "b: 192.0.2.2 on eno1 of unknown speed, MTU 9000",
    ]
    facts = parts.node_facts(LINKS, "worker1")
    assert facts["on_machine"] == "a"
    assert facts["uplink"]["speed_bits"] == 10**9


# --- which network ---------------------------------------------------------------------------------------------------


def test_a_network_in_which_every_machine_has_an_address() -> None:
    """A bridge that engines make has one address on all machines: nothing crosses it."""
    engines = interface("docker0", "172.17.0.1/16")
    known = {
        "a": (engines, interface("eth0", "192.0.2.1/24", driver="igb")),
        "b": (engines, interface("wlan0", "198.51.100.2/24"), interface("eth1", "192.0.2.9/24", mtu=9000)),
    }
    found = uplinks(known, {})
    assert [(one.interface, one.address, one.mtu) for one in found.values()] == [
        ("eth0", "192.0.2.1", 1500),
        ("eth1", "192.0.2.9", 9000),
    ]


def test_an_address_of_the_study_decides() -> None:
    known = {
        "a": (interface("eth0", "192.0.2.1/24"), interface("ib0", "10.0.0.1/16")),
        "b": (interface("eth0", "192.0.2.2/24"), interface("ib0", "10.0.0.2/16")),
    }
    found = uplinks(known, {"a": "10.0.0.1", "b": "10.0.0.2"})
    assert [one.interface for one in found.values()] == ["ib0", "ib0"]


def test_no_common_network() -> None:
    known = {"a": (interface("eth0", "192.0.2.1/24"),), "b": (interface("eth0", "198.51.100.2/24"),)}
    with pytest.raises(UsageError, match="the machines share no network") as raised:
        uplinks(known, {})
    assert "a: 192.0.2.0/24; b: 198.51.100.0/24" in raised.value.detail
    assert "address in [machines.NAME]" in raised.value.remedy
    with pytest.raises(UsageError, match=r"machine 'a' does not have the address 192\.0\.2\.7"):
        uplinks(known, {"a": "192.0.2.7"})


def test_interfaces_of_a_machine(tmp_path: Path) -> None:
    place = tmp_path / "sys/class/net/eth0"
    (tmp_path / "drivers/igb").mkdir(parents=True)
    (place / "device").mkdir(parents=True)
    (place / "speed").write_text("1000\n")
    (place / "device/driver").symlink_to(tmp_path / "drivers/igb")
    printed = [
        {
            "ifname": "lo",
            "flags": ["LOOPBACK", "UP"],
            "mtu": 65536,
            "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}],
        },
        {"ifname": "eth0", "flags": ["UP"], "mtu": 1500, "addr_info": [{"local": "192.0.2.1", "prefixlen": 24}]},
        {"ifname": "eth1", "flags": ["UP"], "mtu": 1500, "addr_info": []},
    ]
    (found,) = parsed(json.dumps(printed), tmp_path)
    assert found == Interface(
        name="eth0", mtu=1500, addresses=("192.0.2.1/24",), speed_bits=1_000_000_000, driver="igb"
    )
