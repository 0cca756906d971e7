"""What a tool is: one folder that holds everything about one program, and the record that names its parts.

    tools/ping/__init__.py    TOOL = Tool(...): the parts below, Debian packages, how runs are found in logs
               benchmark.py   parameters, steps, estimates, metrics: what vtax runs
               reader.py      the one reader of its output: values with lines, facts, time series, refusals
               audit.py       rows of the audit about its results, where it has any
               figures.py     figures of its section of the report, where it has any
               workloads/     entries that a study takes by name, where it runs as a command, without benchmark.py

Nothing outside the folder knows the tool's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

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
    Each such line is a new run, unless runs may be `together`: ranks of one `mpirun` are one run, which goes on until
    as many lines matched `ends` as matched `begins` (without `begins`: one).
    """

    name: str  # kept in the records of imported trials
    read: Callable[[Section], Reading]
    starts: Callable[[str], bool]
    first: str
    begins: Callable[[str], bool] = never
    ends: Callable[[str], bool] = never
    together: bool = False
    restarts: Callable[[str], bool] | None = None  # the first lines of another run, where `starts` also has others
    holds: tuple[str, ...] = ()  # formats whose first lines are part of an unfinished run of this one
    outside: bool = False  # recognised only where no other run is going on, such as rows without a header
    titles: Callable[[str], bool] = never  # lines after a run that belong to the next one
    units: Mapping[str, str] = field(default_factory=dict)  # what may be stated where the text has no unit -> the unit
    mark: str | tuple[str, ...] = ""  # texts of which every run has one; a section without them is no run
    whole: Callable[[Mapping[str, Any]], bool] | None = None  # whether a JSON object is a run, not one that holds runs
    essential: Callable[[Section], Reading] | None = None  # reads less: without what is a detail of a log of others
    never_after: tuple[str, ...] = ()  # formats that print the same lines: after one of them, in one file, they are its
    unread: Mapping[str, str] = field(default_factory=dict)  # pattern of lines that are not taken -> name

    @property
    def marks(self) -> tuple[str, ...]:
        return (self.mark,) if isinstance(self.mark, str) and self.mark else tuple(self.mark)

    @property
    def document(self) -> bool:
        """Whether each run is one JSON object."""
        return "{" in self.first and bool(self.mark)


class Build(NamedTuple):
    """A fact of a log about how its program was built, in words. Another decisive one is another program."""

    fact: str
    words: str  # "{words} {value} in vm"
    decisive: bool = True


class Messages(NamedTuple):
    """Metrics of the time that a short message takes between two ranks: of the fastest pair, the mean, of the slowest.
    `figures` are all metrics that are of a network only where that time is."""

    fastest: str
    mean: str
    slowest: str
    figures: tuple[str, ...]
    labels: Mapping[str, str] = {}  # of values that are meant
    size: str = ""  # the label with the bytes of a message: the shortest one is meant


@dataclass(frozen=True, eq=False)
class Tool:
    """One program, or a suite of them, with all that vtax knows of it.

    `packages` are Debian packages: installed in the root file system, their versions are facts of every node.
    `programs` must be in the root file system, and the contents of those in `hashed` are facts too, where the version
    of a package does not say enough. They and `commands` are known at a prompt in a log. `versions` maps a fact of a
    log to the package whose version it is, and `builds` are facts that differ between builds of one version.
    `file_names` are parameter -> word that people put into names of files -> the value that it claims.
    `messages` are, by benchmark, the metrics of messages between ranks.
    `workloads` is the package whose folder `workloads` has entries for studies.
    `audit` and `figures` import what they return when they are called, so that `vtax --help` stays fast.
    """

    name: str
    benchmarks: tuple[Benchmark, ...]
    logs: tuple[LogFormat, ...] = ()
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    hashed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    builds: tuple[Build, ...] = ()
    file_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reads_with_others: bool = False  # its output may be read by the readers of all other tools
    same_work: tuple[str, ...] = ()  # metrics that are about the same work in all of its benchmarks
    messages: Mapping[str, Messages] = field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # label -> its values as tables list them
    workloads: str = ""
    audit: Callable[[], tuple[Row, ...]] = tuple
    figures: Callable[[], tuple[ToolFigures, ...]] = tuple
