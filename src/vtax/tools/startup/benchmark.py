"""What vtax does anyway: it creates, keeps and destroys a cluster. This notes how long that takes, and runs nothing.

Nodes are created at the same time, as in every campaign. What this machine cannot see of a node is absent: a host
without a network of its own has no first process and no SSH server.
"""

from __future__ import annotations

from vtax.errors import ParseError
from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import Params, own_section, source_of
from vtax.tools.reading import Output
from vtax.tools.startup.metrics import METRICS
from vtax.tools.startup.reader import read


class StartupParams(Params):
    """Nothing can be chosen: it is the cluster that all other entries use."""


class Startup:
    name = "startup"
    group = "Start-up"
    requires = ()
    scopes = (Scope.PROVISIONING,)
    default_scopes = (Scope.PROVISIONING,)
    short_by_nature = True  # it takes as long as it takes
    metrics = METRICS
    params = StartupParams

    def resolve(self, params: StartupParams, target: Target) -> StartupParams:
        return params

    def steps(self, params: StartupParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        return ()

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        if not record.steps:
            raise ParseError(f"{source_of(record)}: nothing was noted", remedy="its cluster was not created")
        file, section = own_section(record)
        return (Output(file, read(section, record.nodes)),)

    def estimate_s(self, params: StartupParams, target: Target) -> float:
        return 0.0  # clusters are created anyway

    def clocked_s(self, params: StartupParams, target: Target) -> float:
        return 0.0
