"""From an order to pods that run, or to the reason why they never will, as soon as the API server knows it."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Collection, Iterator
from contextlib import suppress

from vtax.errors import NotMatched, ProvisionError
from vtax.providers.kubernetes import states
from vtax.transport import process
from vtax.transport.kubectl import Described, Kubectl, last_line, objects

SCHEDULE_S = 5.0  # until what the scheduler says of a full machine is believed: pods may just be going
CHUNK = 2**16
WATCH_AGAIN_S = 1.0
LOADED = (
    "`vtax image export` writes the root file system as an archive; on each machine: "
    "ctr --namespace k8s.io images import FILE. Or name a `registry`"
)


def order(cluster: Kubectl, document: bytes, timeout_s: float) -> None:
    """Create all objects of a document. Raises ProvisionError: what is there already carries its label."""
    result = cluster.run("create", "--filename=-", stdin=document, timeout_s=timeout_s)
    if result.exit_code != 0 or result.timed_out:
        raise ProvisionError(
            f"the cluster does not take what vtax creates: {last_line(result)}",
            detail=result.stderr.strip()[-1500:],
            remedy="a policy of the cluster may refuse such pods; `kubectl get events` says more",
        )


class Watched:
    """The pods of a namespace, as one watch of them reports, from their order on."""

    def __init__(self, cluster: Kubectl, space: str, names: Collection[str]) -> None:
        self.cluster, self.space, self.names = cluster, space, names
        self.pods: dict[str, Described] = {}
        self.full: dict[str, float] = {}  # since when the scheduler finds no place

    def until_running(self, deadline: float) -> dict[str, Described]:
        """All pods, when their containers run: whether they are ready is asked inside, sooner than the cluster knows
        it. Raises ProvisionError."""
        while time.monotonic() < deadline:
            for pod in self._reported(deadline):
                if pod is not None:
                    self.pods[pod["metadata"]["name"]] = pod
                self._refuse_hopeless()
                if all(name in self.pods and states.running(self.pods[name]) for name in self.names):
                    return {name: self.pods[name] for name in self.names}
            time.sleep(min(WATCH_AGAIN_S, max(0.0, deadline - time.monotonic())))  # the API server closed the watch
        waiting = [name for name in self.names if not states.running(self.pods.get(name, {}))]
        raise ProvisionError(
            f"pods did not run in time: {', '.join(waiting)}",
            detail="; ".join(f"{name}: {_phase(self.pods.get(name, {}))}" for name in waiting),
            remedy="`kubectl describe pod` and `kubectl get events` say more while they are there",
        )

    def _reported(self, deadline: float) -> Iterator[Described | None]:
        """What one watch says, and nothing from time to time."""
        words = self.cluster.words("get", "pods", f"--namespace={self.space}", "--watch", "--output=json")
        with process.in_memory() as said:
            running = process.talk(words, said)
            assert running.stdin is not None and running.stdout is not None
            waiting, text = select.poll(), ""
            waiting.register(running.stdout.fileno(), select.POLLIN)
            try:
                while (left_s := deadline - time.monotonic()) > 0:
                    if not waiting.poll(1000 * min(left_s, 1.0)):
                        yield None
                        continue
                    chunk = os.read(running.stdout.fileno(), CHUNK)
                    if not chunk:
                        return
                    found, text = objects(text + chunk.decode(errors="replace"))
                    yield from found
            finally:
                with suppress(OSError):
                    running.stdin.close()
                process.end(running)
                running.stdout.close()

    def _refuse_hopeless(self) -> None:
        for name, pod in self.pods.items():
            if why := states.ended(pod):
                remedy = LOADED if "image" in why else "`kubectl get events` says more"
                raise ProvisionError(f"pod {name} does not start: {why}", remedy=remedy)
            if why := states.unschedulable(pod):
                if time.monotonic() - self.full.setdefault(name, time.monotonic()) > SCHEDULE_S:
                    raise ProvisionError(
                        f"pod {name} cannot be scheduled: {why}",
                        remedy="free its machine, set less in [nodes], or name another machine; environments of pods "
                        'have room one after the other with interleave = "cell"',
                    )
            else:
                self.full.pop(name, None)


def _phase(pod: Described) -> str:
    return str(pod.get("status", {}).get("phase", "the API server has not reported it"))


def refuse_misplaced(pods: dict[str, Described], planned: dict[str, str]) -> None:
    """Raise NotMatched for pods that are not where the study has them."""
    wrong = [
        f"{name} is on {pod['spec'].get('nodeName')}, and the study says {planned[name]}"
        for name, pod in pods.items()
        if pod["spec"].get("nodeName") != planned[name]
    ]
    if wrong:
        raise NotMatched("pods are not on the machines of the study", detail="\n".join(wrong), remedy="report this")
