"""What a cell needs of the campaign that it belongs to, so that it can also run on a machine that has none of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from vtax.model.cluster import CellRecord
from vtax.model.trial import TrialRecord


class Writing(Protocol):
    """Where records go: the campaign's directory, or the machine that has it."""

    def instances(self, cell: str) -> int:
        """How many clusters a cell has had."""
        ...

    def new_trial(self, trial: str) -> AbstractContextManager[Path]:
        """A directory for a trial's raw output; it is safe when this ends."""
        ...

    def kept(self, sha256: str) -> bytes:
        """A file of the study."""
        ...

    def save_cell(self, cell: CellRecord) -> None: ...

    def save(self, name: str, content: bytes) -> object:
        """Write any other file."""
        ...


class Readings(Protocol):
    """What reads the output of a trial as soon as it is safe."""

    @property
    def campaign(self) -> Writing: ...

    def counted(self, record: TrialRecord) -> TrialRecord:
        """A trial as it counts: failed, with the reason, where its output is refused."""
        ...


class Remaining(Protocol):
    """How much time is left."""

    def done(self, cell: str, elapsed_s: float, *, ran: bool = True) -> None: ...

    def ready(self, cell: str) -> None: ...

    def remaining_s(self, until: int | None = None) -> float: ...
