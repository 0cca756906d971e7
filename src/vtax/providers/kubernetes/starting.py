"""From an order to pods that run, or to the reason why they never will, as soon as the API server knows it."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from vtax.errors import NotMatched, ProvisionError
from vtax.providers.kubernetes import states
from vtax.transport import process
from vtax.transport.kubectl import Described, Kubectl, last_line, objects

SCHEDULE_S = 5.0  # until what the scheduler says of a full machine is believed: pods may just be going
CHUNK = 2**16
WATCH_AGAIN_S = 1.0
PULLED = (
    "the machines must reach the registry, with `registry_login` where it wants a login; `kubectl get events` says more"
)
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


class Watch:
    """What one `kubectl get --watch` reports; begun again a moment after the API server closed it."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.text, self.again = words, "", 0.0
        self.running: process.Popen | None = None

    def begin(self) -> int | None:
        """Where it is read from; None while it waits for its next beginning."""
        if self.running is None and time.monotonic() >= self.again:
            with process.in_memory() as said:
                self.running = process.talk(self.words, said)
        if self.running is None or self.running.stdout is None:
            return None
        return self.running.stdout.fileno()

    def read(self) -> list[Described]:
        """The whole objects that came by now, where something came."""
        assert self.running is not None and self.running.stdout is not None
        chunk = os.read(self.running.stdout.fileno(), CHUNK)
        if not chunk:
            self.end()
        found, self.text = objects(self.text + chunk.decode(errors="replace"))
        return found

    def end(self) -> None:
        if self.running is None:
            return
        running, self.running = self.running, None
        self.text, self.again = "", time.monotonic() + WATCH_AGAIN_S
        assert running.stdin is not None and running.stdout is not None
        with suppress(OSError):
            running.stdin.close()
        process.end(running)
        running.stdout.close()


class Watched:
    """The pods of a namespace, from their order on."""

    def __init__(self, cluster: Kubectl, space: str, names: Collection[str]) -> None:
        self.cluster, self.space, self.names = cluster, space, names
        self.pods: dict[str, Described] = {}
        self.started: set[str] = set()  # by what their kubelet says at once: their status follows within a second
        self.full: dict[str, float] = {}  # since when the scheduler finds no place

    def until_started(self, deadline: float) -> dict[str, Described]:
        """All pods, when their containers run. Whether they are ready is asked inside, sooner than the cluster knows
        it. Raises ProvisionError."""
        kinds = (("pods",), ("events", "--field-selector=reason=Started,involvedObject.kind=Pod"))
        where = (f"--namespace={self.space}", "--watch", "--output=json")
        watches = [Watch(self.cluster.words("get", *kind, *where)) for kind in kinds]
        try:
            while (left_s := deadline - time.monotonic()) > 0:
                for one in _reported(watches, min(left_s, WATCH_AGAIN_S)):
                    self._note(one)
                self._refuse_hopeless()
                if all(map(self._runs, self.names)):
                    return {name: self.pods[name] for name in self.names}
        finally:
            for watch in watches:
                watch.end()
        waiting = [name for name in self.names if not self._runs(name)]
        raise ProvisionError(
            f"pods did not run in time: {', '.join(waiting)}",
            detail="; ".join(f"{name}: {_phase(self.pods.get(name, {}))}" for name in waiting),
            remedy="`kubectl describe pod` and `kubectl get events` say more while they are there",
        )

    def _note(self, one: Described) -> None:
        if "involvedObject" in one:
            self.started.add(one["involvedObject"]["name"])
        else:
            self.pods[one["metadata"]["name"]] = one

    def _runs(self, name: str) -> bool:
        pod = self.pods.get(name, {})
        return states.running(pod) or (name in self.started and bool(pod.get("spec", {}).get("nodeName")))

    def _refuse_hopeless(self) -> None:
        for name, pod in self.pods.items():
            if why := states.ended(pod):
                raise ProvisionError(f"pod {name} does not start: {why}", remedy=_remedy(why))
            if why := states.unschedulable(pod):
                if time.monotonic() - self.full.setdefault(name, time.monotonic()) > SCHEDULE_S:
                    raise ProvisionError(
                        f"pod {name} cannot be scheduled: {why}",
                        remedy="free its machine, set less in [nodes], or name another machine; environments of pods "
                        'have room one after the other with interleave = "cell"',
                    )
            else:
                self.full.pop(name, None)


def _reported(watches: Sequence[Watch], within_s: float) -> list[Described]:
    """What any of the watches says, as soon as one does; nothing after that time."""
    waiting = select.poll()
    begun = {place: watch for watch in watches if (place := watch.begin()) is not None}
    for descriptor in begun:
        waiting.register(descriptor, select.POLLIN)
    return [one for descriptor, _ in waiting.poll(1000 * within_s) for one in begun[descriptor].read()]


def _phase(pod: Described) -> str:
    return str(pod.get("status", {}).get("phase", "the API server has not reported it"))


def _remedy(why: str) -> str:
    if states.PULL in why:
        return PULLED
    return LOADED if "image" in why else "`kubectl get events` says more"


def refuse_misplaced(pods: dict[str, Described], planned: dict[str, str]) -> None:
    """Raise NotMatched for pods that are not where the study has them."""
    wrong = [
        f"{name} is on {pod['spec'].get('nodeName')}, and the study says {planned[name]}"
        for name, pod in pods.items()
        if pod["spec"].get("nodeName") != planned[name]
    ]
    if wrong:
        raise NotMatched("pods are not on the machines of the study", detail="\n".join(wrong), remedy="report this")
