"""The ways to the machines of a study: SSH, an allocation of Slurm, or a pod that enters its machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vtax.machines.connection import Connection
from vtax.machines.host_pod import HostPod
from vtax.machines.provider import sockets
from vtax.machines.slurm.allocation import Allocation
from vtax.machines.slurm.srun import Srun
from vtax.machines.ssh import Ssh
from vtax.model.study import MachineSpec, SlurmSpec, Study
from vtax.paths import Paths


def allocations(study: Study) -> dict[str, SlurmSpec]:
    """Table -> the allocation that it asks for."""
    return {one.slurm.name: one.slurm for one in study.machines.values() if one.slurm is not None}


def way(name: str, spec: MachineSpec, runtime: Path) -> Connection:
    """The way to a machine that nobody has to be asked for first."""
    if spec.kubernetes is not None:
        return HostPod(name, spec, spec.kubernetes, runtime)
    return Ssh(name, spec, sockets(runtime.parent))


@contextmanager
def connections(study: Study, paths: Paths, say: Callable[[str], None]) -> Iterator[Mapping[str, Connection]]:
    """A way to each machine. Allocations are waited for, and given back at the end."""
    with ExitStack() as stack:
        held = {name: Allocation(spec) for name, spec in allocations(study).items()}
        for one in held.values():
            stack.callback(one.release)
            one.request(say)
        ways: dict[str, Connection] = {}
        for name, spec in study.machines.items():
            if spec.slurm is None:
                ways[name] = way(name, spec, paths.runtime)
            else:
                place = spec.slurm.machines.index(name)
                ways[name] = Srun(name, spec, held[spec.slurm.name], place)
        yield ways
