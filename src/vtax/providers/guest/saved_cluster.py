"""A cluster of machines that are ready: what is written down of it, and the cluster again from that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vtax.launchers.mpirun import Mpirun
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Capabilities, Cluster, Node, Site
from vtax.providers.guest.guest_config import addresses
from vtax.transport.ssh import SshTransport

CAPABILITIES = Capabilities(limits_cpu=True, limits_memory=True, limits_disk=True, own_kernel=True, separate_nodes=True)


def console_of(site: Site, node: str) -> Path:
    return site.console(node)


def remember(
    site: Site,
    commands: Sequence[Sequence[str]],
    notes: Sequence[str],
    patience: float,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    made = {"commands": commands, "notes": notes, "patience": patience, "facts": facts or {}}
    (site.directory / "commands.json").write_text(json.dumps(made))


def connected(spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site, launcher: Mpirun) -> Cluster:
    """The cluster whose machines run, by what `remember` wrote. Raises OSError when that is gone."""
    made = json.loads((site.directory / "commands.json").read_text())
    places = addresses(tuple(node.name for node in shape.nodes))
    config = site.directory / "ssh_config"
    patience = float(made["patience"])
    return Cluster(
        environment=spec,
        shape=shape,
        nodes=tuple(
            Node(node.name, places[node.name], node, SshTransport(config, node.name, patience)) for node in shape.nodes
        ),
        capabilities=CAPABILITIES,
        launcher=launcher,
        shared_path=shared_path,
        commands=tuple(tuple(line) for line in made["commands"]),
        notes=tuple(made["notes"]),
        patience=patience,
        facts=made["facts"],
        logs={node.name: console_of(site, node.name) for node in shape.nodes},
    )
