"""ping: round-trip time between two nodes, from the summary of iputils' ping."""

from __future__ import annotations

import re

from pydantic import Field

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, found, number, refuse

PACKETS = re.compile(r"^(\d+) packets transmitted, (\d+) received,.*, time \d+ms$", re.MULTILINE)
ANSWER = re.compile(r"^\d+ bytes from .*icmp_seq=(\d+) .*time=([\d.]+) ms$", re.MULTILINE)
SUMMARY = re.compile(r"^rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms(?:, .*)?\n", re.MULTILINE)
NO_ANSWER = {1: r"(?m)^\d+ packets transmitted, 0 received,.* 100% packet loss, time \d+ms$"}  # ping's exit code 1

RTT_MIN = Metric(name="rtt_min", unit="s", kind=Kind.COST, meaning="fastest round trip")
RTT_AVG = Metric(name="rtt_avg", unit="s", kind=Kind.COST, primary=True, meaning="mean round trip")
RTT_MAX = Metric(name="rtt_max", unit="s", kind=Kind.COST, meaning="slowest round trip")
RTT_MDEV = Metric(
    name="rtt_mdev", unit="s", kind=Kind.COST, meaning="deviation as iputils computes it: sqrt(mean(x²) - mean(x)²)"
)
LOST = Metric(name="lost_fraction", unit="1", kind=Kind.PROPORTION, meaning="packets without an answer, of those sent")


class PingParams(Params):
    """`count` packets, one every `interval_s` seconds (below 0.002 only root may)."""

    count: int = Field(100, ge=1, le=1_000_000)
    interval_s: float = Field(0.02, ge=0.002, le=60)


class Ping:
    name = "ping"
    group = "Network"
    package = "iputils-ping"
    requires = ("ping",)
    scopes = (Scope.PAIRS,)
    default_scopes = (Scope.PAIRS,)
    metrics = (RTT_MIN, RTT_AVG, RTT_MAX, RTT_MDEV, LOST)
    params = PingParams

    def resolve(self, params: PingParams, target: Target) -> PingParams:
        return params  # nothing depends on the machine

    def steps(self, params: PingParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        client, server = target.names
        warm_arp = ("ping", "-n", "-q", "-c", "1", "-W", "5", server)
        timed = ("ping", "-n", "-c", str(params.count), "-i", f"{params.interval_s:g}", server)
        limits_s = (GRACE_S, params.count * params.interval_s + GRACE_S)
        return tuple(
            Step(nodes=(client,), argv=argv, timeout_s=limit_s, results=NO_ANSWER)
            for argv, limit_s in zip((warm_arp, timed), limits_s, strict=True)
        )

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        text = record.output()
        counts = found(PACKETS, text, record)
        sent, received = map(int, counts)
        if sent == 0 or received > sent:
            raise refuse(record, f"{received} answers to {sent} packets", counts[0])
        labels = {"client": record.nodes[0], "server": record.nodes[1]}
        lost = Measurement.of(record, LOST, 1 - received / sent, labels)
        if received == 0:
            return (lost,)  # no round trip to report: absent, not zero
        times_s = [number(ms, record) / 1000 for ms in found(SUMMARY, text, record)]
        metrics = (RTT_MIN, RTT_AVG, RTT_MAX, RTT_MDEV)
        shown = zip(metrics, times_s, strict=True)
        # 0.000 is a time below what ping prints: absent, since no time is zero
        return (lost, *(Measurement.of(record, metric, time_s, labels) for metric, time_s in shown if time_s > 0))

    def estimate_s(self, params: PingParams, target: Target) -> float:
        return params.count * params.interval_s + 0.5

    def clocked_s(self, params: PingParams, target: Target) -> float:
        return params.count * params.interval_s


def round_trips(record: TrialRecord) -> tuple[tuple[int, float], ...]:
    """(sequence number, s) of every answer, in the order of arrival; none where ping was told to be quiet."""
    answers = ANSWER.findall(record.output())
    return tuple((int(sequence), number(ms, record) / 1000) for sequence, ms in answers)
