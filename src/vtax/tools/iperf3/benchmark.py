"""iperf3: what arrives of a TCP or UDP stream between two nodes, from the client's JSON.

The receiver's side is reported (`end.sum_received`): the sender also counts what is still in buffers and, with UDP,
what was lost. `end.sum` of a UDP run mixes the sender's bytes with the receiver's jitter and loss, and every
`lost_percent` divides by the sender's packets, of another moment, so neither is read. 3.12 and 3.18 agree in this.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, refuse
from vtax.tools.excerpts import Piece, json_constant, json_value
from vtax.tools.fields import Auto, Bytes

THROUGHPUT = Metric(
    name="throughput",
    unit="bit/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="payload that reached the receiver a second, all streams together",
)
RETRANSMITS = Metric(name="retransmits", unit="1", kind=Kind.COUNT, meaning="TCP segments that the sender sent again")
JITTER = Metric(name="jitter", unit="s", kind=Kind.COST, meaning="UDP: smoothed change of the transit time (RFC 1889)")
LOST = Metric(
    name="lost_fraction", unit="1", kind=Kind.PROPORTION, meaning="UDP: packets lost, of those the receiver knows of"
)
LARGEST = 1e300  # JSON knows whole numbers that are too large for any float
SHORTEST = 0.1  # of the longest interval: a last one of a few ms has an absurd rate
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
    package = "iperf3"
    requires = ("iperf3",)
    scopes = (Scope.PAIRS,)
    default_scopes = (Scope.PAIRS,)
    metrics = (THROUGHPUT, RETRANSMITS, JITTER, LOST)
    params = Iperf3Params

    def resolve(self, params: Iperf3Params, target: Target) -> Iperf3Params:
        return params.model_copy(update={"interval_s": interval_s(params)})

    def steps(self, params: Iperf3Params, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
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

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        run = Run(record)
        protocol = str(run.at("start", "test_start", "protocol")).lower()
        if protocol not in ("tcp", "udp"):
            run.refuse(f"a {protocol} test", "start", "test_start", "protocol")
        if run.at("start", "test_start").get("bidir", 0):
            run.refuse("a test in both directions at once", "start", "test_start", "bidir")
        direction = "reverse" if run.number("start", "test_start", "reverse") else "forward"
        client, server = record.nodes
        labels = {"client": client, "server": server, "protocol": protocol, "direction": direction}
        if run.number("end", "sum_received", "bytes") <= 0:
            run.refuse("nothing arrived", "end", "sum_received", "bytes")
        values = {THROUGHPUT: run.positive("end", "sum_received", "bits_per_second")}
        if protocol == "tcp":
            values[RETRANSMITS] = run.number("end", "sum_sent", "retransmits")
        else:
            packets = run.number("end", "sum_received", "packets")
            lost = run.number("end", "sum_received", "lost_packets")
            if not 0 <= lost <= packets or packets == 0:
                run.refuse(f"{lost:g} of {packets:g} packets lost", "end", "sum_received", "packets")
            values |= {JITTER: run.positive("end", "sum_received", "jitter_ms") / 1000, LOST: lost / packets}
        return tuple(Measurement.of(record, metric, value, labels) for metric, value in values.items())

    def estimate_s(self, params: Iperf3Params, target: Target) -> float:
        return params.time_s + params.omit_s + 1.0

    def clocked_s(self, params: Iperf3Params, target: Target) -> float:
        return params.time_s + params.omit_s


def interval_s(params: Iperf3Params) -> float:
    """How often the client reports: as asked, or ten times in a run, but not more than once a second."""
    return min(1.0, params.time_s / POINTS) if params.interval_s == "auto" else params.interval_s


def series(record: TrialRecord) -> tuple[tuple[float, float, float], ...]:
    """(start s, end s, bit/s) of every counted interval of the client: what it sent or, in reverse, received."""
    run = Run(record)
    rows = []
    for index, interval in enumerate(run.at("intervals")):
        start_s, end_s, rate = (run.number("intervals", index, "sum", k) for k in ("start", "end", "bits_per_second"))
        if not interval["sum"].get("omitted", False):
            rows.append((start_s, end_s, rate))
    longest_s = max((end_s - start_s for start_s, end_s, _ in rows), default=0.0)
    return tuple(row for row in rows if row[1] - row[0] >= SHORTEST * longest_s > 0)


class Run:
    """The client's JSON of one finished run. Everything that is not as it should be raises ParseError."""

    def __init__(self, record: TrialRecord) -> None:
        self.record, self.text = record, record.output()
        try:
            self.document: Any = json.loads(self.text, parse_constant=self._not_finite)
        except json.JSONDecodeError as error:
            where = Piece.of(self.text, error.pos) if error.pos < len(self.text) else self.text
            raise refuse(record, f"not one JSON document: {error.msg}", where) from error
        except (ValueError, RecursionError) as error:  # the latter from brackets nested by the thousand
            raise refuse(record, f"not one JSON document: {error}", self.text) from error
        if not isinstance(self.document, dict):
            self.refuse("not a JSON object")
        if "error" in self.document:
            self.refuse(f"iperf3 says: {self.document['error']}", "error")

    def refuse(self, what: str, *path: str | int) -> NoReturn:
        """For what stands under `path`, if it is told."""
        raise refuse(self.record, what, json_value(self.text, path) if path else self.text)

    def _not_finite(self, constant: str) -> NoReturn:
        raise refuse(self.record, f"{constant} is not a finite number", json_constant(self.text))

    def at(self, *path: str | int) -> Any:
        """The value under `path`."""
        value = self.document
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                self.refuse(f"no {'.'.join(map(str, path))}")
        return value

    def number(self, *path: str | int) -> float:
        """The number under `path`, not negative."""
        value = self.at(*path)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
            self.refuse(f"{'.'.join(map(str, path))} is {value!r}", *path)
        return float(value)

    def positive(self, *path: str | int) -> float:
        """The number under `path`, above zero."""
        value = self.number(*path)
        if value == 0:
            self.refuse(f"{'.'.join(map(str, path))} is 0", *path)
        return value
