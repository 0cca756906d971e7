"""How a parallel program is started: pure builders of argument vectors, and what their command lines say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vtax.launchers import mpirun, srun
from vtax.launchers.base import Launcher, Started

# By the program that starts the ranks.
KINDS: Mapping[str, type[mpirun.Mpirun | srun.Srun]] = {
    mpirun.PROGRAM: mpirun.Mpirun,
    srun.PROGRAM: srun.Srun,
}


# By which a recorded command is known as that of a launcher.
COMMANDS = (mpirun.PROGRAM, srun.SCRIPT)


def started(argv: Sequence[str]) -> Started | None:
    """What a recorded command says, when it is that of a launcher."""
    return mpirun.started(argv) or srun.started(argv)


def written(launcher: Launcher) -> dict[str, Any]:
    """A launcher as another machine can be told of it."""
    if not isinstance(launcher, (mpirun.Mpirun, srun.Srun)):
        raise TypeError(f"{launcher.program} is not a launcher of vtax's own")
    return {"program": launcher.program, "settings": launcher.model_dump(mode="json")}


def restored(told: Mapping[str, Any]) -> Launcher:
    """The launcher that was `written`. Raises ValueError for anything else."""
    kind = KINDS.get(str(told.get("program")))
    if kind is None:
        raise ValueError(f"not a launcher: {told.get('program')!r}")
    return kind.model_validate(told.get("settings"))
