"""What vtax runs: stress-ng with one stressor after another, each a separate step.

Numbers come from the log rather than from `--yaml`, because only the log says whether the run succeeded and whether a
worker was killed on the way (and only `--verbose` does: without it stress-ng restarts a killed worker in silence).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import StepRecord, TrialRecord
from vtax.tools.benchmark import GRACE_S, Params
from vtax.tools.fields import Bytes, Threads, threads_on
from vtax.tools.reading import Output, Reading, Section, lines_of
from vtax.tools.stress_ng.metrics import METRICS
from vtax.tools.stress_ng.reader import read

START_S = 0.3  # of a stressor, besides the time that it is given, for the estimate
GROUPS = {
    "Compute": ("cpu", "matrix"),
    "Memory": ("vm", "memcpy", "stream"),
    "Storage": ("io", "iomix", "hdd"),
    "Network": ("sock",),
}


class StressNgParams(Params):
    """`stressors` run one after another, each with `workers` workers for `time_s` seconds.

    `vm_bytes` and `hdd_bytes` are shared out among the workers; sizes and methods are fixed, never a percentage of what
    a node happens to have, and never "all", which does other work on a faster machine.
    """

    stressors: tuple[Literal["cpu", "vm", "io", "hdd"], ...] = Field(("cpu", "vm", "io", "hdd"), min_length=1)
    workers: Threads = "auto"
    time_s: int = Field(60, ge=1, le=86_400)
    cpu_method: str = Field("matrixprod", pattern=r"^[a-z][a-z0-9]*$")
    vm_bytes: Bytes = 512 * 2**20
    vm_method: str = Field("flip", pattern=r"^[a-z][a-z0-9-]*$")
    hdd_bytes: Bytes = 2**30
    hdd_write_size: Annotated[Bytes, Field(le=4 * 2**20)] = 64 * 2**10  # of one write; stress-ng's own default

    @field_validator("stressors")
    @classmethod
    def _each_once(cls, stressors: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(stressors)) < len(stressors):
            raise ValueError("each stressor once: use iterations to repeat it")
        return stressors


class StressNg:
    name = "stress-ng"
    requires = ("stress-ng",)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER)
    default_scopes = (Scope.NODE,)
    metrics = METRICS
    params = StressNgParams

    def group_of(self, metric: str, labels: Mapping[str, str]) -> str:
        """The part of the machine that a stressor loads; a metric that is of no stressor names what it counts."""
        of_stressor = {word: group for group, words in GROUPS.items() for word in words}
        words = (labels.get("stressor", ""), *metric.split("_"))
        return next((of_stressor[word] for word in words if word in of_stressor), "")

    def resolve(self, params: StressNgParams, target: Target) -> StressNgParams:
        return params.model_copy(update={"workers": threads_on(target, params.workers)})

    def steps(self, params: StressNgParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        own = {
            "cpu": ("--cpu-method", params.cpu_method),
            "vm": ("--vm-bytes", str(params.vm_bytes), "--vm-method", params.vm_method),
            "io": (),
            "hdd": ("--hdd-bytes", str(params.hdd_bytes), "--hdd-write-size", str(params.hdd_write_size)),
        }
        common = ("--timeout", f"{params.time_s}s", "--metrics", "--verbose")
        return tuple(
            Step(
                nodes=target.names,
                argv=("stress-ng", f"--{stressor}", str(params.workers), *own[stressor], *common),
                timeout_s=params.time_s + 2 * GRACE_S,  # workers end at the end of an operation; io may wait for a disk
            )
            for stressor in params.stressors
        )

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        workers, stressors = record.params.get("workers"), record.params.get("stressors")
        outputs = []
        for done in record.steps:
            wanted = f"{workers} {stressors[done.step]}" if isinstance(stressors, (list, tuple)) else ""
            outputs += [
                Output(file, reading, {"node": done.node}) for file, reading in _logs(record, done, wanted).items()
            ]
        return tuple(outputs)

    def estimate_s(self, params: StressNgParams, target: Target) -> float:
        return len(params.stressors) * (params.time_s + START_S)

    def clocked_s(self, params: StressNgParams, target: Target) -> float:
        return len(params.stressors) * params.time_s


def _logs(record: TrialRecord, done: StepRecord, wanted: str) -> dict[str, Reading]:
    """The log of a step, by its file, refused unless it is one run of the stressor that was `wanted`. 0.15 writes it to
    standard error, 0.19 to standard output."""
    files = [name for name in (done.stdout, done.stderr) if "stress-ng: " in record.texts[name]]
    files = files or [name for name in (done.stderr, done.stdout) if record.texts[name]][:1] or [done.stdout]
    found = {}
    for name in files:
        section = Section("", lines_of(record.texts[name]))
        found[name] = reading = read(section)
        if len(files) > 1 or reading.ranks != 1:
            reading.refuse(0, "all values", f"{len(files)} logs of {reading.ranks} runs, and not one of one")
        if wanted and reading.params.get("hogs") != wanted:
            line = next((line.number for line in section.lines if "dispatching hogs" in line.text), 0)
            reading.refuse(line, "all values", f"{reading.params.get('hogs')} was started, and {wanted} was asked for")
    return found
