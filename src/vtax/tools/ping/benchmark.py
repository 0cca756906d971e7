"""What vtax runs: ping from every node to every other, after one packet that resolves the address."""

from __future__ import annotations

from pydantic import Field

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, own_section
from vtax.tools.ping.metrics import METRICS
from vtax.tools.ping.reader import read
from vtax.tools.reading import Output

LATE_S = 0.0015  # by which a packet is late where timers have the steps of the kernel's clock, for the estimate
NO_ANSWER = {1: r"(?m)^\d+ packets transmitted, 0 received,.* 100% packet loss, time \d+ms$"}  # ping's exit code 1


class PingParams(Params):
    """`count` packets, one every `interval_s` seconds (below 0.002 only root may)."""

    count: int = Field(100, ge=1, le=1_000_000)
    interval_s: float = Field(0.02, ge=0.002, le=60)


class Ping:
    name = "ping"
    group = "Network"
    requires = ("ping",)
    scopes = (Scope.PAIRS,)
    default_scopes = (Scope.PAIRS,)
    short_by_nature = True  # its result is of single packets, not of the run's length
    metrics = METRICS
    params = PingParams

    def resolve(self, params: PingParams, target: Target) -> PingParams:
        return params  # nothing depends on the machine

    def steps(self, params: PingParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        client, server = target.names
        warm_arp = ("ping", "-n", "-q", "-c", "1", "-W", "5", server)
        timed = ("ping", "-n", "-c", str(params.count), "-i", f"{params.interval_s:g}", server)
        limits_s = (GRACE_S, params.count * params.interval_s + GRACE_S)
        return tuple(
            Step(nodes=(client,), argv=argv, timeout_s=limit_s, results=NO_ANSWER)
            for argv, limit_s in zip((warm_arp, timed), limits_s, strict=True)
        )

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        file, section = own_section(record)
        client, server = record.nodes
        return (Output(file, read(section), {"client": client, "server": server}),)

    def estimate_s(self, params: PingParams, target: Target) -> float:
        return params.count * (params.interval_s + LATE_S)

    def clocked_s(self, params: PingParams, target: Target) -> float:
        return self.estimate_s(params, target)
