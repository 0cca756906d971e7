"""What the nodes of an environment are and what its provider enforces: asked for instead of a provider's name."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vtax.model.record import Record, is_empty


class NodeKind(StrEnum):
    HOST = "host"  # processes of the machine itself
    CONTAINER = "container"
    VM = "vm"
    UNKNOWN = "unknown"  # not recorded: then all other capabilities mean nothing


class Capabilities(Record):
    """Declared by a provider, recorded in the plan for each environment."""

    kind: NodeKind = NodeKind.UNKNOWN
    limits_cpu: bool = False
    limits_memory: bool = False
    limits_disk: bool = False
    own_kernel: bool = False  # then the memory of the node is its limit, and its CPUs count from 0
    separate_nodes: bool = False  # every node has its own network stack, and the others log in to it by SSH
    shares_machine: bool = False  # all nodes are on the machine that runs vtax
    sole_hypervisor: bool = False  # no machine of another hypervisor can exist at the same time
    fresh_per_cell: bool = False  # every cell gets a new instance; otherwise claims are about the one that there is
    existing: bool = Field(default=False, exclude_if=is_empty)  # nodes are elsewhere, and vtax created none of them
    elsewhere: bool = Field(default=False, exclude_if=is_empty)  # vtax creates nodes on machines that it is not on

    @property
    def away(self) -> bool:
        """Whether nodes are on other machines than this one, of which nothing is counted here."""
        return self.existing or self.elsewhere


UNKNOWN = Capabilities()  # of environments whose plan does not record them
