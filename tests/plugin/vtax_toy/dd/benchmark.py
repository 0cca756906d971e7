"""What vtax runs: dd from /dev/zero to /dev/null on every node."""

from __future__ import annotations

from pydantic import Field

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import Params
from vtax.tools.reading import Output, Section, lines_of
from vtax_toy.dd.reader import RATE, read

MIB = 2**20


class DdParams(Params):
    """`blocks` of 1 MiB each."""

    blocks: int = Field(2048, ge=1, le=1_000_000)


class Dd:
    name = "dd"
    requires = ("dd",)
    scopes = (Scope.NODE,)
    default_scopes = (Scope.NODE,)
    metrics = (RATE,)
    params = DdParams
    group = "Memory"

    def resolve(self, params: DdParams, target: Target) -> DdParams:
        return params

    def steps(self, params: DdParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        argv = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", f"count={params.blocks}")
        return (Step(nodes=target.names, argv=argv, timeout_s=60),)

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        file = record.step_on(-1).stderr
        return (Output(file, read(Section("dd", lines_of(record.texts[file])))),)

    def estimate_s(self, params: DdParams, target: Target) -> float:
        return params.blocks * MIB / 5e9

    def clocked_s(self, params: DdParams, target: Target) -> float:
        return 0.0
