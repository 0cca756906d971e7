"""The bare host: the same root file system entered by chroot, the same CPUs and memory, no virtualization.

There is one machine, so "nodes" are sets of CPUs of it: they share a kernel, a network stack and a disk. Every command
runs in its own mount and process namespace, made by `vtax-enter` in 3 ms, which ends with it. Root limits memory
by control groups; an ordinary user works in a user namespace, pins CPUs with `taskset`, and has no memory limit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from vtax.errors import ProvisionError
from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import cgroup
from vtax.providers.base import LABEL, SCRATCH, Cluster, Commands, Leftover, Node, Options, Provider, Site, elsewhere
from vtax.transport import process
from vtax.transport.local import LocalTransport

ENTER = "/usr/local/bin/vtax-enter"  # static, in the root file system; see its source for what it does


class HostOptions(Options):
    """`mpi_transport` "tcp" makes ranks communicate over TCP, as they must between nodes, to separate its cost."""

    mpi_transport: Literal["auto", "tcp"] = "auto"


class Host(Provider):
    name = "host"
    options = HostOptions
    runners = ()
    install_hint = "as root: apt-get install util-linux uidmap, and a line for this user in /etc/subuid and /etc/subgid"
    capabilities = Capabilities(kind=NodeKind.HOST, limits_cpu=True, shares_machine=True)
    provision_estimate_s = 1.0

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self.groups = cgroup.find() if os.geteuid() == 0 else None
        self.capabilities = self.capabilities.model_copy(update={"limits_memory": self.groups is not None})

    def slowdown(self, options: HostOptions) -> float:
        return 1.0

    def launcher(self, options: HostOptions) -> Mpirun:
        return Mpirun(interface="lo", one_machine=True, transport=options.mpi_transport)

    def commands(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str) -> Commands:
        site = Path("CAMPAIGN")
        groups = [tree / f"{cgroup.PREFIX}CAMPAIGN" / "worker1" for tree in self.groups.trees] if self.groups else ()
        cpus = shape.nodes[1].cpu_ids
        wrap = wrapper("CAMPAIGN", "ROOTFS", site / "worker1", site / "shared", shared_path, cpus, groups)
        return (wrap("DIRECTORY", ("COMMAND",)),)

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        reason = self.unavailable()
        return [Problem.blocker(reason, self.install_hint)] if reason else []

    def unavailable(self) -> str:
        for program in ("unshare", "taskset"):
            if not process.installed(program):
                return f"{program} is not installed"
        if os.geteuid() == 0:
            return ""
        probe = process.run((*process.as_root_here(), "--mount", "--pid", "--fork", "true"), timeout_s=10)
        return "" if probe.exit_code == 0 else f"user namespaces do not work for this user: {probe.stderr.strip()}"

    def status_note(self) -> str:
        return "" if os.geteuid() == 0 else "without root it pins CPUs, but cannot limit memory: the audit reports that"

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        for name, nodes in _groups(shape):
            for part in ("scratch", "tmp", "run"):
                (site.directory / name / part).mkdir(parents=True, exist_ok=True)
            if self.groups:
                cpus = sorted({cpu for node in nodes for cpu in node.cpu_ids})
                try:
                    cgroup.make(self.groups, site.campaign, name, cpus, sum(node.memory_bytes for node in nodes))
                except OSError as error:
                    raise ProvisionError(
                        f"the control group of {name} cannot be made: {error}",
                        remedy="does another program use these CPUs exclusively? run `vtax clean` after a crash",
                    ) from error
        (site.directory / "shared").mkdir(exist_ok=True)
        for place in (SCRATCH, shared_path):
            (Path(site.image.directory) / place.lstrip("/")).mkdir(exist_ok=True)
        return self.connect(spec, shape, shared_path, site)

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        transports = {
            name: LocalTransport(self._wrapper(name, nodes, shared_path, site)) for name, nodes in _groups(shape)
        }
        shared = {
            frozenset(node.name for node in nodes): transports[name] for name, nodes in _groups(shape) if len(nodes) > 1
        }
        return Cluster(
            environment=spec,
            shape=shape,
            nodes=tuple(Node(node.name, "127.0.0.1", node, transports[node.name]) for node in shape.nodes),
            capabilities=self.capabilities,
            launcher=self.launcher(HostOptions.model_validate(dict(spec.options))),
            shared_path=shared_path,
            commands=(transports[shape.nodes[-1].name].wrap("DIRECTORY", ("COMMAND",)),),
            shared_transports=shared,
        )

    def _wrapper(
        self, name: str, nodes: Sequence[NodeShape], shared_path: str, site: Site
    ) -> Callable[[str, Sequence[str]], tuple[str, ...]]:
        top = f"{cgroup.PREFIX}{site.campaign}"
        trees = self.groups.trees if self.groups else ()
        return wrapper(
            site.campaign,
            site.image.directory,
            site.directory / name,
            site.directory / "shared",
            shared_path,
            sorted({cpu for node in nodes for cpu in node.cpu_ids}),
            [tree / top / name for tree in trees],
        )

    def destroy(self, campaign: str) -> None:
        for pid in _processes(campaign, self.runtime):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.groups:
            cgroup.remove(self.groups, campaign)

    def leftovers(self) -> Sequence[Leftover]:
        groups = cgroup.campaigns(self.groups) if self.groups else ()
        group_of = {name: f"{cgroup.PREFIX}{name}" for name in groups}
        return [
            *(
                Leftover(self.name, "control group", group, name, elsewhere(self.runtime, name, None))
                for name, group in group_of.items()
            ),
            *(
                Leftover(self.name, "process", str(one.pid), one.campaign, one.elsewhere(self.runtime))
                for one in _labelled_processes()
            ),
        ]

    def remove_image(self, image: Image) -> None:
        """Nothing to remove: this environment runs in the cached tree itself."""


def wrapper(
    campaign: str,
    root: str,
    site: Path,
    shared: Path,
    mountpoint: str,
    cpus: Sequence[int],
    groups: Sequence[Path],
) -> Callable[[str, Sequence[str]], tuple[str, ...]]:
    """What runs a command in the root file system on a node's CPUs: by control groups, or else by `taskset`."""
    pinned = () if groups else ("taskset", "-c", ",".join(map(str, cpus)))
    enter = (root + ENTER, f"{LABEL}={campaign}", root, str(site), str(shared), mountpoint)

    def wrap(directory: str, argv: Sequence[str]) -> tuple[str, ...]:
        return (*pinned, *process.as_root_here(), *enter, directory, " ".join(map(str, groups)), *argv)

    return wrap


def _groups(shape: ClusterShape) -> tuple[tuple[str, tuple[NodeShape, ...]], ...]:
    """The sets of nodes that commands use: each alone, the workers together, all together."""
    alone = tuple((node.name, (node,)) for node in shape.nodes)
    workers = (("workers", shape.workers),) if len(shape.workers) > 1 else ()
    return (*alone, *workers, ("cluster", shape.nodes))


class _Process(NamedTuple):
    """A process inside a host environment; `site` is the directory of its node."""

    pid: int
    campaign: str
    site: str

    def elsewhere(self, runtime: Path) -> str:
        return elsewhere(runtime, self.campaign, Path(self.site))


def _labelled_processes() -> list[_Process]:
    """This user's processes inside host environments: their command lines contain the label, then root and site.

    A command line is what a program wants it to be, so the process must also belong to this user and have this
    machine's root directory or the root that it names.
    """
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # gone meanwhile
        labels = [number for number, word in enumerate(words) if word.startswith(f"{LABEL}=")]
        if labels and len(words) > labels[0] + 2 and any(word.endswith(ENTER) for word in words):
            campaign = words[labels[0]].partition("=")[2]
            if _is_mine(place.parent, words[labels[0] + 1]):
                found.append(_Process(int(place.parent.name), campaign, words[labels[0] + 2]))
    return found


def _is_mine(process_: Path, root: str) -> bool:
    with suppress(OSError):  # gone meanwhile, or not this user's to look at
        mine = process_.stat().st_uid == os.geteuid()
        return mine and any((process_ / "root").samefile(one) for one in ("/", root))
    return False


def _processes(campaign: str, runtime: Path) -> list[int]:
    """Those of a campaign with this run-time directory."""
    return [one.pid for one in _labelled_processes() if one.campaign == campaign and not one.elsewhere(runtime)]
