"""A running cluster of virtual machines, saved to a file so that another process can connect to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vtax.launchers.base import Launcher
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import network
from vtax.providers.base import Cluster, Node, Pausing, Site
from vtax.transport.ssh import SshTransport

CAPABILITIES = Capabilities(
    kind=NodeKind.VM,
    limits_cpu=True,
    limits_memory=True,
    limits_disk=True,
    own_kernel=True,
    separate_nodes=True,
    shares_machine=True,
    fresh_per_cell=True,
)
FILE = "commands.json"


def save(
    site: Site,
    commands: Sequence[Sequence[str]],
    notes: Sequence[str],
    timeout_factor: float,
    facts: Mapping[str, Mapping[str, Any]],
) -> None:
    saved = {"commands": commands, "notes": notes, "timeout_factor": timeout_factor, "facts": facts}
    (site.directory / FILE).write_text(json.dumps(saved))


def load(
    spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site, launcher: Launcher, pausing: Pausing
) -> Cluster:
    """The cluster that was saved. Raises OSError when its file is gone."""
    saved = json.loads((site.directory / FILE).read_text())
    places = network.places(site, shape)
    config = site.directory / "ssh_config"
    timeout_factor = float(saved["timeout_factor"])
    return Cluster(
        environment=spec,
        shape=shape,
        nodes=tuple(
            Node(node.name, places[node.name], node, SshTransport(config, node.name, timeout_factor))
            for node in shape.nodes
        ),
        capabilities=CAPABILITIES,
        launcher=launcher,
        shared_path=shared_path,
        commands=tuple(tuple(line) for line in saved["commands"]),
        notes=tuple(saved["notes"]),
        timeout_factor=timeout_factor,
        facts=saved["facts"],
        logs={node.name: site.console(node.name) for node in shape.nodes},
        pausing=pausing,
    )
