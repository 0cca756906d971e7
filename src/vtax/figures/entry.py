"""What a figure of an entry of the study is made from, and what a tool says about its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.figures.figure import Figure, NotDrawn
from vtax.model.cluster import CellRecord
from vtax.model.plan import Plan
from vtax.model.reading import TimeSeries, TrialReading
from vtax.model.trial import TrialRecord


@dataclass(frozen=True)
class EntryData:
    """The results of one entry of the study, in the order of its tables. `trials` are those that were measured and
    ended well; `peak` is what its nodes could do at most, in flop/s, where that is known; `name` begins the names of
    the entry's figures.
    """

    name: str
    label: str
    environments: tuple[str, ...]  # all of the campaign
    levels: Mapping[Series, Mapping[str, Level]]
    trials: tuple[TrialRecord, ...] = ()
    readings: Mapping[str, TrialReading] = field(default_factory=dict)  # trial -> what its output says
    plan: Plan | None = None
    cells: tuple[CellRecord, ...] = ()
    peak: float | None = None

    def series(self, trial: TrialRecord, name: str) -> tuple[TimeSeries, ...]:
        """A time series, from every output of a trial that has it."""
        known = self.readings.get(trial.id)
        return tuple(output.series[name] for output in known.outputs if name in output.series) if known else ()


Draw = Callable[[EntryData], Iterable[Figure | NotDrawn]]


def nothing(entry: EntryData) -> Iterable[Figure | NotDrawn]:  # noqa: ARG001 - the signature of a figure function
    """The figures of a tool that needs none besides bars."""
    return ()


@dataclass(frozen=True)
class ToolFigures:
    """What figures the entries of a benchmark have, besides bars of its primary metrics.

    `suite`: all its rates and costs get bars, not only the primary ones. `instead_of_bars`: where `draw` gives figures,
    there are no bars. `losses`: metrics that get bars where some value of them is not zero. `kinds` are the kinds of
    figures that `draw` gives.
    """

    benchmark: str
    draw: Draw = nothing
    kinds: tuple[str, ...] = ()
    suite: bool = False
    instead_of_bars: bool = False
    losses: tuple[str, ...] = ()
