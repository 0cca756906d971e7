"""What vtax runs: iperf3 between two nodes over TCP or UDP, one server and one client that writes JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, own_section
from vtax.tools.fields import Auto, Bytes
from vtax.tools.iperf3.metrics import METRICS, RETRANSMITS
from vtax.tools.iperf3.reader import read
from vtax.tools.reading import Output

START_S = 0.1  # besides the time that it is given, for the estimate
POINTS = 10  # intervals of a run that is shorter than as many seconds


class Iperf3Params(Params):
    """`parallel` streams for `time_s` seconds after `omit_s` that do not count (TCP's slow start).

    `bitrate` (bit/s, each stream) is the target of UDP and always given: iperf3's own default is 1 Mbit/s, which
    measures nothing. TCP has no target. `reverse` makes the server the sender. The client reports every `interval_s`
    seconds; "auto" is a second, or a tenth of a run of less than ten seconds.
    """

    protocol: Literal["tcp", "udp"] = "tcp"
    reverse: bool = False
    parallel: int = Field(1, ge=1, le=128)
    time_s: int = Field(10, ge=1, le=86_400)
    omit_s: int = Field(1, ge=0, le=60)
    interval_s: Auto | Annotated[float, Field(ge=0.1, le=60)] = "auto"
    bitrate: int = Field(3_000_000_000, ge=1_000, le=1_000_000_000_000)
    window_bytes: Bytes | None = None
    port: int = Field(5201, ge=1024, le=65_535)


class Iperf3:
    name = "iperf3"
    group = "Network"
    requires = ("iperf3",)
    scopes = (Scope.PAIRS,)
    default_scopes = (Scope.PAIRS,)
    metrics = METRICS
    params = Iperf3Params

    def resolve(self, params: Iperf3Params, target: Target) -> Iperf3Params:
        return params.model_copy(update={"interval_s": interval_s(params)})

    def steps(self, params: Iperf3Params, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        client, server = target.names
        timeout_s = params.time_s + params.omit_s + GRACE_S
        listen = ("iperf3", "-s", "-1", "-p", str(params.port), "--forceflush")
        send = ["iperf3", "-c", server, "-p", str(params.port), "-J", "--connect-timeout", "5000"]
        send += ["-t", str(params.time_s), "-O", str(params.omit_s), "-P", str(params.parallel)]
        send += ["-i", f"{interval_s(params):g}"]
        if params.protocol == "udp":
            send += ["-u", "-b", str(params.bitrate)]
        if params.window_bytes is not None:
            send += ["-w", str(params.window_bytes)]
        if params.reverse:
            send.append("-R")
        ready = "Server listening on"
        return (
            Step(nodes=(server,), argv=listen, timeout_s=timeout_s + GRACE_S, background=True, ready=ready),
            Step(nodes=(client,), argv=tuple(send), timeout_s=timeout_s),
        )

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        file, section = own_section(record)
        reading = read(section)
        if not section.text.startswith("{"):
            reading.refuse(0, "the client's output", "not one JSON document")
        elif not reading.refusals and not reading.ended:
            reading.refuse(0, "the client's output", "not one JSON document: something follows it")
        if reading.params.get("protocol") == "tcp" and all(one.metric is not RETRANSMITS for one in reading.values):
            reading.refuse(0, RETRANSMITS.name, "no end.sum_sent.retransmits")
        if record.params.get("protocol") == "udp":
            params = Iperf3Params.model_validate(record.params)
            reading.facts["requested_bit_s"] = float(params.bitrate * params.parallel)
        client, server = record.nodes
        return (Output(file, reading, {"client": client, "server": server}),)

    def estimate_s(self, params: Iperf3Params, target: Target) -> float:
        return params.time_s + params.omit_s + START_S

    def clocked_s(self, params: Iperf3Params, target: Target) -> float:
        return params.time_s + params.omit_s


def interval_s(params: Iperf3Params) -> float:
    """How often the client reports: as asked, or ten times in a run, but not more than once a second."""
    return min(1.0, params.time_s / POINTS) if params.interval_s == "auto" else params.interval_s
