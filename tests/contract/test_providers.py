"""What every built-in provider keeps before anything is created: no daemon is asked, no process started."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from builders.small import IMAGE
from fakes.cluster import node_shape, result_of
from vtax.launchers.base import ranks_for
from vtax.model.capabilities import NodeKind
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape, HostCapacity, Scope, Target
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.providers import ALIASES, BUILT_IN, built_in, cgroup, network, option_models, provider
from vtax.providers.base import LABEL, Provider, Site
from vtax.providers.cgroup import Hierarchy
from vtax.providers.container.provider import Container
from vtax.providers.host import processes
from vtax.providers.qemu import kvm, qmp
from vtax.providers.qemu.provider import Qemu
from vtax.providers.virtualbox import manage
from vtax.transport import process

GIB = 2**30
EQUAL = ClusterShape(nodes=(node_shape("master", (4, 5)), node_shape("worker1", (0, 1)), node_shape("worker2", (2, 3))))
UNEQUAL = ClusterShape(
    nodes=(
        node_shape("master", (7,), GIB),
        node_shape("worker1", (0, 1, 2, 3), 4 * GIB),
        node_shape("worker2", (4, 5, 6), 2 * GIB),
    )
)
SMALLEST = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (0,))))

MAKING = [name for name, kind in built_in().items() if not kind.capabilities.away]  # on this machine
of_every_provider = pytest.mark.parametrize("name", BUILT_IN)
ENGINES = [name for name in MAKING if built_in()[name].capabilities.kind is NodeKind.CONTAINER]
PODS = [name for name, kind in built_in().items() if kind.capabilities.elsewhere]
on_every_shape = pytest.mark.parametrize("shape", [EQUAL, UNEQUAL, SMALLEST], ids=["equal", "unequal", "smallest"])


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU and KVM are asked elsewhere; what KVM answers would be written down."""
    monkeypatch.setattr(kvm, "probe", lambda runtime, again=False: kvm.Answer("not asked"))
    monkeypatch.setattr(Qemu, "_version", lambda self: None)


@pytest.fixture
def made(name: str, tmp_path: Path) -> Provider:
    return provider(name, tmp_path / "run")


def spec_of(name: str, shape: ClusterShape = EQUAL) -> EnvironmentSpec:
    """An environment with all its defaults, as a study has it; pods have their machines by name."""
    model = option_models()[name]
    places = {node.name: f"machine-{node.name}" for node in shape.nodes} if "nodes" in model.model_fields else {}
    options = model.model_validate({"nodes": places} if places else {})
    return EnvironmentSpec(name="box", provider=name, options=options.model_dump(mode="json"))


@of_every_provider
def test_it_is_called_what_it_is_registered_as(name: str, made: Provider) -> None:
    assert made.name == name
    assert made.install_hint
    assert 0 < made.provision_estimate_s < 600


@of_every_provider
def test_every_option_has_a_default_and_survives_the_plan(name: str, made: Provider) -> None:
    defaults = made.options()
    assert made.options.model_validate(defaults.model_dump(mode="json")) == defaults
    assert option_models()[name] is made.options


@of_every_provider
def test_it_declares_what_its_nodes_are(name: str, made: Provider) -> None:
    declared = made.capabilities
    assert declared.kind is not NodeKind.UNKNOWN
    assert declared.own_kernel is (declared.kind is NodeKind.VM)
    assert declared.limits_cpu
    assert declared.shares_machine is not declared.away, "what is made is made here, or on machines of a cluster"
    assert not (declared.existing and declared.elsewhere), "what is there is not made"
    assert bool(made.runners) is (declared.kind is not NodeKind.HOST and not declared.elsewhere)


@pytest.mark.parametrize("alias", ALIASES)
def test_the_providers_of_an_alias_take_the_same_options(alias: str) -> None:
    assert {option_models()[name] for name in ALIASES[alias]} == {option_models()[alias]}


@of_every_provider
def test_making_it_changes_nothing(name: str, made: Provider, tmp_path: Path) -> None:
    assert made.capabilities
    assert list(tmp_path.iterdir()) == []


@on_every_shape
@of_every_provider
def test_the_commands_of_the_plan_are_pure(name: str, made: Provider, shape: ClusterShape, tmp_path: Path) -> None:
    commands = made.commands(spec_of(name, shape), shape, "/shared", "cloud")
    assert commands
    assert commands == made.commands(spec_of(name, shape), shape, "/shared", "cloud")
    assert commands == provider(name, tmp_path / "elsewhere").commands(spec_of(name, shape), shape, "/shared", "cloud")
    assert list(tmp_path.iterdir()) == []


@of_every_provider
def test_an_image_of_the_study_is_in_the_commands_or_refused(
    name: str, made: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(process, "run", lambda argv, **_: result_of(argv, (0, "[]", "")))
    spec = spec_of(name)
    plain, given = (made.commands(spec, EQUAL, "/shared", "cloud", workload=own) for own in (False, True))
    words = {word for line in given for word in line} - {word for line in plain for word in line}
    if problems := made.workload_problems(spec):
        assert [problem.severity for problem in problems] == [Severity.BLOCKER]
        assert repr(name) in problems[0].message
    else:
        own = made.capabilities.own_kernel
        places = ["IMAGE.disk"] if own else [f"{node.name}" for node in EQUAL.nodes]
        assert all(any(place in word for word in words) for place in places)


@on_every_shape
@of_every_provider
def test_everything_that_is_made_carries_the_label(name: str, made: Provider, shape: ClusterShape) -> None:
    for command in made.commands(spec_of(name, shape), shape, "/shared", "cloud"):
        named = made.capabilities.kind is not NodeKind.CONTAINER and any("vtax-CAMPAIGN" in word for word in command)
        described = json.loads(command[-1]) if made.capabilities.elsewhere else {"metadata": {"labels": {}}}
        assert f"{LABEL}=CAMPAIGN" in command or named or described["metadata"]["labels"][LABEL] == "CAMPAIGN"


@on_every_shape
@of_every_provider
def test_no_command_takes_more_than_it_needs(name: str, made: Provider, shape: ClusterShape) -> None:
    for command in made.commands(spec_of(name, shape), shape, "/shared", "cloud"):
        line = shlex.join(command)
        for forbidden in ("--privileged", "0.0.0.0", "--network host", "--network=host", "--pid host", "--cap-add"):
            assert forbidden not in line
        published = [command[i + 1] for i, word in enumerate(command) if word in ("--publish", "-p")]
        assert all(place.startswith("127.0.0.1:") for place in published)


@pytest.mark.parametrize("name", ENGINES)
def test_every_node_has_its_limits(name: str, made: Provider) -> None:
    commands = made.commands(spec_of(name, UNEQUAL), UNEQUAL, "/shared", "cloud")
    for node in UNEQUAL.nodes:
        (command,) = (line for line in commands if line[-1].startswith("vtax-rootfs:") and node.name in line)
        after = dict(pairwise(command))
        assert after["--cpuset-cpus"] == ",".join(map(str, node.cpu_ids))
        assert after["--memory"] == after["--memory-swap"] == str(node.memory_bytes)
        assert int(after["--cpu-quota"]) > node.cpus * int(after["--cpu-period"])


@pytest.mark.parametrize("name", PODS)
def test_every_pod_has_its_limits(name: str, made: Provider) -> None:
    spec = spec_of(name, UNEQUAL)
    described = [json.loads(line[-1]) for line in made.commands(spec, UNEQUAL, "/shared", "cloud")]
    for node in UNEQUAL.nodes:
        (pod,) = (one for one in described if one["kind"] == "Pod" and node.name in one["metadata"]["name"])
        (container,) = pod["spec"]["containers"]
        limits = {"cpu": str(node.cpus), "memory": str(node.memory_bytes)}
        assert container["resources"]["limits"] == container["resources"]["requests"] == limits


@on_every_shape
@of_every_provider
def test_its_launcher_starts_mpirun(name: str, made: Provider, shape: ClusterShape) -> None:
    launcher = made.launcher(made.options())
    assert launcher == made.launcher(made.options())
    separate = made.capabilities_with(made.options()).separate_nodes
    for scope, nodes in ((Scope.WORKERS, shape.workers), (Scope.CLUSTER, shape.nodes)):
        target = Target(scope=scope, nodes=nodes, directory="/shared/it")
        ranks = ranks_for(nodes)
        argv = launcher.argv(("program", "--flag"), target, ranks)
        assert argv[0] == "mpirun"
        assert argv[-2:] == ("program", "--flag")
        assert argv[argv.index("--np") + 1] == str(ranks.total)
        assert launcher.one_machine is not separate
        assert bool(launcher.inputs(target, ranks)) is separate


# --- where nothing is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_not_installed(
    name: str, made: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert made.unavailable() == f"{name} is not installed"
    (problem,) = made.check(spec_of(name), EQUAL, HostCapacity(cpu_ids=(0,), memory_bytes=GIB))
    assert (problem.severity, problem.message) == (Severity.BLOCKER, f"{name} is not installed")
    assert "apt-get install" in problem.remedy
    assert made.leftovers() == ()
    made.destroy("never")
    made.destroy("never")


@pytest.mark.parametrize("version", [1, 2])
def test_a_host_without_anything_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    trees = [tmp_path / "cpuset", tmp_path / "memory"] if version == 1 else [tmp_path / "unified"] * 2
    for tree in trees:
        tree.mkdir(exist_ok=True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # only root makes control groups
    monkeypatch.setattr(cgroup, "find", lambda: Hierarchy(version, *trees))
    monkeypatch.setattr(processes, "labelled", list)  # this machine may be running something else
    monkeypatch.setattr(network, "NAMESPACES", tmp_path / "netns")
    made = provider("host", tmp_path / "run")
    assert made.leftovers() == []
    made.destroy("never")
    made.destroy("never")
    assert all(list(tree.iterdir()) == [] for tree in trees)


# --- pauses --------------------------------------------------------------------------------------------------------


class Machine:
    """What is asked of engines, monitors and VirtualBox, and which nodes are paused now."""

    def __init__(self) -> None:
        self.paused: set[str] = set()

    def engine(self, words: Sequence[str], **_: object) -> CommandResult:
        nodes = [word.rpartition("-")[2] for word in words if word.startswith("vtax-c1-")]
        if words[0] == "inspect":
            return result_of(words, (0, json.dumps([{"State": {"Pid": 0}} for _ in nodes]), ""))
        self.tell(words[0], nodes)
        return result_of(words, (0, "", ""))

    def monitor(self, path: Path, command: str, *, answer_s: float) -> object:
        self.tell(command, [path.parent.name])
        return {}

    def manage(self, line: Sequence[str], *, check: bool = True) -> CommandResult:
        self.tell(line[-1], [line[2].rpartition("-")[2]])
        return result_of(line, (0, "", ""))

    def tell(self, word: str, nodes: Iterable[str]) -> None:
        if word in ("pause", "stop"):
            self.paused |= set(nodes)
        else:
            assert word in ("unpause", "cont", "resume")
            self.paused -= set(nodes)


@pytest.mark.parametrize("name", MAKING)
def test_its_clusters_can_be_paused_and_resumed(
    name: str, made: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes at once, as often as wanted. Those of the host have nothing that runs between trials."""
    machine = Machine()
    monkeypatch.setattr(Container, "run", lambda self, words, *rest, **more: machine.engine(words))
    monkeypatch.setattr(qmp, "ask", machine.monitor)
    monkeypatch.setattr(manage, "run", machine.manage)
    monkeypatch.setattr(cgroup, "find", lambda: None)
    changed = {"directory": str(tmp_path / "rootfs"), "enter_digest": hashlib.sha256(b"").hexdigest()}
    image = IMAGE.model_copy(update=changed)
    Path(image.enter).touch()
    site = Site("c1", tmp_path / "c1" / "box", image, tmp_path / "c1" / "keys")
    site.directory.mkdir(parents=True)
    saved = {"commands": [], "notes": [], "timeout_factor": 1, "facts": {}}
    virtual = made.capabilities.kind is NodeKind.VM
    (site.directory / "commands.json").write_text(json.dumps(saved if virtual else []))
    (site.directory / "places.json").write_text(json.dumps({node.name: "10.0.0.1" for node in EQUAL.nodes}))
    pausing = provider(name, tmp_path / "run").connect(spec_of(name), EQUAL, "/shared", site).pausing
    assert pausing is not None, "without it, environments are measured one after the other"
    everything = set() if made.capabilities.kind is NodeKind.HOST else {node.name for node in EQUAL.nodes}
    for _ in range(2):
        assert pausing.pause()
        assert machine.paused == everything
        pausing.resume()
        pausing.resume()
        assert machine.paused == set()
