"""A node of an allocation: every command there is a step of the job, started by `srun`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from vtax.errors import EnvironmentMissing
from vtax.machines.connection import Connection
from vtax.machines.slurm import commands
from vtax.machines.slurm.allocation import Allocation
from vtax.model.finding import Problem
from vtax.model.study import MachineSpec


class Srun(Connection):
    """The node of an allocation that has this place among its nodes."""

    def __init__(self, name: str, spec: MachineSpec, allocation: Allocation, place: int) -> None:
        super().__init__(name, spec)
        self.allocation, self.place = allocation, place

    def __str__(self) -> str:
        return f"machine {self.name} ({self.node or self.spec.words})"

    @property
    def job(self) -> str:
        return self.allocation.job

    @property
    def node(self) -> str:
        nodes = self.allocation.nodes
        return nodes[self.place] if self.place < len(nodes) else ""

    @property
    def directory(self) -> str:
        """On a disk of the node: home directories are often shared by all nodes, and root file systems are not."""
        return self.spec.directory or f"/var/tmp/vtax-{os.geteuid()}"

    def connect(self) -> None:
        """Raises AllocationEnded where no command will ever run there again; whether one does now, the first shows."""
        self.allocation.refuse_ended()

    def unusable(self, detail: str) -> EnvironmentMissing:
        """The same; raises AllocationEnded."""
        self.allocation.refuse_ended()
        return EnvironmentMissing(
            f"{self}: no command runs there",
            detail=detail,
            remedy=f"`srun --jobid={self.allocation.job} --overlap -w {self.node} true` must work; "
            "`scontrol show node` says what is wrong with it",
        )

    def command(self, argv: Sequence[str], *, terminal: bool = False) -> tuple[str, ...]:  # noqa: ARG002
        return commands.step(self.allocation.job, self.node, argv)

    @property
    def connected(self) -> bool:
        return not self.allocation.ended()

    @property
    def lent(self) -> bool:
        return True

    def ended(self) -> str:
        return self.allocation.ended()

    def facts(self) -> Mapping[str, Any]:
        return {"slurm": self.allocation.facts(self.node)}

    def unmatched(self, environment: str, *, limits_memory: bool) -> Sequence[Problem]:
        if limits_memory or self.allocation.constrained:
            return ()
        return (
            Problem.blocker(
                f"machine {self.name}: nothing limits the memory of {environment}: its user may not, and Slurm does "
                "not (TaskPlugin without task/cgroup, or cgroup.conf without ConstrainCores and ConstrainRAMSpace)",
                "use a partition whose Slurm limits jobs, or an environment that limits itself",
            ),
        )

    def close(self) -> None:
        """Nothing stays open between two commands."""
