"""The parts of clusters that are on this machine, made and removed for a campaign that runs elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing, ProvisionError
from vtax.image import travel
from vtax.launchers.srun import PLACE
from vtax.machines.nfs import Shares
from vtax.machines.part import MadePart, PartOrder
from vtax.machines.slurm.relay import Joined, Relay
from vtax.model.names import is_campaign_id
from vtax.paths import Paths
from vtax.providers import provider
from vtax.providers.base import Cluster, Pausing, Site
from vtax.running import shared
from vtax.running.provision import KEYS, remove_campaign, remove_site
from vtax.running.sites import ORIGIN
from vtax.store import alive, write_atomic
from vtax.transport.through import reached


class Parts:
    """They are removed when `stack` ends: with the agent, whatever becomes of the campaign."""

    def __init__(self, paths: Paths, stack: ExitStack) -> None:
        self.paths, self.stack = paths, stack
        self.clusters: dict[str, Cluster] = {}
        self.sites: dict[str, Site] = {}
        self.providers: dict[str, str] = {}  # by label
        self.shares = Shares(paths.runtime)
        self.relays: dict[str, list[Relay]] = {}

    def create(self, order: PartOrder) -> MadePart:
        """Raises ProvisionError or CommandError; `destroy` then removes what was made."""
        site = self._site(order)
        made = provider(order.spec.provider, self.paths.runtime).create(
            order.spec, order.shape, order.shared_path, site
        )
        self.clusters[order.label] = made
        return MadePart(
            nodes={node.name: reached(node.transport) for node in made.nodes},
            commands=made.commands,
            notes=made.notes,
            timeout_factor=made.timeout_factor,
            facts=made.facts,
            pausing=None if made.pausing is None else made.pausing.reason,
            joins=made.joins,
        )

    def relay(self, label: str, job: str, nodes: Mapping[str, Joined]) -> None:
        """Start MPI programs for the nodes that are here, until their cluster is destroyed."""
        cluster, site = self.clusters[label], self.sites[label]
        within = PLACE.lstrip("/")
        self.relays[label] = [Relay(site.directory / node.name / within, job, nodes) for node in cluster.nodes]

    def _site(self, order: PartOrder) -> Site:
        """The place of a cluster's files, with its keys."""
        self.hold(order.label, order.spec.provider)
        place = self.paths.runtime / order.label
        origin = {"campaign": order.label, "environment": order.environment, "directory": order.origin}
        origin |= {shared.KEY: order.link.shared} if order.link.shared and not order.link.server else {}
        write_atomic(place / ORIGIN, json.dumps(origin, indent=1).encode())
        image = travel.local(self.paths.images, order.recipe)
        site = Site(order.label, place / order.environment, image, place / KEYS, order.paused, order.link)
        remove_site(site)  # what a machine that went down in a cluster has of it
        site.directory.mkdir(mode=0o700, parents=True)
        site.keys.mkdir(mode=0o700, exist_ok=True)
        for name, content in order.keys.items():
            file = site.keys / Path(name).name
            file.touch(mode=0o600)
            file.write_text(content)
        self.sites[order.label] = site
        return site

    def hold(self, label: str, provider_name: str) -> Shares:
        """Let what has this label be this process's own, and go with it. Returns what it may share with others."""
        if label not in self.providers:
            place = self.paths.runtime / label
            self.providers[label] = provider_name
            self.stack.enter_context(alive(place))
            self.stack.callback(remove_campaign, place)
            self.stack.callback(self._abandon, label)
            self._abandon(label)  # what an agent that was killed left
            shared.remove_abandoned(place / ORIGIN)
        return self.shares

    def _abandon(self, label: str) -> None:
        with suppress(ProvisionError, CommandError, EnvironmentMissing):
            self.destroy(label)

    def destroy(self, label: str) -> None:
        """Remove the part of a cluster; fine when there is none."""
        name = self.providers.get(label)
        if name is None or not is_campaign_id(label):
            return
        for one in self.relays.pop(label, ()):
            one.close()
        cluster, site = self.clusters.pop(label, None), self.sites.pop(label, None)
        if cluster is not None:
            with suppress(CommandError, OSError):
                cluster.close()
        self.shares.ended(label, provider(name, self.paths.runtime).destroy)
        self.shares.release(label)
        if site is not None:
            if site.link and site.link.shared and not site.link.server:
                shutil.rmtree(site.link.shared, ignore_errors=True)  # another machine may be removing it too
            remove_site(site)

    def pausing(self, label: str) -> Pausing:
        found = self.clusters[label].pausing if label in self.clusters else None
        if found is None:
            raise ProvisionError(f"there is no cluster {label} that could be paused")
        return found
