"""One container a node, from the common root file system, driven by the command-line client of an engine.

All that a cluster has (containers, network, volume) carries the campaign's label, and `destroy` needs nothing else.
Nodes are reached through SSH on loopback ports, like virtual machines; nothing else is published.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from vtax.cluster.access import LOOPBACK, write_ssh_config
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import SSH, seed
from vtax.errors import PauseError, ProvisionError, UsageError
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.link import Link
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import network, overlay, tunnel
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
from vtax.providers.container import groups, images, networks, own_image, starting
from vtax.providers.container.client import Client
from vtax.providers.container.engine import ContainerOptions, Owner
from vtax.providers.container.groups import Groups
from vtax.providers.container.networks import free_loopback
from vtax.providers.container.pausing import ContainerPausing
from vtax.providers.freezer import Freezer, of_process
from vtax.transport.parallel import each
from vtax.transport.ssh import SshTransport

READY_S = 60.0
LISTED = {"container": ("ps", "--all"), "network": ("network", "ls"), "volume": ("volume", "ls")}


class Container(Client, Provider):
    """Clusters of one engine; a subclass names it and says where it differs."""

    options = ContainerOptions
    capabilities = Capabilities(
        kind=NodeKind.CONTAINER,
        limits_cpu=True,
        limits_memory=True,
        separate_nodes=True,
        shares_machine=True,
        fresh_per_cell=True,
    )
    provision_estimate_s = 2.5
    in_parts = True
    force: tuple[str, ...] = ()  # additional words that make `rm --force` kill at once

    def slowdown(self, options: ContainerOptions) -> float:
        return 1.0

    def launcher(self, options: ContainerOptions) -> Launcher:
        shared = options.host_network
        return Mpirun(interface="lo" if shared else "eth0", loopback=shared, transport=options.mpi_transport)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        owner, place = Owner("CAMPAIGN", "RUNTIME"), Path("SITE") if workload else None
        places = lines.addresses(_prefix(spec), tuple(node.name for node in shape.nodes))
        return self._commands(spec, shape, shared_path, owner, places, "vtax-rootfs:DIGEST", place)

    def _commands(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        shared_path: str,
        owner: Owner,
        places: Mapping[str, str],
        image: str,
        site: Path | None,
        link: Link | None = None,
    ) -> Commands:
        """What makes the cluster, the nodes last; `site` is the directory of its files where it has the study's own
        image."""
        options, prefix = _options(spec), next(iter(places.values())).rpartition(".")[0]
        mounts = [overlay.command(site / node.name, owner.campaign, self.name) for node in shape.nodes] if site else []
        part = self.part_of(owner.campaign, link) if link else ()
        shared = link.shared if link else ""

        def create(node: NodeShape) -> tuple[str, ...]:
            own = site / node.name / "workload" if site else None
            return lines.create_node(self.name, owner, node, options, image, places, shared_path, own, shared)

        return (
            *mounts,
            *(() if options.host_network else (lines.create_network(self.name, owner, prefix, part),)),
            *(() if shared else (lines.create_volume(self.name, owner),)),
            *map(create, shape.nodes),
        )

    def part_of(self, campaign: str, link: Link) -> tuple[str, ...]:
        """The words that make of an engine's network a part of one on several machines: the MTU, the name of the
        bridge, the address of this machine in it."""
        raise NotImplementedError

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        """Both what is missing and what cannot be limited: installing something does not change the latter."""
        reason = self.unavailable()
        missing = (Problem.blocker(reason, self.install_hint),) if reason else ()
        return (*missing, *self.limit_problems())

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        return own_image.problems(self.name, _options(spec).runtime, self.changed_ids)

    def changed_ids(self) -> str:
        """Why users in a node are not those of this machine; "" when they are."""
        return ""

    def limit_problems(self) -> Sequence[Problem]:
        """Why nodes cannot be limited for this user."""
        return ()

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:
        images.ensure(self, image)

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        deadline = time.monotonic() + READY_S
        bridge = not _options(spec).host_network
        names = tuple(node.name for node in shape.nodes)
        image, own = images.ensure(self, site.image), site.image.workload
        owner = self._owner(site.campaign)
        if own:
            for name in names:
                overlay.make(site.directory / name, site.campaign, self.name, own, shared_path)
        with ThreadPoolExecutor(max_workers=2) as pool:
            keys = pool.submit(make_keys, site.keys, names)
            volume = pool.submit(self._directory, owner, site.link)
            places, port = self._places(spec, shape, owner, site)
            volume.result()
            keys.result()
            place = site.directory if own else None
            commands = self._commands(spec, shape, shared_path, owner, places, image, place, site.link)
            slots = network.slots(site, shape)

            at = dict.fromkeys(names, LOOPBACK) if bridge else places

            def start(index: int) -> tuple[int, Creation]:
                name = names[index]
                content = seed(
                    site.keys, name, places, slots, port=port, interface=site.link.interface if site.link else ""
                )
                command, fixed = commands[index - len(names)], None if bridge else port
                order = starting.Order(site.campaign, name, command, content, at[name], fixed)
                return starting.start(self, order, deadline)

            started = dict(zip(names, each(start, range(len(names))), strict=True))
        if own:
            each(lambda name: starting.bind_inside(self, lines.name_of(site.campaign, name), shared_path), names)
        if site.link and bridge:  # only now: some engines make the bridge with the first container
            beside = tunnel.beside(
                site.link, site.campaign, self.name, site.directory, lines.bridge_name(site.campaign)
            )
            tunnel.connect(beside)
            commands = (*commands, *beside)
        ports = {name: reached for name, (reached, _) in started.items()}
        write_ssh_config(site.directory, site.keys, ports, at=at, paused=site.paused)
        (site.directory / "commands.json").write_text(json.dumps(commands))
        (site.directory / "places.json").write_text(json.dumps(places))
        creations = {name: creation for name, (_, creation) in started.items()}
        return replace(self.connect(spec, shape, shared_path, site), creations=creations)

    def _places(
        self, spec: EnvironmentSpec, shape: ClusterShape, owner: Owner, site: Site
    ) -> tuple[Mapping[str, str], int]:
        """The addresses of all nodes, and the port of their SSH servers, once there is a network for them."""
        names = tuple(node.name for node in shape.nodes)
        if site.link:
            if not _options(spec).host_network:
                networks.create_part(
                    self, owner, site.link.interconnect.prefix, self.part_of(owner.campaign, site.link)
                )
            return site.link.places, network.ssh_port(site)
        bridge = not _options(spec).host_network
        prefix, port = (networks.create(self, owner), SSH) if bridge else free_loopback(site.campaign, names)
        return lines.addresses(prefix, names), port

    def _directory(self, owner: Owner, link: Link | None) -> None:
        """Make what the nodes share: a volume, or a directory that the machines share."""
        if link and link.shared:
            Path(link.shared).mkdir(exist_ok=True)
        else:
            self.must(lines.create_volume(self.name, owner))

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
            outside=Groups(self.pids, site.campaign).of,
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

        return ContainerPausing(self.name, self.run, containers, freezers)

    def _freezers(self, containers: Sequence[str]) -> tuple[Freezer, ...]:
        """The freezers of containers that run, as far as this process may use them."""
        found = (of_process(pid) for pid in self.pids(containers) if pid > 0)
        return tuple(one for one in found if one is not None)

    def _owner(self, campaign: str) -> Owner:
        return Owner(campaign, str(self.runtime.resolve()))

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

    def stray_images(self) -> Sequence[str]:
        return images.stray(self)

    def remove_stray_image(self, name: str) -> None:
        images.remove_stray(self, name)

    def remove_image(self, image: Image) -> None:
        images.remove(self, image)

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
        listed = self.must((self.name, "ps", "--all", *chosen)).stdout.split()
        containers = [name for name in listed if lines.is_named(name, "container", campaign)]
        if containers:
            if os.geteuid() == 0:  # a frozen process would not end
                each(Freezer.thaw, self._freezers(containers))
            self.remove((self.name, "rm", "--force", *self.force, "--volumes", "--", *containers))
        for kind in ("network", "volume"):  # by name: a volume that an engine creates implicitly has no label
            self.remove((self.name, kind, "rm", "--", lines.network_name(campaign)))
        tunnel.remove(campaign)
        overlay.remove(self.runtime, campaign)
        groups.remove(campaign)

    def leftovers(self) -> Sequence[Leftover]:
        found = [*overlay.leftovers(self.name, self.runtime), *tunnel.leftovers(self.name, self.runtime)]
        if self.unavailable():
            return tuple(found)
        for kind, words in LISTED.items():
            for name in self.must((self.name, *words, "--quiet", "--filter", f"label={LABEL}")).stdout.split():
                answer = self.run((kind, "inspect", name))
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


def _options(spec: EnvironmentSpec) -> ContainerOptions:
    return ContainerOptions.model_validate(dict(spec.options))


def _prefix(spec: EnvironmentSpec) -> str:
    """The network that a campaign of this name would try first, for the plan."""
    return lines.loopback("CAMPAIGN", 0)[0] if _options(spec).host_network else lines.subnet("CAMPAIGN", 0)
