"""The services of a trial: started in order, each ready before the next, stopped in reverse, judged by their ends."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing
from vtax.model.nodes import Target
from vtax.model.plan import Ready, Service, Step
from vtax.model.trial import StepRecord
from vtax.providers.base import Cluster
from vtax.running.outputs import called, names_of, record_of, tail
from vtax.tools.patterns import compile_pattern
from vtax.transport.base import Background, Transport

POLL_S = 0.05
ASK_S = 20.0
SLOWLY_S = 2.0  # how long a node waits for a port before vtax looks whether the service still runs
LINE_BYTES = 64 * 2**20  # of a service's output in which its line is looked for
# Listening sockets are listed with their port in hexadecimal digits and the state 0A; nothing connects to them.
PORT = """
port=$(printf '%04X' "$1")
tries=$2
while ! grep -Eqs "^ *[0-9]+: [0-9A-F]+:$port [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || exit 1
  sleep 0.05
done
"""


@dataclass(frozen=True)
class Started:
    """A service that was started on one node."""

    number: int
    step: Step
    node: str
    service: Service
    running: Background

    def lost(self) -> str:
        """Why what it serves cannot go on; "" while it is as it must be, or has ended as the study allows."""
        if reason := self.running.too_long():
            return f"{called(self.step)} on {self.node}: {reason}"
        code = self.running.exit_code()
        return "" if code is None or self.may_end(code) else f"{called(self.step)} on {self.node} has ended"

    def may_end(self, code: int) -> bool:
        """Whether it may end by itself like this: only with an exit code that the study names."""
        return self.service.exits is not None and code in self.service.exits


class Services:
    """The services of one trial. Methods return why something is not as it must be; "" when it is."""

    def __init__(self, cluster: Cluster, target: Target, place: Path) -> None:
        self.cluster, self.target, self.place = cluster, target, place
        self.started: list[Started] = []

    def start(self, number: int, step: Step, service: Service, transport: Transport) -> str:
        """Start a service and wait until it is ready."""
        node, ready = step.nodes[0], service.ready
        if ready is not None and ready.port is not None and self._listens(transport, ready.port, tries=1):
            return (
                f"{called(step)} on {node}: port {ready.port} is taken by another program"
                "\nchoose another with `port` in the entry, or stop that program"
            )
        out, err = (self.place / name for name in names_of(f"{number}", node))
        running = transport.start(
            step.argv,
            timeout_s=step.timeout_s,
            directory=self.target.directory,
            stdout=out,
            stderr=err,
            control=True,
        )
        self.started.append(Started(number, step, node, service, running))
        return "" if ready is None else self._awaited(self.started[-1], ready, transport)

    def _awaited(self, one: Started, ready: Ready, transport: Transport) -> str:
        limit_s = ready.timeout_s * self.cluster.timeout_factor
        deadline = time.monotonic() + limit_s
        lacks = ""
        while (left_s := deadline - time.monotonic()) > 0:
            if reason := one.running.too_long():
                return f"{called(one.step)} on {one.node}: {reason}"
            if reason := self.gone(but=one):
                return f"{called(one.step)} on {one.node} is not waited for any longer: {reason}"
            ended = one.running.ended()  # asked first: what it printed last counts
            lacks = self._lacks(one, ready, transport, left_s)
            if not lacks:
                return ""
            if ended:
                return f"{called(one.step)} on {one.node} ended before it was ready: {lacks}{self._tail(one)}"
            time.sleep(POLL_S)
        return f"{called(one.step)} on {one.node} was not ready within {limit_s:g} s: {lacks}{self._tail(one)}"

    def _lacks(self, one: Started, ready: Ready, transport: Transport, left_s: float) -> str:
        """What is missing for it to be ready; "" when nothing is."""
        if ready.port is not None:
            tries = max(1, round(min(SLOWLY_S, left_s) / POLL_S))
            return "" if self._listens(transport, ready.port, tries) else f"nothing listens on port {ready.port}"
        if ready.line is not None:
            pattern = compile_pattern(ready.line)
            printed = (self.place / name for name in names_of(f"{one.number}", one.node))
            found = any(pattern.found(_text(path)) for path in printed)
            return "" if found else f"no line of its output matches {ready.line!r}"
        assert ready.command is not None
        asked = transport.run(ready.command, timeout_s=max(1.0, min(ASK_S, left_s)), directory=self.target.directory)
        said = (asked.stderr.strip() or asked.stdout.strip()).splitlines()
        why = f", saying {said[-1][:200]!r}" if said else ""
        return "" if asked.exit_code == 0 else f"its `ready` command ended with exit code {asked.exit_code}{why}"

    def _listens(self, transport: Transport, port: int, tries: int) -> bool:
        """Whether a program on the node listens on a port, now or soon."""
        asked = transport.run(("sh", "-s", f"{port}", f"{tries}"), timeout_s=ASK_S, stdin=PORT)
        return asked.exit_code == 0

    def gone(self, but: Started | None = None) -> str:
        """Why what they serve has to end now; "" while all are as they must be. `stop` says more about it."""
        return next((reason for one in self.started if one is not but and (reason := one.lost())), "")

    def stop(self) -> tuple[list[StepRecord], str]:
        """Stop all of them, the last one first. Returns their records, and why one did not last or end as it should.

        One that has ended by itself may do that only with an exit code that the study names.
        """
        records, failure = [], ""
        while self.started:
            one = self.started.pop()
            number = signal.Signals[one.service.stop].value
            try:
                ended_itself = one.running.ended()
                result = one.running.finish(number, one.service.stop_s * self.cluster.timeout_factor)
            except (CommandError, EnvironmentMissing) as error:
                failure = failure or str(error)
                continue
            records.append(record_of(f"{one.number}", one.number, one.node, one.step, result, {}, self.place))
            code = result.exit_code
            good = (0, 128 + number, -number) if one.service.exits is None else one.service.exits
            if result.stopped:
                how = f"was ended: {result.stopped}"
            elif result.timed_out and 128 + signal.SIGKILL not in good:
                how = f"ignored {one.service.stop} for {one.service.stop_s:g} s and was killed"
            elif ended_itself and not one.may_end(code):
                how = f"ended while it was needed, with exit code {code}"
            elif not result.timed_out and code not in good:
                how = f"ended with exit code {code} when it was stopped"
            else:
                continue
            failure = failure or f"{called(one.step)} on {one.node} {how}{self._tail(one)}"
        return records, failure

    def _tail(self, one: Started) -> str:
        return tail(*(self.place / name for name in names_of(f"{one.number}", one.node)))


def _text(path: Path) -> str:
    with path.open("rb") as output:
        return output.read(LINE_BYTES).decode(errors="replace")
