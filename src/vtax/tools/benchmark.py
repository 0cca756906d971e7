"""What a benchmark is: everything about one tool, nothing about machines, no input or output at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from vtax.errors import ParseError
from vtax.launchers.base import Launcher
from vtax.model.metric import Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.record import Record
from vtax.model.trial import TrialRecord
from vtax.tools.reading import Output, Reading, Section, lines_of

GRACE_S = 30.0  # what any step may take beyond its own run time before it counts as hung


class Params(Record):
    """Parameters of a benchmark as a study gives them; "auto" values are filled in by `resolve`, once, in the plan."""


class Around(NamedTuple):
    """What of a study an entry may depend on, besides the nodes that it runs on."""

    shared_path: str
    seed: int
    place: int  # of the entry among those of the study, from 0
    workload: bool  # whether the study has an image of its own


class Tried(NamedTuple):
    """What the metrics of an entry found in outputs that a person has, by output; what could not be tried, and why."""

    readings: Mapping[str, Reading]
    untried: tuple[str, ...] = ()


ATTRIBUTES = ("name", "requires", "scopes", "default_scopes", "metrics", "params")


class Benchmark(Protocol):
    """One tool. `resolve`, `steps`, `read` and `estimate_s` are pure, so a dry run and golden tests come free.

    The audit reads what a benchmark declares: one that requires mpirun has ranks, one that may run on the shared file
    system measures storage. `short_by_nature = True` is for those whose result does not depend on the run's length.
    In scope PROVISIONING nothing runs: the campaign writes what it notes of every cluster.

    Some have more: `metrics_of(params)` where the metrics of an entry depend on its parameters, as a study has them;
    `mistakes(params, spec, workload=...)` for what is wrong with an entry as a whole (paths relative to it; `workload`:
    whether the study has an image of its own); `placed(params, around)` for parameters that depend on the study.
    `setup_s(params)` is how long its setup takes on each cluster.
    `tried(params, texts, label)` tries metrics on outputs without a run, and returns a `Tried`.
    `own_code = True` is for one that runs commands of the study's author. `about_storage = False` is for one that may
    run on the shared file system and measures something else.
    """

    @property
    def name(self) -> str: ...

    @property
    def requires(self) -> tuple[str, ...]:
        """Programs that the root file system must have."""
        ...

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """In which it makes sense."""
        ...

    @property
    def default_scopes(self) -> tuple[Scope, ...]: ...

    @property
    def metrics(self) -> tuple[Metric, ...]: ...

    @property
    def params(self) -> type[Params]: ...

    def resolve(self, params: Any, target: Target) -> Any:
        """Parameters with nothing left open, from the shape alone: never from inside an environment."""
        ...

    def steps(self, params: Any, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        """What to run, for resolved parameters."""
        ...

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        """Every output of a trial that ran to its end, read by the tool's reader: values, facts, series, refusals."""
        ...

    def estimate_s(self, params: Any, target: Target) -> float:
        """About how long one trial takes, for the progress line. Not a limit."""
        ...

    def clocked_s(self, params: Any, target: Target) -> float:
        """The part of it that passes by the clock, however slow the machine is."""
        ...


def own_section(record: TrialRecord, step: int = -1, node: str | None = None, output: str = "") -> tuple[str, Section]:
    """An output of vtax's own trial, as the tool's reader takes it, and the name of its file.

    It is standard output of a step (negative: from the end) on a node, or the file `output` that the step left.
    Raises ParseError when the step left no such file.
    """
    done = record.step_on(step, node)
    file = done.outputs.get(output, "") if output else done.stdout
    if file not in record.texts:
        raise ParseError(f"{source_of(record)}: {output} is missing", remedy="the raw output is kept; read it")
    return file, Section("", lines_of(record.texts[file]))


def source_of(record: TrialRecord) -> str:
    """How an error names a trial's output."""
    return f"trials/{record.id}"
