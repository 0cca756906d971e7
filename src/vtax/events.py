"""What a running campaign tells whoever listens. Only `cli` draws them; a library user sees no output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vtax.analysis.estimate.intervals import InterimInterval


@dataclass(frozen=True)
class Event:
    """Root of all events."""


@dataclass(frozen=True)
class CampaignStarted(Event):
    directory: str
    rounds: int
    cells: int
    trials: int
    done_trials: int
    estimate_s: float
    looks: tuple[int, ...] = ()  # rounds after which it may end; a single one when it is the last round


@dataclass(frozen=True)
class StageStarted(Event):
    """A long stage other than a cell: the image build, the report. `estimate_s` 0 is unknown."""

    stage: str
    estimate_s: float = 0.0


@dataclass(frozen=True)
class StageProgress(Event):
    stage: str
    message: str


@dataclass(frozen=True)
class StageFinished(Event):
    stage: str
    elapsed_s: float


@dataclass(frozen=True)
class CellStarted(Event):
    cell: str
    round: int
    environment: str
    trials: int


@dataclass(frozen=True)
class ClusterReady(Event):
    cell: str
    nodes: int
    elapsed_s: float


@dataclass(frozen=True)
class TrialStarted(Event):
    trial: str
    estimate_s: float


@dataclass(frozen=True)
class TrialFinished(Event):
    trial: str
    status: str
    failure: str
    elapsed_s: float
    remaining_s: float  # to the last planned round
    look: int | None = None  # the next planned look
    look_s: float = 0.0  # until then


@dataclass(frozen=True)
class CellFinished(Event):
    cell: str
    status: str
    failure: str


@dataclass(frozen=True)
class LookTaken(Event):
    """The results were looked at after a planned number of rounds, or the campaign ended without that."""

    rounds: int
    ends: bool
    reason: str


@dataclass(frozen=True)
class IntervalsNow(Event):
    """Where the primary metrics stand after so many complete rounds. Nothing is decided by it: that is for looks."""

    rounds: int
    baseline: str
    intervals: tuple[InterimInterval, ...]
    summary: str  # how many have their verdict, in words


@dataclass(frozen=True)
class Notice(Event):
    """Something a person should know that is not an error."""

    message: str


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The listener of those who do not listen."""
