"""stress-ng: bogus operations of one stressor after another.

A bogo op is whatever one stressor's loop does, so it compares environments under the same stressor, method and version
of stress-ng, and nothing else. Each stressor is a step of its own. Numbers come from the log rather than from `--yaml`,
because only the log says whether the run succeeded and whether a worker was killed on the way (and only `--verbose`
does: without it stress-ng restarts a killed worker in silence). 0.15 logs to standard error, 0.19 to standard output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import StepRecord, TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, found, number, refuse
from vtax.tools.excerpts import Piece
from vtax.tools.fields import Bytes, Threads, threads_on

BOGO_OPS = Metric(name="bogo_ops", unit="1", kind=Kind.COUNT, meaning="operations of all workers in the run")
RATE_REAL = Metric(
    name="bogo_ops_rate_real",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="operations per second of wall time: of one stressor, method and version only",
)
RATE_CPU = Metric(
    name="bogo_ops_rate_cpu",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="operations per second of CPU time (user + system): hides time in which a worker did not run",
)

PREFIX = r"^stress-ng: (?:info: |metrc:) +\[\d+\] "  # metrics moved from "info:" to "metrc:" in 0.14
HEADER = re.compile(
    PREFIX + r"stressor +bogo ops +real time +usr time +sys time +bogo ops/s +bogo ops/s\b.*\n"
    rf"{PREFIX} +\(secs\) +\(secs\) +\(secs\) +\(real time\) +\(usr\+sys time\).*$",
    re.MULTILINE,
)
ROW = re.compile(
    PREFIX + r"([a-z][\w-]*) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)(?: +[\d.]+(?: +\d+)?)?\n",
    re.MULTILINE,
)
# Not always the last line: before 0.14 the metrics follow it, so a row counts only with its newline.
END = re.compile(r"^stress-ng: info:  ?\[\d+\] successful run completed in .+$", re.MULTILINE)
BAD = re.compile(
    r"^stress-ng: (?:fail|error): .*$"
    r"|^.* unsuccessful run completed .*$"
    r"|^.* (?:failed|skipped|metrics untrustworthy): [1-9].*$"
    r"|^.*(?:killed by OOM killer|child died: signal|terminated on signal|terminated with an error).*$"
    r"|^.* OOM restarts: [1-9].*$"
    r"|^.*metrics-check: .*(?:incorrect|untrustworthy|zero|invalid).*$",
    re.MULTILINE,
)


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
    package = "stress-ng"
    requires = ("stress-ng",)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER)
    default_scopes = (Scope.NODE,)
    metrics = (BOGO_OPS, RATE_REAL, RATE_CPU)
    params = StressNgParams

    def group_of(self, metric: str, labels: Mapping[str, str]) -> str:
        """The part of the machine that a stressor loads; a metric that is of no stressor names what it counts."""
        of_stressor = {word: group for group, words in GROUPS.items() for word in words}
        words = (labels.get("stressor", ""), *metric.split("_"))
        return next((of_stressor[word] for word in words if word in of_stressor), "")

    def resolve(self, params: StressNgParams, target: Target) -> StressNgParams:
        return params.model_copy(update={"workers": threads_on(target, params.workers)})

    def steps(self, params: StressNgParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
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

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        measurements: list[Measurement] = []
        for done in record.steps:
            measurements += _stressor(record, done)
        return tuple(measurements)

    def estimate_s(self, params: StressNgParams, target: Target) -> float:
        return len(params.stressors) * (params.time_s + 0.5)

    def clocked_s(self, params: StressNgParams, target: Target) -> float:
        return len(params.stressors) * params.time_s


def _stressor(record: TrialRecord, done: StepRecord) -> list[Measurement]:
    """The measurements of one step on one node. Raises ParseError when it did not end well."""
    logs = [name for name in (done.stdout, done.stderr) if "stress-ng: " in record.texts[name]]
    if len(logs) != 1:
        held = [text for text in (record.texts[done.stdout], record.texts[done.stderr]) if text]
        what = f"step {done.step} on {done.node} left {len(logs)} logs instead of one"
        raise refuse(record, what, held[0] if len(held) == 1 else "")
    text = record.texts[logs[0]]
    if bad := BAD.search(text):
        raise refuse(record, f"stress-ng did not run well: {bad[0].strip()}", Piece.of(text, bad.start()))
    found(END, text, record)
    found(HEADER, text, record)
    stressor, count, real_s, user_s, system_s, per_real, per_cpu = found(ROW, text, record)
    if int(count) == 0 or number(real_s, record) == 0:
        raise refuse(record, f"{stressor} did nothing", stressor)
    labels = {"stressor": stressor, "node": done.node}
    values = {BOGO_OPS: float(count), RATE_REAL: number(per_real, record)}
    if number(user_s, record) + number(system_s, record) > 0:
        values[RATE_CPU] = number(per_cpu, record)  # with no CPU time on the clock stress-ng prints 0.00 here
    if min(values.values()) <= 0:
        raise refuse(record, f"{stressor} has a rate of zero", stressor)
    return [Measurement.of(record, metric, value, labels, logs[0]) for metric, value in values.items()]
