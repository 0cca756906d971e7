"""A cluster between its trials: paused while those of other environments run, and resumed with its clocks set.

The time of a guest stands still while its machine is paused, so its clock falls behind. Containers have the clock of
this machine.
"""

from __future__ import annotations

import time

from vtax.errors import PauseError
from vtax.facts.counters import CLOCK
from vtax.model.trial import Pause
from vtax.providers.base import Cluster, Node
from vtax.transport.parallel import each

ANSWER_S = 20.0
SET_CLOCK = 'date +%s.%N && date -s "@$1" >/dev/null'


class Pauses:
    """The pauses of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.how = ""
        self.fallback = False  # whether that is slower than usual
        self.since: float | None = None  # on the monotonic clock; None while it runs
        self.pause_s = 0.0

    def pause(self) -> None:
        """Raises PauseError or CommandError; then some of its nodes may be paused."""
        if self.cluster.pausing is None:
            raise PauseError("its provider cannot pause clusters")
        began = time.monotonic()
        self.how = self.cluster.pausing.pause()
        self.fallback = bool(self.cluster.pausing.reason)
        self.since = time.monotonic()
        self.pause_s = self.since - began

    def resume(self) -> Pause | None:
        """End the pause; None where there was none. Raises PauseError or CommandError."""
        if self.since is None or self.cluster.pausing is None:
            return None
        lasted_s, began = time.monotonic() - self.since, time.monotonic()
        self.cluster.pausing.resume()
        behind = set_clocks(self.cluster) if self.cluster.capabilities.own_kernel else {}
        self.since = None
        resume_s = time.monotonic() - began
        return Pause(lasted_s=lasted_s, pause_s=self.pause_s, resume_s=resume_s, clock_behind_s=behind)


def set_clocks(cluster: Cluster) -> dict[str, float]:
    """Set the clock of every node to this machine's. Returns by how much each was behind.

    A node's new time is late by the delay of one command: its rate, which counts inside a trial, does not depend on it.
    Raises PauseError when a node does not answer.
    """

    def one(node: Node) -> float:
        asked = time.time()
        command = ("sh", "-c", SET_CLOCK, "sh", f"{asked:.6f}")
        result = node.transport.run(command, timeout_s=ANSWER_S)
        shown = result.stdout.strip()
        if result.exit_code != 0 or not CLOCK.fullmatch(shown):
            said = (result.stderr.strip() or shown).splitlines()
            raise PauseError(f"{node.name} does not answer after a pause: {said[-1] if said else 'no message'}")
        return asked + result.elapsed_s / 2 - float(shown)

    return dict(zip([node.name for node in cluster.nodes], each(one, cluster.nodes), strict=True))
