"""Network namespaces of clusters: the exact commands that make them, whose they are, what is said when none can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.cluster import result_of
from vtax.errors import CommandError, ProvisionError
from vtax.model.finding import Severity
from vtax.model.trial import CommandResult
from vtax.providers import network
from vtax.providers.base import UNKNOWN
from vtax.transport import process

PLACE = Path("/run/c1/host")
LONGEST_NAME = 15  # of a network interface, for the kernel
Answer = Callable[[tuple[str, ...]], CommandResult]


def answered(exit_code: int, stdout: str = "", stderr: str = "") -> CommandResult:
    return result_of((), (exit_code, stdout, stderr))


def lines(commands: Sequence[tuple[str, ...]]) -> list[str]:
    return [" ".join(command) for command in commands]


def test_a_bridge_is_in_a_namespace_with_the_label_in_its_name() -> None:
    assert lines(network.bridge("c1", PLACE)) == [
        "ip netns add vtax-c1",
        "ip -n vtax-c1 link set lo alias /run/c1/host up",
        "ip -n vtax-c1 link add bridge type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        "ip netns exec vtax-c1 sysctl -q -e -w net.bridge.bridge-nf-call-iptables=0 "
        "net.bridge.bridge-nf-call-ip6tables=0 net.bridge.bridge-nf-call-arptables=0",
        "ip -n vtax-c1 link set bridge up",
    ]


def test_a_node_is_connected_from_its_own_namespace() -> None:
    """The pair is made inside the two namespaces: no device is ever in that of this machine."""
    assert lines(network.node("c1", PLACE, "worker1", "10.214.0.11")) == [
        "ip netns add vtax-c1.worker1",
        "ip -n vtax-c1.worker1 link set lo alias /run/c1/host up",
        "ip netns exec vtax-c1.worker1 sysctl -q -e -w net.ipv4.ping_group_range=0 2147483647 "
        "net.ipv6.conf.default.disable_ipv6=1",
        "ip -n vtax-c1.bridge link add name worker1 type veth peer name eth0 netns vtax-c1.worker1",
        "ip -n vtax-c1.bridge link set dev worker1 master bridge up",
        "ip -n vtax-c1.worker1 address add 10.214.0.11/24 dev eth0",
        "ip -n vtax-c1.worker1 link set eth0 up",
    ]


def test_every_command_works_inside_a_namespace_of_the_label() -> None:
    made = (
        *network.namespace("c1", PLACE, "loopback"),
        *network.bridge("c1", PLACE, network.BRIDGE),
        *network.node("c1", PLACE, "worker1", "10.214.0.11"),
    )
    assert all(line[:3] == ("ip", "netns", "add") or line[1] == "-n" or line[2] == "exec" for line in made)
    assert all("vtax-c1" in line[2] or "vtax-c1" in line[3] for line in made)


def test_names_of_interfaces_are_short_enough() -> None:
    assert max(map(len, (network.BRIDGE, network.INTERFACE, "master", "worker9999"))) <= LONGEST_NAME


def test_addresses_are_those_of_virtual_machines() -> None:
    assert network.addresses(("master", "worker1")) == {"master": "10.214.0.10", "worker1": "10.214.0.11"}


# --- what cannot be made ---------------------------------------------------------------------------------------------


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], list[tuple[str, ...]]]]:
    """Commands are answered by a function, and collected."""
    asked: list[tuple[str, ...]] = []

    def install(answer: Answer) -> list[tuple[str, ...]]:
        def run(argv: tuple[str, ...], **_: Any) -> CommandResult:
            asked.append(argv)
            return answer(argv).model_copy(update={"argv": argv})

        monkeypatch.setattr(process, "run", run)
        return asked

    network.impossible.cache_clear()
    yield install
    network.impossible.cache_clear()


Install = Callable[[Answer], list[tuple[str, ...]]]


def test_a_namespace_of_that_name_exists(answers: Install) -> None:
    message = 'Cannot create namespace file "/run/netns/vtax-c1": File exists'
    asked = answers(lambda argv: answered(1, stderr=message))
    with pytest.raises(ProvisionError, match="the network namespace vtax-c1 exists already") as raised:
        network.make(network.namespace("c1", PLACE))
    assert "vtax clean" in raised.value.remedy
    assert "ip netns del vtax-c1" in raised.value.remedy
    assert len(asked) == 1, "nothing is done to a namespace that another cluster may be using"


def test_no_right_to_make_one(answers: Install) -> None:
    answers(lambda argv: answered(255, stderr="mount --make-shared /run/netns failed: Operation not permitted"))
    with pytest.raises(CommandError, match="ip netns add vtax-c1") as raised:
        network.make(network.namespace("c1", PLACE))
    assert "SYS_ADMIN" in raised.value.remedy


def test_a_port_of_that_name_exists(answers: Install) -> None:
    taken = "RTNETLINK answers: File exists"
    answers(lambda argv: answered(2, stderr=taken) if "veth" in argv else answered(0))
    with pytest.raises(CommandError, match="link add name worker1") as raised:
        network.make(network.node("c1", PLACE, "worker1", "10.214.0.11"))
    assert raised.value.detail == taken


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program, path: f"/sbin/{program}")


def said() -> list[str]:
    found = list(network.refused('network = "bridge"', 'or network = "none"', "bridge", "veth"))
    assert all(one.severity is Severity.BLOCKER for one in found)
    return [f"{one.message} | {one.remedy}" for one in found]


@pytest.mark.usefixtures("root")
def test_a_bridge_is_tried_before_anything_runs(answers: Install) -> None:
    asked = answers(lambda argv: answered(0))
    assert said() == said() == []
    command = "ip link set lo up && ip link add probe0 type bridge && ip link add probe1 type veth"
    assert asked == [("unshare", "--net", "sh", "-c", command)], "once"


@pytest.mark.usefixtures("root")
def test_a_kernel_without_bridges(answers: Install) -> None:
    answers(lambda argv: answered(2, stderr="RTNETLINK answers: Operation not supported\n"))
    (only,) = said()
    assert only.startswith('network = "bridge": network namespaces with bridge and veth cannot be made: RTNETLINK')
    assert "modprobe -a bridge veth" in only
    assert only.endswith('or network = "none"')


@pytest.mark.usefixtures("root")
def test_without_the_programs(answers: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(lambda argv: answered(0))
    monkeypatch.setattr("shutil.which", lambda program, path: None if program == "ip" else "/sbin/sysctl")
    assert said() == [
        'network = "bridge" needs ip and sysctl | apt-get install iproute2; or network = "none"',
    ]
    assert asked == []


def test_an_ordinary_user_gets_none(answers: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(lambda argv: answered(0))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert said() == ['network = "bridge" needs root, to make a bridge | run vtax as root, or network = "none"']
    assert asked == []


# --- what is there ---------------------------------------------------------------------------------------------------


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "netns"
    place.mkdir()
    monkeypatch.setattr(network, "NAMESPACES", place)
    return place


@pytest.mark.usefixtures("root")
def test_all_parts_of_a_label_are_removed_and_nothing_else(answers: Install, there: Path) -> None:
    for name in ("vtax-c1", "vtax-c1.bridge", "vtax-c1.worker1", "vtax-c11", "vtax-up-c1", "netns-c1", "vtax-c2.c1"):
        (there / name).touch()

    def remove(argv: tuple[str, ...]) -> CommandResult:
        (there / argv[-1]).unlink()
        return answered(0)

    answers(remove)
    network.remove("c1")
    assert sorted(path.name for path in there.iterdir()) == ["netns-c1", "vtax-c11", "vtax-c2.c1", "vtax-up-c1"]
    network.remove("c1")


def test_one_that_is_gone_meanwhile_is_removed(answers: Install, there: Path) -> None:
    (there / "vtax-c1").touch()

    def gone(argv: tuple[str, ...]) -> CommandResult:
        (there / "vtax-c1").unlink()
        return answered(1, stderr="Cannot remove namespace file: No such file or directory")

    answers(gone)
    network.remove("c1")


def test_one_that_cannot_be_removed_is_an_error(answers: Install, there: Path) -> None:
    (there / "vtax-c1").touch()
    answers(lambda argv: answered(1, stderr="Cannot remove namespace file: Operation not permitted"))
    with pytest.raises(CommandError, match="ip netns del vtax-c1"):
        network.remove("c1")


@pytest.mark.usefixtures("root")
def test_whose_they_are(answers: Install, there: Path, tmp_path: Path) -> None:
    """By the alias of the loopback interface; those without parts are of virtual machines, the others of the host."""
    ours, theirs = tmp_path / "run" / "c1c1c1c1" / "host", tmp_path / "other" / "c2c2c2c2" / "host"
    for place in (ours, theirs, tmp_path / "run" / "c5c5c5c5"):
        place.mkdir(parents=True)
    aliases = {
        "vtax-c1c1c1c1.worker1": str(ours),
        "vtax-c2c2c2c2.bridge": str(theirs),
        "vtax-c3c3c3c3.loopback": "/gone/c3c3c3c3/host",  # still found by the vtax with that directory
        "vtax-c4c4c4c4.bridge": "",  # killed before it was recorded
        "vtax-c5c5c5c5.bridge": "",
        "vtax-c6c6c6c6": str(ours),
    }
    for name in (*aliases, "netns-1234"):
        (there / name).touch()
    answers(lambda argv: answered(0, stdout=f'[{{"ifname":"lo","ifalias":"{aliases[argv[2]]}"}}]'.replace('""', "0")))
    found = {one.name: one.elsewhere for one in network.leftovers("host", tmp_path / "run", parts=True)}
    assert found == {
        "vtax-c1c1c1c1.worker1": "",
        "vtax-c2c2c2c2.bridge": str(tmp_path / "other"),
        "vtax-c3c3c3c3.loopback": "/gone",
        "vtax-c4c4c4c4.bridge": UNKNOWN,
        "vtax-c5c5c5c5.bridge": "",
    }
    assert [one.name for one in network.leftovers("qemu", tmp_path / "run", parts=False)] == ["vtax-c6c6c6c6"]


def test_only_root_removes_any(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (there / "vtax-c1").touch()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert list(network.found()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"ifname":"lo"}]', "not JSON"])
def test_a_namespace_that_does_not_say_whose_it_is(text: str) -> None:
    assert network.alias(text) is None
