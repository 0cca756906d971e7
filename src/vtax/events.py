"""What a running campaign reports to a listener. Only `cli` draws events; a library user sees no output."""

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
    looks: tuple[int, ...] = ()  # rounds after which it may end; only the last round when there are no others


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
    look: int | None = None  # rounds after which the next interim analysis is planned
    look_s: float = 0.0  # until then


@dataclass(frozen=True)
class CellFinished(Event):
    cell: str
    status: str
    failure: str


@dataclass(frozen=True)
class LookTaken(Event):
    """An interim analysis after a planned number of rounds, or the end of the campaign without one."""

    rounds: int
    ends: bool
    reason: str


@dataclass(frozen=True)
class IntervalsNow(Event):
    """The intervals of the primary metrics after so many complete rounds. For display: only planned analyses decide."""

    rounds: int
    baseline: str
    intervals: tuple[InterimInterval, ...]
    summary: str  # how many have their verdict, in words


@dataclass(frozen=True)
class Notice(Event):
    """Something that a user should know and that is not an error."""

    message: str


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that discards every event."""
