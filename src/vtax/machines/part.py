"""What is ordered of a machine that makes a part of a cluster, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from vtax.model.link import Link
from vtax.model.names import CampaignId, Name, StudyName
from vtax.model.nodes import ClusterShape
from vtax.model.record import Record
from vtax.model.study import EnvironmentSpec
from vtax.transport.through import Reached


class PartOrder(Record):
    """The nodes of `shape`, all on this machine, of the cluster with this label. `keys` are the contents of its SSH
    keys: the public ones of all nodes, the private ones of the nodes here and of the user."""

    label: CampaignId
    environment: Name
    origin: str  # the campaign's directory, for `vtax clean`
    spec: EnvironmentSpec
    shape: ClusterShape
    shared_path: str
    recipe: str  # of the root file system, which the machine has
    link: Link
    paused: bool
    keys: Mapping[StudyName | str, str] = Field(repr=False)


class MadePart(Record):
    """The nodes that were made, and how the machine reaches each of them. `pausing` is None where it cannot pause them,
    or why it does that in a slower way; "" where it does not."""

    nodes: Mapping[StudyName, Reached]
    commands: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    timeout_factor: float = 1
    facts: Mapping[StudyName, Mapping[str, Any]] = Field(default_factory=dict)
    pausing: str | None = None
    joins: Mapping[StudyName, tuple[str, ...]] = Field(default_factory=dict)
