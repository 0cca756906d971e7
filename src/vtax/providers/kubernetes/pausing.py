"""Pausing pods without rights on their machines: all processes in a pod are stopped, and continued, by signals.

A control group would be frozen on the machine itself. The signals come from a command in the pod, and reach all of its
processes but the first one, which only waits for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vtax.errors import PauseError
from vtax.providers.kubernetes.manifests import CONTAINER
from vtax.transport.kubectl import Kubectl, last_line
from vtax.transport.parallel import each


@dataclass
class PodsPausing:
    """The pods of one cluster of nodes."""

    cluster: Kubectl
    space: str
    pods: Sequence[str]
    reason: str = ""

    def pause(self) -> str:
        self._signal("STOP")
        return "SIGSTOP to all processes of the pods"

    def resume(self) -> None:
        self._signal("CONT")

    def _signal(self, name: str) -> None:
        def one(pod: str) -> None:
            where = (f"--namespace={self.space}", pod, f"--container={CONTAINER}")
            result = self.cluster.run("exec", "--quiet", *where, "--", "/bin/sh", "-c", f"kill -{name} -1")
            if result.exit_code != 0:
                raise PauseError(f"pod {pod} did not take SIG{name}: {last_line(result)}", remedy="is it still there?")

        each(one, self.pods)
