"""What the shared directory of clusters on several machines is, and what the plan says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from fakes.cluster import FakeProvider, node_shape
from unit.planning.test_machines import STUDY, A, B, plan_of
from vtax.machines import sharing as making
from vtax.machines.agent import Agent
from vtax.machines.channel import Message
from vtax.machines.provider import RemoteProvider
from vtax.machines.spread import SpreadProvider, label_on
from vtax.model.capabilities import Capabilities
from vtax.model.cluster import Image
from vtax.model.link import Interconnect, Uplink
from vtax.model.nodes import ClusterShape
from vtax.model.plan import Plan
from vtax.model.study import EnvironmentSpec, MachineSpec, Study
from vtax.planning.sharing import form, with_nfs, with_nfs_between
from vtax.planning.study import parse
from vtax.providers import parts
from vtax.providers.base import Provider, Site

SPREAD = '[nodes]\nworkers = 1\nplace = "spread"\n'
TABLE = '[nodes]\nworkers = 1\nplace = { master = "b", worker1 = "a" }\n'
FILES = '[[benchmarks]]\nname = "iozone"\n'


class Machine:
    """An agent that says what it cannot do, and what it was asked."""

    def __init__(self, serve: str = "", mount: str = "", log: list[str] | None = None) -> None:
        self.said = {"serve": serve, "mount": mount}
        self.log = [] if log is None else log

    def ask(self, what: str, **given: Any) -> Message:
        self.log.append(" ".join([what, *(f"{name}={value}" for name, value in given.items())]))
        return Message(self.said if what == "nfs" else {}, b"")


def agents(**machines: Machine) -> dict[str, Agent]:
    return {name: cast(Agent, one) for name, one in machines.items()}


def study_of(more: str) -> Study:
    study = parse(STUDY + FILES + more, "test.toml")
    specs = tuple(EnvironmentSpec(name=spec.name, provider="fake") for spec in study.environments)
    return study.model_copy(update={"environments": specs})


def places_of(study: Study) -> set[str]:
    return {work.target.directory.partition("/")[2].partition("/")[0] for work in plan_of(study).work}


def test_machines_that_share_nothing_get_a_directory_by_nfs() -> None:
    study = with_nfs(study_of(A + B + SPREAD), agents(a=Machine(), b=Machine()))
    assert study.one_directory and places_of(study) == {"scratch", "shared"}
    assert form(study) == (
        "/shared is served by the master's machine with NFS 4.2, because the machines share no directory "
        "(`shared` in [machines.NAME] names one)"
    )


@pytest.mark.parametrize(
    ("more", "machines", "why"),
    [
        (
            SPREAD,
            {"a": Machine(serve="its kernel has no module nfsd"), "b": Machine()},
            "machine a cannot serve: its kernel has no module nfsd",
        ),
        (
            SPREAD,
            {"a": Machine(), "b": Machine("port 2049 is taken", "no root")},
            "machine b cannot serve: port 2049 is taken; machine b cannot mount: no root",
        ),
        (TABLE, {"a": Machine(mount="no program"), "b": Machine()}, "machine a cannot mount: no program"),
        (
            SPREAD + "[shared]\nnfs = false\n",
            {"a": Machine(), "b": Machine()},
            "NFS is turned off (nfs = false in [shared])",
        ),
    ],
)
def test_where_it_cannot_be_entries_are_left_out_and_the_plan_says_why(
    more: str, machines: dict[str, Machine], why: str
) -> None:
    study = with_nfs(study_of(A + B + more), agents(**machines))
    without = f"the machines share no directory (`shared` in [machines.NAME] names one), and not by NFS: {why}"
    assert not study.one_directory and places_of(study) == {"scratch"}
    assert form(study) == f"no /shared: {without}"
    assert f"iozone is not run on shared: {without}" in plan_of(study).left_out
    asked = [line for one in machines.values() for line in one.log]
    assert asked == ([] if "false" in more else ["nfs", "nfs"])


def test_only_the_machines_that_may_be_the_masters_have_to_serve() -> None:
    """With a table, that is one machine; and one that serves always mounts nothing."""
    others = {"a": Machine(serve="its kernel has no module nfsd"), "b": Machine(mount="mount.nfs4 is not installed")}
    assert not with_nfs(study_of(A + B + SPREAD), agents(**others)).one_directory
    assert with_nfs(study_of(A + B + TABLE), agents(**others)).one_directory


def test_a_directory_that_they_share_already_is_used_instead() -> None:
    shared = A + 'shared = "/srv/lab"\n' + B + 'shared = "/srv/lab"\n' + SPREAD
    machines = {"a": Machine(), "b": Machine()}
    study = with_nfs(study_of(shared), agents(**machines))
    assert study.one_directory and not study.nfs_used and [one.log for one in machines.values()] == [[], []]
    assert form(study) == "/shared is a part of /srv/lab, which the machines share already"


def test_studies_of_one_machine_a_cluster_have_no_trace_of_it() -> None:
    one = A + '[nodes]\nworkers = 1\nplace = { master = "a", worker1 = "a" }\n'
    for study in (study_of(A + B), study_of(one)):
        assert with_nfs(study, {}) is study
        assert not any(name.startswith("nfs") for name in study.model_dump(mode="json"))


# --- nodes that exist already

EXISTING = """\
name = "test"
baseline = "host"
[environments.host]
provider = "host"
[environments.cloud]
provider = "ssh"
nodes = { master = "vm1", worker1 = "vm2" }
[environments.other]
provider = "ssh"
nodes = { master = "vm3", worker1 = "vm4" }
[nodes]
workers = 1
[[benchmarks]]
name = "iozone"
"""
BETWEEN = "share no directory (`shared` in the environment names one)"


def between_nodes(text: str, **refused: str | None) -> Study:
    study = parse(text, "test.toml")
    providers = {spec.name: FakeProvider(spec.name, Path("run")) for spec in study.environments}
    for name, why in refused.items():
        providers[name].shares_refused = why
    known = {name: cast(Provider, one) for name, one in providers.items()}
    return with_nfs_between(study, known, shape("", ""))


def planned(study: Study) -> Plan:
    """The plan, with fakes in place of the providers, which have no options."""
    bare = tuple(spec.model_copy(update={"options": {}}) for spec in study.environments)
    return plan_of(study.model_copy(update={"environments": bare}))


def test_nodes_that_share_nothing_get_a_directory_by_nfs() -> None:
    study = between_nodes(EXISTING, cloud="", other="")
    assert study.one_directory and study.nfs_used and not planned(study).left_out
    said = f"/shared of cloud and other is served by the master's machine with NFS 4.2, because the nodes {BETWEEN}"
    assert form(study) == said
    assert Study.model_validate_json(study.model_dump_json()).one_directory, "a campaign that goes on has it too"


@pytest.mark.parametrize(
    ("more", "refused", "why"),
    [
        ("", {"cloud": "machine cloud-master cannot serve: no root", "other": ""}, "machine cloud-master cannot serve"),
        ("", {"cloud": "one", "other": "two"}, "one; two"),
        ("[shared]\nnfs = false\n", {"cloud": "", "other": ""}, "NFS is turned off (nfs = false in [shared])"),
    ],
)
def test_where_nodes_cannot_have_it_entries_are_left_out_in_all_environments(
    more: str, refused: dict[str, str | None], why: str
) -> None:
    study = between_nodes(EXISTING + more, **refused)
    without = f"the nodes of cloud and other {BETWEEN}, and not by NFS: {why}"
    assert not study.one_directory
    assert form(study).startswith(f"no /shared: {without}")
    bare = f"iozone is not run on shared: the nodes of cloud and other share no directory, and not by NFS: {why}"
    assert any(line.startswith(bare) for line in planned(study).left_out)


def test_one_environment_for_which_vtax_serves_none_is_enough() -> None:
    study = between_nodes(EXISTING, cloud="", other=None)
    assert form(study) == f"no /shared: the nodes of cloud and other {BETWEEN}"


def test_a_directory_that_nodes_have_is_used_instead() -> None:
    nodes = 'worker1 = "vm{}" }}\n'
    text = EXISTING.replace(nodes.format(2), nodes.format(2) + 'shared = "/srv"\n')
    text = text.replace(nodes.format(4), nodes.format(4) + 'shared = "/srv"\n')
    study = between_nodes(text, cloud="", other="")
    assert study.one_directory and not study.nfs_used and form(study) == ""


# --- clusters


def shape(*machines: str) -> ClusterShape:
    names = ("master", "worker1", "worker2")
    nodes = (node_shape(name, (0,)) for name in names[: len(machines)])
    return ClusterShape(
        nodes=tuple(node.model_copy(update={"machine": one}) for node, one in zip(nodes, machines, strict=True))
    )


def between(*machines: str) -> Interconnect:
    uplinks = {
        name: Uplink(address=f"10.0.0.{number}", interface="eth0", mtu=1500)
        for number, name in enumerate(machines, start=1)
    }
    return Interconnect(kind="host", uplinks=uplinks, mtu=1500, port=20000, prefix="10.213.7")


OWN = "/run/vtax-0123abcd-89abcdef"


def test_it_is_exported_first_and_to_the_others_alone() -> None:
    log: list[str] = []
    machines = {name: Machine(log=log) for name in "abc"}
    nodes = shape("b", "a", "c")
    links = parts.links(nodes, between("b", "a", "c"), dict.fromkeys("bac", OWN), "b")
    making.share(agents(**machines), links, {"a": "aaaaaaaa", "b": "bbbbbbbb", "c": "cccccccc"}, "box")
    name = OWN.rpartition("/")[2]
    assert log[0] == f"serve_share label=bbbbbbbb provider=box name={name} clients=('10.0.0.2', '10.0.0.3')"
    assert sorted(log[1:]) == [
        f"mount_share label=aaaaaaaa provider=box name={name} server=10.0.0.1",
        f"mount_share label=cccccccc provider=box name={name} server=10.0.0.1",
    ]
    assert {parts.node_facts(links, node.name)["shared_server"] for node in nodes.nodes} == {"b"}
    assert "shared directory: served by b with NFS from 10.0.0.1" in list(parts.sentences(links["a"]))


def test_a_directory_of_their_own_needs_no_server() -> None:
    log: list[str] = []
    links = parts.links(shape("a", "b"), between("a", "b"), {"a": f"/srv/{OWN[5:]}", "b": f"/srv/{OWN[5:]}"})
    making.share(agents(a=Machine(log=log), b=Machine(log=log)), links, {}, "box")
    assert log == [] and "shared_server" not in parts.node_facts(links, "master")


class Made(Machine):
    """An agent of a machine that has an interface."""

    def __init__(self, address: str, log: list[str]) -> None:
        super().__init__(log=log)
        self.address = address

    def ask(self, what: str, **given: Any) -> Message:
        if what == "interfaces":
            listed: Any = [{"name": "eth0", "mtu": 1500, "addresses": [f"{self.address}/24"]}]
            return Message(listed, b"")
        return super().ask(what, **given)


@pytest.mark.parametrize(("own_kernel", "server"), [(False, "b"), (True, "")])
def test_guests_have_a_server_of_their_own(tmp_path: Path, own_kernel: bool, server: str) -> None:
    spread, site = spread_of(tmp_path, [])
    spread.capabilities = Capabilities(own_kernel=own_kernel)
    for link in spread._links(EnvironmentSpec(name="box", provider="box"), shape("b", "a"), site).values():
        assert link.server == server and link.shared.startswith("/run/vtax-0123abcd-")


def spread_of(tmp_path: Path, log: list[str]) -> tuple[SpreadProvider, Site]:
    known = agents(a=Made("10.0.0.1", log), b=Made("10.0.0.2", log))
    on = {name: cast(RemoteProvider, FakeProvider("box", tmp_path / name)) for name in known}
    made = SpreadProvider(known, on, {name: MachineSpec(ssh=name) for name in known}, nfs=True)
    return made, Site("0123abcd", tmp_path, cast(Image, None), tmp_path)


def test_what_others_mount_is_removed_after_they_have(tmp_path: Path) -> None:
    log: list[str] = []
    spread, _ = spread_of(tmp_path, log)
    spread.serving["0123abcd"] = "a"
    spread.destroy("0123abcd")
    assert [line.partition(" ")[0] for line in log] == ["destroy_part"] * 2
    assert log[-1].endswith(label_on("0123abcd", "a"))


def test_a_machine_that_can_serve_no_more_is_refused_before_a_campaign_goes_on() -> None:
    known = agents(a=Machine(serve="port 2049 is taken by another program"), b=Machine())
    (problem,) = making.problems(known, shape("a", "b"))
    assert problem.message == "the shared directory: machine a cannot serve: port 2049 is taken by another program"
    assert "nfs = false in [shared]" in problem.remedy
    assert list(making.problems(known, shape("b", "a"))) == []
