"""The machines that the tables [machines.NAME] of a study mean: one each by SSH, as many as it has nodes by Slurm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.model.study import MachineSpec, SlurmSpec
from vtax.planning.study_tables import MachineTable


def machines_of(tables: Mapping[str, MachineTable]) -> dict[str, MachineSpec]:
    """Name -> machine, in the order of the file."""
    return dict(spec for name, one in tables.items() for spec in _specs(name, one))


def _specs(name: str, table: MachineTable) -> Iterator[tuple[str, MachineSpec]]:
    directory, address, shared = table.directory or "", table.address or "", table.shared or ""
    if table.slurm is None:
        yield name, MachineSpec(ssh=table.ssh or "", directory=directory, address=address, shared=shared)
        return
    given = table.slurm
    slurm = SlurmSpec(
        name=name,
        partition=given.partition or "",
        nodes=given.nodes,
        time_s=given.time,
        wait_s=given.wait,
        exclusive=given.exclusive,
        account=given.account or "",
        options=given.options,
    )
    for machine in slurm.machines:
        yield machine, MachineSpec(slurm=slurm, directory=directory, shared=shared)


def machine_names(tables: Mapping[str, Any]) -> list[str]:
    """The machines of tables as they were read, which may be wrong in any way."""
    found = []
    for name, one in tables.items():
        slurm = one.get("slurm") if isinstance(one, dict) else None
        nodes = slurm.get("nodes", 1) if isinstance(slurm, dict) else None
        count = nodes if isinstance(nodes, int) and 0 < nodes <= MOST else None if nodes is None else 1
        found += [name] if count is None else [f"{name}{number}" for number in range(1, count + 1)]
    return found


MOST = 1024
