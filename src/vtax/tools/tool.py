"""What a tool is: one folder that holds everything about one program, and the record that names its parts.

    tools/ping/__init__.py    TOOL = Tool(...): the parts below, Debian packages, how runs are found in logs
               benchmark.py   parameters, steps, estimates, metrics: what vtax runs
               reader.py      the one reader of its output: values with lines, facts, time series, refusals
               audit.py       rows of the audit about its results, where it has any
               figures.py     figures of its section of the report, where it has any

Nothing outside the folder knows the tool's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vtax.evidence.row import Row
from vtax.tools.benchmark import Benchmark
from vtax.tools.reading import Reading, Section

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def never(_line: str) -> bool:
    return False


@dataclass(frozen=True)
class LogFormat:
    """How runs are found in logs that other people made, and read. A tool may print several formats (text, JSON).

    `starts` recognises the first line of a run by what only this tool prints, never by the name of the file; `first`
    holds the characters with which such a line may begin, a cheap test before it (files have millions of lines).
    A run goes on until as many lines matched `ends` as matched `begins`: ranks of one `mpirun` are one run. Without
    `ends`, every first line starts a new run.
    """

    name: str  # kept in the records of imported trials
    read: Callable[[Section], Reading]
    starts: Callable[[str], bool]
    first: str = ""
    begins: Callable[[str], bool] = never
    ends: Callable[[str], bool] = never


@dataclass(frozen=True)
class Tool:
    """One program, or a suite of them, with all that vtax knows of it.

    `packages` are Debian packages: installed in the root file system, their versions are facts of every node.
    `programs` must be in the root file system. `versions` maps a fact of a log to the package whose version it is.
    `audit` and `figures` import what they return when they are called, so that `vtax --help` stays fast.
    """

    name: str
    benchmarks: tuple[Benchmark, ...]
    logs: tuple[LogFormat, ...] = ()
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    audit: Callable[[], tuple[Row, ...]] = tuple
    figures: Callable[[], tuple[ToolFigures, ...]] = tuple
