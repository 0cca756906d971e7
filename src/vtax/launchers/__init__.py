"""How a parallel program is started: pure builders of argument vectors, and what their command lines say."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.launchers import mpirun
from vtax.launchers.base import Started


def started(argv: Sequence[str]) -> Started | None:
    """What a recorded command says, when it is that of a launcher."""
    return mpirun.started(argv)
