"""Nodes and providers that exist only in memory: the seam at which tests take the place of containers and machines.

A node answers commands through a function (argv, stdin) -> (exit code, standard output, standard error). Nodes of a
`FakeProvider` answer by themselves whatever provisioning asks of them, as planned, so that a test scripts only what it
is about; every command is recorded in `calls`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from vtax.errors import ProvisionError
from vtax.facts.sections import MARK
from vtax.launchers.base import Launcher, ranks_for
from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem, Severity
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Role
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.providers.base import Cluster, Leftover, Node, Options, Site
from vtax.transport.base import Transport
from vtax.transport.process import Watch
from vtax.transport.visit import ABSENT, FETCH, WHOLE, Asked, Errand, not_kept, nothing

GIB = 2**30
EXPIRED = 124  # the exit code of `timeout`: a fake command with it counts as timed out
STARTED = 1_760_000_000.0
ELAPSED_S = 1.25  # a little more than what the recorded runs say of themselves

Reply = tuple[int, str, str]
Answer = Callable[[tuple[str, ...], str], Reply]
Script = Callable[[str, tuple[str, ...], str], Reply | None]  # node, argv, stdin; None: as a healthy node answers


@dataclass(frozen=True)
class Call:
    """One command that a fake node was given."""

    node: str
    argv: tuple[str, ...]
    stdin: str
    directory: str
    timeout_s: float
    background: bool = False


def fine(argv: tuple[str, ...], stdin: str) -> Reply:
    """Every command succeeds and says nothing."""
    return 0, "", ""


def result_of(argv: Sequence[str], reply: Reply) -> CommandResult:
    exit_code, stdout, stderr = reply
    return CommandResult(
        argv=tuple(argv),
        exit_code=exit_code,
        stdout=stdout,
        stderr=stderr,
        started=STARTED,
        elapsed_s=ELAPSED_S,
        timed_out=exit_code == EXPIRED,
    )


@dataclass
class FakeBackground:
    """A command in the background that has already said all that it will say."""

    result: CommandResult
    stopped: int = 0
    over: bool = False
    stubborn: bool = False
    signals: list[int] = field(default_factory=list)

    def ended(self) -> bool:
        return self.over

    def exit_code(self) -> int | None:
        return self.result.exit_code if self.over else None

    def wait_for(self, pattern: re.Pattern[str], timeout_s: float) -> bool:
        return pattern.search(self.result.stdout) is not None

    def too_long(self) -> str:
        return ""

    def stop(self) -> CommandResult:
        self.stopped += 1
        return self.result

    def finish(self, number: int, grace_s: float) -> CommandResult:
        """With the exit code that its node answered with, or of what is killed because it ignores signals."""
        self.stopped += 1
        self.signals.append(number)
        late = self.stubborn and not self.over
        return self.result.model_copy(update={"exit_code": 137 if late else self.result.exit_code, "timed_out": late})


@dataclass
class FakeVisit:
    """A visit that asks its node for one thing after the other."""

    node: FakeTransport
    errand: Errand
    timeout_s: float
    directory: str
    stdout: Path
    stderr: Path

    def __post_init__(self) -> None:
        if self.errand.files:
            self._told(("sh", "-s"), f"rm -f -- {shlex.join(self.errand.files)}\n")
        self.before = self._asked()

    def _told(self, argv: tuple[str, ...], stdin: str = "") -> CommandResult:
        return self.node.run(argv, timeout_s=self.timeout_s, directory=self.directory, stdin=stdin)

    def _asked(self) -> Asked:
        result = self._told(("sh", "-s"), self.errand.asked) if self.errand.asked != ":" else result_of((), (0, "", ""))
        return Asked(result.stdout if result.exit_code == 0 else "", result.started, result.elapsed_s)

    def run(self, watch: Watch = nothing) -> CommandResult:
        result = self.node.run(
            self.errand.argv,
            timeout_s=self.timeout_s,
            directory=self.directory,
            stdout=self.stdout,
            stderr=self.stderr,
        )
        return result.model_copy(update={"stopped": watch()})

    def leave(self, places: Mapping[str, Path]) -> tuple[Asked, Mapping[str, str]]:
        after = self._asked()
        read = {name: self._told((*FETCH, name)) for name in self.errand.files}
        codes = {name: f"{result.exit_code}" for name, result in read.items()}
        found = {name: "" if code == WHOLE else not_kept(code) for name, code in codes.items() if code != ABSENT}
        for name, reason in found.items():
            if not reason:
                places[name].write_text(read[name].stdout)
        return after, found

    def end(self) -> None:
        """Nothing is left of it."""


@dataclass
class FakeTransport:
    """A node that answers through a function. Output goes to the files that the caller names, as in the real ones."""

    node: str = "node"
    answer: Answer = fine
    calls: list[Call] = field(default_factory=list)
    backgrounds: list[FakeBackground] = field(default_factory=list)
    closed: int = 0
    dying: set[str] = field(default_factory=set)  # words in commands in the background that end by themselves
    stubborn: set[str] = field(default_factory=set)  # and in those that ignore signals

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        directory: str = "/",
        stdin: str | bytes = "",
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
        stderr: Path | None = None,
        watch: Watch = nothing,
    ) -> CommandResult:
        given = stdin if isinstance(stdin, str) else stdin.decode(errors="replace")
        self.calls.append(Call(self.node, tuple(argv), given, directory, timeout_s))
        result = result_of(argv, self.answer(tuple(argv), given))
        if stdout is not None:
            stdout.write_text(result.stdout)
            result = result.model_copy(update={"stdout": ""})
        if stderr is not None:
            stderr.write_text(result.stderr)
            result = result.model_copy(update={"stderr": ""})
        return result

    def start(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        directory: str = "/",
        stdout: Path,
        stderr: Path,
        control: bool = False,
    ) -> FakeBackground:
        self.calls.append(Call(self.node, tuple(argv), "", directory, timeout_s, background=True))
        result = result_of(argv, self.answer(tuple(argv), ""))
        stdout.write_text(result.stdout)
        stderr.write_text(result.stderr)
        words = set(argv)
        running = FakeBackground(result, over=bool(words & self.dying), stubborn=bool(words & self.stubborn))
        self.backgrounds.append(running)
        return running

    def visit(self, errand: Errand, *, timeout_s: float, directory: str = "/", stdout: Path, stderr: Path) -> FakeVisit:
        return FakeVisit(self, errand, timeout_s, directory, stdout, stderr)

    def shell(self, argv: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        return ("fake-shell", "-t" if terminal else "-T", self.node, *argv)

    def close(self) -> None:
        self.closed += 1


def node_shape(name: str, cpu_ids: Sequence[int] = (0,), memory_bytes: int = 2 * GIB) -> NodeShape:
    """A node of the shape; `master` is the master, every other name a worker."""
    return NodeShape(
        name=name,
        role=Role.MASTER if name == "master" else Role.WORKER,
        cpus=len(cpu_ids),
        cpu_ids=tuple(cpu_ids),
        memory_bytes=memory_bytes,
        disk_bytes=4 * GIB,
        last_cache_bytes=8 * 2**20,
    )


def facts_text(
    *,
    cpus: str | None = "0",
    memory_bytes: int | None = 2 * GIB,
    quota: str | None = None,
    hostname: str = "worker1",
) -> str:
    """What the fact script prints on a node, as far as provisioning checks it. None: it cannot be seen there.

    `quota` is the content of cpu.max, such as "200000 100000".
    """
    group = "/sys/fs/cgroup"
    levels = [] if memory_bytes is None else [f"{group}/memory.max:{memory_bytes}"]
    levels += [] if quota is None else [f"{group}/cpu.max:{quota}"]
    sections = {
        "files": f"/proc/sys/kernel/hostname:{hostname}",
        "status": "Seccomp:\t2" if cpus is None else f"Seccomp:\t2\nCpus_allowed_list:\t{cpus}",
        "levels": "\n".join(levels),
        "end": "",
    }
    return "".join(f"\n{MARK} {name}\n{text}\n" for name, text in sections.items())


COUNTERS = f"""
{MARK} levels

{MARK} files
/proc/stat:cpu  100 0 100 1000 0 0 0 0 0 0
/proc/vmstat:pswpin 0
/proc/vmstat:pswpout 0
/proc/loadavg:0.50 0.50 0.50 1/100 1000

{MARK} end
"""


@dataclass
class HealthyNodes:
    """How the nodes of a cluster that is as planned answer what provisioning asks of them."""

    shape: ClusterShape
    launcher: Launcher
    limits_memory: bool = True
    files: dict[str, str] = field(default_factory=dict)  # the shared file system

    def address(self, name: str) -> str:
        return f"10.0.0.{2 + [node.name for node in self.shape.nodes].index(name)}"

    def reply(self, node: str, argv: tuple[str, ...], stdin: str) -> Reply:
        text = ""
        if "section packages" in stdin:
            text = (self.logins(node) if "vtax-login" in stdin else "") + self.facts(node)
        elif "section levels" in stdin:
            text = COUNTERS
        elif argv[:2] == ("sh", "-c") and (written := re.fullmatch(r"echo (\S+) >(\S+)", argv[2])):
            self.files[written[2]] = f"{written[1]}\n"
        elif argv[0] == "cat" and argv[-1] in self.files:
            text = self.files[argv[-1]]
        elif "vtax-world" in stdin:
            text = self.ranks(int(stdin.partition("--np ")[2].split()[0]))
        return 0, text, ""

    def facts(self, node: str) -> str:
        shape = self.shape.node(node)
        memory = shape.memory_bytes if self.limits_memory else None
        return facts_text(cpus=",".join(map(str, shape.cpu_ids)), memory_bytes=memory, hostname=node)

    def logins(self, node: str) -> str:
        """What the calls to all other nodes print; they come before the facts."""
        names = [other.name for other in self.shape.nodes if other.name != node]
        return "".join(f"vtax-name {name} {self.address(name)}\nvtax-login {name}\n" for name in names)

    def ranks(self, total: int) -> str:
        """What `vtax-world` prints: rank r of a node has the r-th of its CPUs. Which nodes they are on follows from how
        many there are."""
        for nodes in (self.shape.workers, self.shape.nodes):
            ranks = ranks_for(nodes)
            if ranks.total == total:
                break
        else:
            raise AssertionError(f"no set of nodes has {total} ranks")
        places = [
            f"{node.name} {node.cpu_ids[local % len(node.cpu_ids)]} {'yes' if count > 1 else 'alone'}"
            for node, count in zip(nodes, ranks.per_node, strict=True)
            for local in range(count)
        ]
        return "".join(f"vtax-world {rank} {total} {place}\n" for rank, place in enumerate(places))


class FakePausing:
    """Pauses a cluster of a `FakeProvider`, or does what the provider's hooks say."""

    def __init__(self, provider: FakeProvider, label: str) -> None:
        self.provider, self.label = provider, label
        self.reason = ""

    def pause(self) -> str:
        self.provider.pauses += 1
        if self.provider.before_pause is not None:
            self.provider.before_pause(self.provider.pauses)
        self.provider.paused.add(self.label)
        self.reason = self.provider.slow_pause
        return f"a slow pause ({self.reason})" if self.reason else "a fake pause"

    def resume(self) -> None:
        self.provider.resumes += 1
        if self.provider.before_resume is not None:
            self.provider.before_resume(self.provider.resumes)
        self.provider.paused.discard(self.label)


class FakeOptions(Options):
    """`knob` is here to be set, or to be set wrongly."""

    knob: int = 1


class FakeProvider:
    """A provider whose clusters live in this object.

    `script` answers commands of nodes; where it returns None, the node answers as a healthy one. `broken` is why
    nothing can be created here. `before_create` is called with the number of the coming cluster (from 1) and may raise.
    """

    options: type[Options] = FakeOptions
    capabilities = Capabilities(kind=NodeKind.CONTAINER, limits_cpu=True, fresh_per_cell=True)
    runners: ClassVar[tuple[str, ...]] = ()
    in_parts: ClassVar[bool] = False
    install_hint = "nothing to install: it is a fake"

    def __init__(
        self,
        name: str,
        runtime: Path,
        separate_nodes: bool = True,
        limits_memory: bool = True,
        limits_disk: bool = True,
        *,
        script: Script | None = None,
        broken: str = "",
        before_create: Callable[[int], None] | None = None,
    ) -> None:
        self.name = name
        self.runtime = runtime
        self.provision_estimate_s = 1.0
        self.script = script
        self.broken = broken
        self.strays: list[str] = []  # images that nothing names any more
        self.odd = ""  # what it warns of, though it works
        self.slow = 1.0
        self.emulated = False
        self.machine_lost = ""  # which of its machines
        self.shares_refused: str | None = None  # why the machines of its nodes have no directory by NFS
        self.before_create = before_create
        self.prepared: list[str] = []  # environments
        self.broken_preparation = ""
        self.created = 0
        self.destroyed = 0  # calls of `destroy`; it may be called for a cluster that is gone already
        self.pauses = self.resumes = 0  # calls, of all clusters
        self.slow_pause = ""  # why clusters are not paused in the usual way
        self.before_pause: Callable[[int], None] | None = None  # with the number of the call, from 1; may raise
        self.before_resume: Callable[[int], None] | None = None
        self.paused: set[str] = set()  # labels of clusters
        self.live: dict[str, Cluster] = {}  # by campaign
        self.elsewhere: dict[str, str] = {}  # run-time directories of other vtaxes, by campaign
        self.calls: list[Call] = []  # of all nodes of all clusters
        self.backgrounds: list[FakeBackground] = []  # likewise
        limits = {"limits_memory": limits_memory, "limits_disk": limits_disk, "separate_nodes": separate_nodes}
        self.capabilities = self.capabilities.model_copy(update=limits)

    def capabilities_with(self, options: Any) -> Capabilities:
        return self.capabilities

    def slowdown(self, options: Any) -> float:
        return self.slow

    def emulates(self, options: Any) -> bool:
        return self.emulated

    def launcher(self, options: Any) -> Launcher:
        separate = self.capabilities.separate_nodes
        return Mpirun(interface="eth0") if separate else Mpirun(interface="lo", one_machine=True)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> tuple[tuple[str, ...], ...]:
        return tuple((self.name, "create", "CAMPAIGN", node.name) for node in shape.nodes)

    def workload_problems(self, spec: EnvironmentSpec) -> tuple[Problem, ...]:
        return ()

    def lost(self) -> str:
        return self.machine_lost

    def cannot_share(self, spec: EnvironmentSpec, shape: ClusterShape) -> str | None:
        return self.shares_refused

    def machine_ticks(self) -> Mapping[str, float]:
        return {}

    def machine_facts(self) -> dict[str, dict[str, object]]:
        return {}

    def status_note(self) -> str:
        return ""

    def improvement_hint(self) -> str:
        return ""

    def unavailable(self) -> str:
        return self.broken

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        said = ((Severity.BLOCKER, self.broken), (Severity.WARNING, self.odd))
        return [Problem(severity=one, message=message, remedy=self.install_hint) for one, message in said if message]

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:
        self.prepared.append(spec.name)
        if self.broken_preparation:
            raise ProvisionError(self.broken_preparation)

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        if self.before_create is not None:
            self.before_create(self.created + 1)
        self.created += 1
        site.keys.mkdir(mode=0o700, parents=True, exist_ok=True)
        (site.keys / "user").write_text("a secret key")
        healthy = HealthyNodes(shape, self.launcher({}), self.capabilities.limits_memory)
        nodes = tuple(
            Node(node.name, healthy.address(node.name), node, self._transport(node.name, healthy))
            for node in shape.nodes
        )
        cluster = Cluster(
            environment=spec,
            shape=shape,
            nodes=nodes,
            capabilities=self.capabilities,
            launcher=self.launcher({}),
            shared_path=shared_path,
            commands=self.commands(spec, shape, shared_path, "cloud"),
            shared_transports={} if self.capabilities.separate_nodes else self._shared(shape, healthy),
            pausing=FakePausing(self, site.campaign),
        )
        self.live[site.campaign] = cluster
        return cluster

    def _shared(self, shape: ClusterShape, healthy: HealthyNodes) -> Mapping[frozenset[str], Transport]:
        """Nodes of one machine that are used as one: a "node" with the name of the set."""
        sets = {"workers": shape.workers, "cluster": shape.nodes}
        return {
            frozenset(node.name for node in nodes): self._transport(name, healthy)
            for name, nodes in sets.items()
            if len(nodes) > 1
        }

    def _transport(self, node: str, healthy: HealthyNodes) -> FakeTransport:
        def answer(argv: tuple[str, ...], stdin: str) -> Reply:
            scripted = self.script(node, argv, stdin) if self.script is not None else None
            return healthy.reply(node, argv, stdin) if scripted is None else scripted

        return FakeTransport(node, answer, calls=self.calls, backgrounds=self.backgrounds)

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        return self.live[site.campaign]

    def destroy(self, campaign: str) -> None:
        self.destroyed += 1
        self.live.pop(campaign, None)
        self.paused.discard(campaign)

    def stray_images(self) -> Sequence[str]:
        return self.strays

    def remove_stray_image(self, name: str) -> None:
        self.strays.remove(name)

    def leftovers(self) -> Sequence[Leftover]:
        return [
            Leftover(self.name, "node", f"{campaign}-{node.name}", campaign, self.elsewhere.get(campaign, ""))
            for campaign, cluster in self.live.items()
            for node in cluster.nodes
        ]

    def remove_image(self, image: Image) -> None:
        """Nothing was made of it."""


def telling(**outputs: str) -> Script:
    """Programs that succeed and print this; every other command is answered as by a healthy node."""

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (0, outputs[argv[0]], "") if argv[0] in outputs else None

    return script


def ran(calls: Sequence[Call], program: str) -> list[Call]:
    """The commands that start with `program`."""
    return [call for call in calls if call.argv[0] == program]
