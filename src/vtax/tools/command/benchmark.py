"""What vtax runs for an entry with an own command, and what it reads from a run of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from vtax.errors import Mistake, ParseError, UsageError
from vtax.launchers.base import Launcher
from vtax.model.metric import Metric
from vtax.model.nodes import Phase, Scope, Target
from vtax.model.outside import MEMORY_PEAK, metric_of
from vtax.model.plan import Step
from vtax.model.study import BenchmarkSpec
from vtax.model.trial import StepRecord, TrialRecord
from vtax.tools.benchmark import Around, Tried, source_of
from vtax.tools.command import templates
from vtax.tools.command.checks import mistakes, unused
from vtax.tools.command.metric_table import declared
from vtax.tools.command.params import Argv, CommandParams, CommandTable
from vtax.tools.command.steps import ENTERED, SUPERVISED, USAGE, Steps
from vtax.tools.patterns import compile_pattern, encoded
from vtax.tools.reading import Output, Reading

OUTPUT_FACT = "output_sha256"
FIRST_PORT = 21_000  # below those that the kernel gives to clients
UNKNOWN_S = 5.0  # of work whose duration the study does not say, for estimates only
SETUP_S, AROUND_S, SERVICE_S = 1.0, 0.5, 0.5  # likewise: of a command of setup, of prepare and cleanup, of a service


class Command:
    name = "command"
    requires: tuple[str, ...] = (SUPERVISED, ENTERED)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER, Scope.PAIRS, Scope.SHARED)
    default_scopes = (Scope.NODE,)
    about_storage = False  # its author decides what it is about
    own_code = True
    metrics = (*declared(()), metric_of(MEMORY_PEAK))
    params = CommandParams

    def metrics_of(self, params: Mapping[str, JsonValue]) -> tuple[Metric, ...]:
        """The metrics of an entry with these parameters."""
        known = CommandParams.model_validate(dict(params))
        return (*declared(known.metrics), *(metric_of(name) for name in (MEMORY_PEAK, *dict.fromkeys(known.perf))))

    def mistakes(self, params: CommandParams, spec: BenchmarkSpec, *, workload: bool) -> Iterable[Mistake]:
        if spec.label == spec.name:
            yield Mistake("label", "is missing", "the name of this entry in reports and gates")
        yield from mistakes(params, spec, workload=workload)
        yield from unused(params)

    def placed(self, params: CommandParams, around: Around) -> CommandParams:
        """With what depends on the study as a whole: whether there is an image, the port, words that are the same on
        all targets."""
        if lost := [file.source for file in params.files if not file.sha256]:
            raise UsageError(f"{lost[0]} was not read", remedy="a study with `files` has to be a file in a folder")
        port = params.port if isinstance(params.port, int) else FIRST_PORT + around.place
        image = around.workload if params.image is None else params.image
        words = {"shared": around.shared_path, "seed": str(around.seed), "port": str(port)}
        return params.model_copy(update={"port": port, "image": image, "words": words})

    def resolve(self, params: CommandParams, target: Target) -> CommandParams:
        seconds = params.running.seconds
        timed = {} if seconds is None else {"seconds": f"{seconds:g}"}
        own = {name: templates.text_of(value) for name, value in params.values.items()}
        return params.model_copy(update={"words": {**params.words, **templates.of_shape(target), **timed, **own}})

    def steps(self, params: CommandParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        return Steps(params, target, launcher).all()

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        from vtax.tools.command.extract import extract

        params = CommandParams.model_validate(dict(record.params))
        done = measured(record)
        files = files_of(done)
        texts = {name: record.texts[file] for name, file in files.items()}
        if reason := unsuccessful(params, texts):
            reading = Reading(self.name, ended=True)
            reading.refuse(0, "the run", reason)
            return (Output(done.stdout, reading),)
        found = extract(params.metrics, texts, record.label, done.not_kept)
        if params.running.same_output:
            next(iter(found.readings.values())).facts[OUTPUT_FACT] = digest(params, texts["stdout"])
        return tuple(Output(files.get(name, done.stdout), reading) for name, reading in found.readings.items())

    def tried(self, params: CommandParams, texts: Mapping[str, str], label: str) -> Tried:
        from vtax.tools.command.sample import tried

        return tried(params, texts, label)

    def estimate_s(self, params: CommandParams, target: Target) -> float:
        run = params.running
        around_s = _estimated_s((*params.prepare, *params.cleanup), AROUND_S) + SERVICE_S * len(params.services)
        return (run.estimate or run.seconds or UNKNOWN_S) + around_s

    def setup_s(self, params: CommandParams) -> float:
        """How long its setup takes on each cluster, for estimates only."""
        return _estimated_s(params.setup, SETUP_S)

    def clocked_s(self, params: CommandParams, target: Target) -> float:
        return params.running.seconds or 0.0


def _estimated_s(commands: Sequence[Argv | CommandTable], usual_s: float) -> float:
    tables = (one if isinstance(one, CommandTable) else None for one in commands)
    return sum(usual_s if table is None or table.estimate is None else table.estimate for table in tables)


def digest(params: CommandParams, text: str) -> str:
    """The sha256 of an output without what may differ."""
    volatile = params.running.volatile
    content = encoded(text) if volatile is None else compile_pattern(volatile).removed(encoded(text))
    return hashlib.sha256(content).hexdigest()


def measured(record: TrialRecord) -> StepRecord:
    """The step that is measured. Raises ParseError for a trial without one."""
    found = [done for done in record.steps if done.phase is Phase.RUN and not done.background]
    if not found:
        raise ParseError(f"{source_of(record)}: the command did not run", remedy="look at the trial's failure")
    return found[-1]


def files_of(done: StepRecord) -> dict[str, str]:
    """What a run left, and where it is kept: "stdout", "stderr", the files that metrics are read from, and "usage"."""
    named = {"usage" if name == USAGE else name: file for name, file in done.outputs.items()}
    return {**named, "stdout": done.stdout, "stderr": done.stderr}


def unsuccessful(params: CommandParams, texts: Mapping[str, str]) -> str:
    """Why a run did not succeed by the patterns of its study; "" when it did."""
    success = params.running.success
    printed = (texts["stdout"], texts["stderr"])
    if success.match and not any(compile_pattern(success.match).found(text) for text in printed):
        return f"nothing in its output matches {success.match!r}, as `success.match` demands"
    if success.refuse and any(compile_pattern(success.refuse).found(text) for text in printed):
        return f"its output matches {success.refuse!r}, which `success.refuse` forbids"
    return ""
