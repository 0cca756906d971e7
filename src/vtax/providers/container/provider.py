"""One container a node, from the common root file system, driven by the command-line client of an engine.

All that a cluster has (containers, network, volume) carries the campaign's label, and `destroy` needs nothing else.
Nodes are reached through SSH on loopback ports, like virtual machines; nothing else is published.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from vtax.cluster.access import LOOPBACK, is_free, wait_for_banner, write_ssh_config
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import SSH, seed
from vtax.errors import PauseError, ProvisionError, UsageError
from vtax.facts.processes import parent_of, program_of
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.paths import replacing
from vtax.providers import overlay
from vtax.providers.base import (
    LABEL,
    RUNTIME_LABEL,
    Cluster,
    Commands,
    Creation,
    Leftover,
    Node,
    Provider,
    Site,
    elsewhere,
)
from vtax.providers.container import engine as lines
from vtax.providers.container import groups, own_image
from vtax.providers.container.engine import ContainerOptions, Owner
from vtax.providers.container.groups import Groups
from vtax.providers.container.pausing import ContainerPausing
from vtax.providers.freezer import Freezer, of_process
from vtax.transport import process
from vtax.transport.parallel import each
from vtax.transport.ssh import SshTransport

READY_S = 60.0
ROUTES = Path("/proc/net/route")
COMMAND_S = 120.0
IMPORT_S = 900.0
WITH_VTAX = ("setpriv", "--pdeathsig", "KILL")  # ends a command when vtax is killed, which then is not there to undo it
SUBNET_ATTEMPTS = 20
SUBNET_TAKEN = ("overlap", "already used", "is already being used", "conflicts")  # in messages of the engines
LISTED = {"container": ("ps", "--all"), "network": ("network", "ls"), "volume": ("volume", "ls")}
GONE = ("no such", "not found", "is not running")


class Container(Provider):
    """What all engines have in common. A subclass names the client and says where it differs."""

    name: str
    options = ContainerOptions
    capabilities = Capabilities(
        kind=NodeKind.CONTAINER,
        limits_cpu=True,
        limits_memory=True,
        separate_nodes=True,
        shares_machine=True,
        fresh_per_cell=True,
    )
    runners: ClassVar[tuple[str, ...]]
    provision_estimate_s = 2.5
    install_hint: str
    version_format: str  # that makes the client ask its engine, and print JSON
    force: tuple[str, ...] = ()  # additional words that make `rm --force` kill at once

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime

    def environment(self) -> Mapping[str, str] | None:
        """The client's environment variables; None inherits those of this process."""
        return None

    def slowdown(self, options: ContainerOptions) -> float:
        return 1.0

    def launcher(self, options: ContainerOptions) -> Launcher:
        shared = options.host_network
        return Mpirun(interface="lo" if shared else "eth0", loopback=shared, transport=options.mpi_transport)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        owner, place = Owner("CAMPAIGN", "RUNTIME"), Path("SITE") if workload else None
        return self._commands(spec, shape, shared_path, owner, _prefix(spec), "vtax-rootfs:DIGEST", place)

    def _commands(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        shared_path: str,
        owner: Owner,
        prefix: str,
        image: str,
        site: Path | None,
    ) -> Commands:
        """What makes the cluster, the nodes last; `site` is the directory of its files where it has the study's own
        image."""
        options = _options(spec)
        names = tuple(node.name for node in shape.nodes)
        places = lines.addresses(prefix, names)
        mounts = [overlay.command(site / name, owner.campaign, self.name) for name in names] if site else []

        def create(node: NodeShape) -> tuple[str, ...]:
            own = site / node.name / "workload" if site else None
            return lines.create_node(self.name, owner, node, options, image, places, shared_path, own)

        return (
            *mounts,
            *(() if options.host_network else (lines.create_network(self.name, owner, prefix),)),
            lines.create_volume(self.name, owner),
            *map(create, shape.nodes),
        )

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        reason = self.unavailable()
        if reason:
            return [Problem.blocker(reason, self.install_hint)]
        return self.limit_problems()

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        return own_image.problems(self.name, _options(spec).runtime, self.changed_ids)

    def changed_ids(self) -> str:
        """Why users in a node are not those of this machine; "" when they are."""
        return ""

    def limit_problems(self) -> Sequence[Problem]:
        """Why nodes cannot be limited for this user."""
        return ()

    def unavailable(self) -> str:
        """Why the engine does not answer here; "" when it does."""
        for program in (self.name, "ssh", "ssh-keygen"):
            if shutil.which(program) is None:
                return f"{program} is not installed"
        answer = self._run(("version", "--format", self.version_format), timeout_s=20)
        if answer.exit_code != 0:
            lines_ = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
            return f"{self.name} does not answer: {lines_[-1] if lines_ else 'no message'}"
        return ""

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:
        self.ensure_image(image)

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        deadline = time.monotonic() + READY_S
        bridge = not _options(spec).host_network
        names = tuple(node.name for node in shape.nodes)
        image, own = self.ensure_image(site.image), site.image.workload
        owner = self._owner(site.campaign)
        if own:
            for name in names:
                overlay.make(site.directory / name, site.campaign, self.name, own, shared_path)
        with ThreadPoolExecutor(max_workers=2) as pool:
            keys = pool.submit(make_keys, site.keys, names)
            volume = pool.submit(self._must, lines.create_volume(self.name, owner))
            prefix, port = (self._network(owner), SSH) if bridge else free_loopback(site.campaign, names)
            volume.result()
            keys.result()
            place = site.directory if own else None
            commands = self._commands(spec, shape, shared_path, owner, prefix, image, place)
            places = lines.addresses(prefix, names)
            slots = {node.name: node.cpus for node in shape.nodes}

            at = dict.fromkeys(names, LOOPBACK) if bridge else places

            def start(index: int) -> tuple[int, Creation]:
                name = names[index]
                content = seed(site.keys, name, places, slots, port=port)
                fixed = None if bridge else port
                return self._start(
                    site.campaign, name, commands[index - len(names)], content, at[name], fixed, deadline
                )

            started = dict(zip(names, each(start, range(len(names))), strict=True))
        if own:
            each(lambda name: self._bind_inside(lines.name_of(site.campaign, name), shared_path), names)
        ports = {name: reached for name, (reached, _) in started.items()}
        write_ssh_config(site.directory, site.keys, ports, at=at, paused=site.paused)
        (site.directory / "commands.json").write_text(json.dumps(commands))
        (site.directory / "places.json").write_text(json.dumps(places))
        creations = {name: creation for name, (_, creation) in started.items()}
        return replace(self.connect(spec, shape, shared_path, site), creations=creations)

    def _start(
        self,
        campaign: str,
        name: str,
        command: Sequence[str],
        content: bytes,
        address: str,
        port: int | None,
        deadline: float,
    ) -> tuple[int, Creation]:
        """Create and start a node, and wait for its SSH server on `port`, or on the port that the engine chose."""
        ordered = time.monotonic()
        container = lines.name_of(campaign, name)
        self._must(command)
        self._must((self.name, "cp", "-", f"{container}:/"), stdin=content)
        self._must((self.name, "start", container), directory=self.runtime / campaign)
        described = self._described(container)
        reached = port or self._published(campaign, name, described)
        self._await(campaign, name, address, reached, deadline)
        answered = time.monotonic()
        first = self._first_line(container, ordered)
        return reached, Creation(ordered, first, answered, runner_of(described, self.runners))

    def _bind_inside(self, container: str, shared_path: str) -> None:
        """Mount inside the study's own image what the node has of its own: from outside, because it may not mount."""
        process_id = int(self._described(container)["State"]["Pid"])
        words = overlay.bind_inside(process_id, shared_path)
        process.run(words, timeout_s=COMMAND_S, env=process.system_environment(), check=True)

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        commands = tuple(tuple(line) for line in json.loads((site.directory / "commands.json").read_text()))
        places = json.loads((site.directory / "places.json").read_text())
        config = site.directory / "ssh_config"
        return Cluster(
            environment=spec,
            shape=shape,
            nodes=tuple(
                Node(node.name, places[node.name], node, SshTransport(config, node.name)) for node in shape.nodes
            ),
            capabilities=self.capabilities,
            launcher=self.launcher(_options(spec)),
            shared_path=shared_path,
            commands=commands,
            facts=overlay.facts(site, [node.name for node in shape.nodes]),
            pausing=self._pausing(spec, [lines.name_of(site.campaign, node.name) for node in shape.nodes]),
            outside=Groups(self._pids, site.campaign).of,
        )

    def _pausing(self, spec: EnvironmentSpec, containers: Sequence[str]) -> ContainerPausing:
        runtime = _options(spec).runtime

        def freezers() -> tuple[Freezer, ...]:
            if runtime not in (None, *own_image.PROCESS_RUNTIMES):
                raise PauseError(f"processes under {runtime} may not all be in the container's control group")
            if os.geteuid() != 0:
                raise PauseError("only root may freeze control groups")
            found = self._freezers(containers)
            if len(found) != len(containers):
                raise PauseError("the containers' control groups cannot be seen or written from here")
            return found

        return ContainerPausing(self.name, self._run, containers, freezers)

    def _freezers(self, containers: Sequence[str]) -> tuple[Freezer, ...]:
        """The freezers of containers that run, as far as this process may use them."""
        found = (of_process(pid) for pid in self._pids(containers) if pid > 0)
        return tuple(one for one in found if one is not None)

    def _pids(self, containers: Sequence[str]) -> tuple[int, ...]:
        """The first process of each container, 0 of one that does not run; none when the engine does not answer."""
        described = self._run(("inspect", "--type", "container", *containers))
        if described.exit_code != 0:
            return ()
        return tuple(int(one["State"]["Pid"]) for one in json.loads(described.stdout))

    def _owner(self, campaign: str) -> Owner:
        return Owner(campaign, str(self.runtime.resolve()))

    def _network(self, owner: Owner) -> str:
        """Make the cluster's network; returns the first three numbers of its addresses. Some may be taken."""
        for attempt in range(SUBNET_ATTEMPTS):
            prefix = lines.subnet(owner.campaign, attempt)
            if lines.routed(prefix, ROUTES.read_text() if ROUTES.exists() else ""):
                continue
            result = self._run(lines.create_network(self.name, owner, prefix)[1:])
            if result.exit_code == 0:
                return prefix
            if not any(word in result.stderr.lower() for word in SUBNET_TAKEN):
                raise process.failed(result, self.install_hint)
        raise ProvisionError(
            f"none of {SUBNET_ATTEMPTS} private networks is free for {self.name}",
            remedy="run `vtax clean`: it removes those of crashed runs",
        )

    def _described(self, container: str) -> Mapping[str, Any]:
        """What the engine says about a container."""
        words = (self.name, "inspect", "--type", "container", container)
        described: list[Mapping[str, Any]] = json.loads(self._must(words).stdout)
        return described[0]

    def _published(self, campaign: str, name: str, described: Mapping[str, Any]) -> int:
        """The loopback port of a node's SSH server."""
        published = described["NetworkSettings"]["Ports"].get("22/tcp")
        if not published:
            raise ProvisionError(
                f"{name} ended immediately", detail=self._log(campaign, name), remedy=self.install_hint
            )
        return int(published[0]["HostPort"])

    def _first_line(self, container: str, ordered: float) -> float | None:
        """When a container printed its first line, on the monotonic clock; None when the engine's clock is not that of
        this machine."""
        said = self._run(("logs", "--timestamps", container))
        now = time.monotonic()
        written = lines.first_line(said.stdout)
        at = None if written is None else now - (time.time() - written)
        return at if at is not None and ordered <= at <= now else None

    def _await(self, campaign: str, name: str, address: str, port: int, deadline: float) -> None:
        try:
            wait_for_banner(name, port, deadline, address=address)
        except ProvisionError as error:
            raise ProvisionError(error.message, detail=self._log(campaign, name), remedy=error.remedy) from error

    def _log(self, campaign: str, name: str) -> str:
        result = self._run(("logs", "--tail", "20", lines.name_of(campaign, name)))
        return (result.stdout + result.stderr).strip()

    def compose_file(
        self, name: str, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, image: Image | None
    ) -> str:
        options = _options(spec)
        if options.host_network:
            raise UsageError(
                f"environment {spec.name!r} uses this machine's own network, in which a Compose file cannot give nodes "
                "addresses",
                remedy='choose one with network = "bridge"; `vtax up` creates this one',
            )
        if image and image.workload:
            raise UsageError(
                f"the study of environment {spec.name!r} has an image of its own, which a Compose file cannot show to "
                "nodes as vtax does",
                remedy="leave [image.workload] out; `vtax up` creates this one",
            )
        load = shlex.join(lines.import_image(self.name, image)) if image else lines.NOT_BUILT
        return lines.compose(name, shape.nodes, options, load, lines.subnet(name, 0), shared_path)

    def ensure_image(self, image: Image) -> str:
        """The tag of the root file system in the engine's store, imported when it is not there, or when the tag is on
        an image that this user's vtax did not import."""
        tag, note = lines.image_tag(image), lines.image_note(self.name, image)
        with note.with_name(f"{note.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would both import it
            known = note.read_text() if note.exists() else ""
            if not known or self._image_id(tag) != known:
                self._must(lines.import_image(self.name, image), timeout_s=IMPORT_S, before=WITH_VTAX)
                with replacing(note) as fresh:
                    fresh.write_text(self._image_id(tag))
        return tag

    def stray_images(self) -> Sequence[str]:
        if self.unavailable():
            return ()
        chosen = ("--filter", "dangling=true", "--filter", f"label={lines.IMAGE_LABEL}")
        found = self._must((self.name, "images", "--quiet", "--no-trunc", *chosen)).stdout.split()
        used = (self.name, "ps", "--all", "--quiet", "--filter")
        return [one for one in dict.fromkeys(found) if not self._must((*used, f"ancestor={one}")).stdout.strip()]

    def remove_stray_image(self, name: str) -> None:
        self._run(("rmi", "--", name))  # fails where a container still uses it

    def _image_id(self, tag: str) -> str:
        """The engine's id of an image, which is a hash of what it contains; "" when there is none of that tag."""
        answer = self._run(("image", "inspect", "--format", "{{.Id}}", tag))
        return answer.stdout.strip() if answer.exit_code == 0 else ""

    def remove_image(self, image: Image) -> None:
        """Remove the root file system from the engine's store; fine when it is not there."""
        tag = lines.image_tag(image)
        if self._image_id(tag):
            self._must((self.name, "rmi", tag))
        lines.image_note(self.name, image).unlink(missing_ok=True)

    def destroy(self, campaign: str) -> None:
        if reason := self.unavailable():
            overlay.remove(self.runtime, campaign)
            if any((self.runtime / campaign).glob("*/commands.json")):  # containers outlive a daemon that was killed
                raise ProvisionError(
                    f"the containers of {campaign} cannot be removed: {reason}",
                    remedy=f"start {self.name} again, then run `vtax clean`",
                )
            return  # nothing of it was created
        chosen = ("--filter", f"label={LABEL}={campaign}", "--format", "{{.Names}}")
        listed = self._must((self.name, "ps", "--all", *chosen)).stdout.split()
        containers = [name for name in listed if lines.is_named(name, "container", campaign)]
        if containers:
            if os.geteuid() == 0:  # a frozen process would not end
                each(Freezer.thaw, self._freezers(containers))
            self._remove((self.name, "rm", "--force", *self.force, "--volumes", "--", *containers))
        for kind in ("network", "volume"):  # by name: a volume that an engine creates implicitly has no label
            self._remove((self.name, kind, "rm", "--", lines.network_name(campaign)))
        overlay.remove(self.runtime, campaign)
        groups.remove(campaign)

    def _remove(self, argv: Sequence[str]) -> None:
        """Removing what is already gone is a success."""
        result = self._run(argv[1:])
        if result.exit_code != 0 and not any(word in result.stderr.lower() for word in GONE):
            raise process.failed(result)

    def leftovers(self) -> Sequence[Leftover]:
        found = overlay.leftovers(self.name, self.runtime)
        if self.unavailable():
            return tuple(found)
        for kind, words in LISTED.items():
            for name in self._must((self.name, *words, "--quiet", "--filter", f"label={LABEL}")).stdout.split():
                answer = self._run((kind, "inspect", name))
                if answer.exit_code != 0:
                    continue  # gone since it was listed
                described: dict[str, Any] = json.loads(answer.stdout)[0]
                labels = (described.get("Config") or described).get("Labels") or described.get("labels") or {}
                shown = str(described.get("Name") or described.get("name") or name).lstrip("/")
                campaign, theirs = labels.get(LABEL, ""), labels.get(RUNTIME_LABEL)
                if not lines.is_named(shown, kind, campaign):
                    continue  # a label is inherited from an image, which anybody may have made
                whose = elsewhere(self.runtime, campaign, Path(theirs, campaign) if theirs else None)
                found.append(Leftover(self.name, kind, shown, campaign, whose))
        return found

    def _run(
        self,
        words: Sequence[str],
        timeout_s: float = COMMAND_S,
        stdin: bytes = b"",
        directory: Path | None = None,
        before: Sequence[str] = (),
    ) -> CommandResult:
        # Podman's monitor leaves a file "oom" in its working directory: one that goes with the cluster, not the user's.
        place = directory or self.runtime
        place.mkdir(parents=True, exist_ok=True)
        command = (*before, self.name, *words)
        return process.run(command, timeout_s=timeout_s, stdin=stdin, env=self.environment(), directory=place)

    def _must(
        self,
        argv: Sequence[str],
        timeout_s: float = COMMAND_S,
        stdin: bytes = b"",
        directory: Path | None = None,
        before: Sequence[str] = (),
    ) -> CommandResult:
        result = self._run(argv[1:], timeout_s, stdin, directory, before)
        if result.exit_code != 0 or result.timed_out:
            raise process.failed(result, self.install_hint)
        return result


def runner_of(described: Mapping[str, Any], runners: Sequence[str]) -> int | None:
    """The process of this machine that runs a container; None when it is not to be seen here."""
    process_id = parent_of(int(described["State"].get("Pid") or 0))
    return process_id if process_id and program_of(process_id) in runners else None


def _options(spec: EnvironmentSpec) -> ContainerOptions:
    return ContainerOptions.model_validate(dict(spec.options))


def _prefix(spec: EnvironmentSpec) -> str:
    """The network that a campaign of this name would try first, for the plan."""
    return lines.loopback("CAMPAIGN", 0)[0] if _options(spec).host_network else lines.subnet("CAMPAIGN", 0)


def free_loopback(campaign: str, names: Sequence[str]) -> tuple[str, int]:
    """Where nodes in this machine's own network may listen: the first three numbers of their addresses, the port."""
    for attempt in range(SUBNET_ATTEMPTS):
        prefix, port = lines.loopback(campaign, attempt)
        if all(is_free(address, port) for address in lines.addresses(prefix, tuple(names)).values()):
            return prefix, port
    raise ProvisionError(
        f"none of {SUBNET_ATTEMPTS} ports is free on this machine's loopback addresses",
        remedy="run `vtax clean`: it removes what crashed runs left behind",
    )
