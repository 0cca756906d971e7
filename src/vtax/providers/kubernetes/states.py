"""What the API says of pods: that they run, or why they never will."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vtax.transport.kubectl import Described

PULL = "its image cannot be pulled"
# A container that waits for one of these does not start by waiting longer.
HOPELESS = {
    "ErrImagePull": PULL,
    "ImagePullBackOff": PULL,
    "ErrImageNeverPull": "its image is not on the machine",
    "InvalidImageName": "its image has no valid name",
    "CreateContainerConfigError": "its container cannot be configured",
    "CreateContainerError": "its container cannot be created",
    "RunContainerError": "its container cannot be started",
    "CrashLoopBackOff": "its container ends at once",
}


def conditions(pod: Described) -> dict[str, Described]:
    return {one["type"]: one for one in pod.get("status", {}).get("conditions", ())}


def running(pod: Described) -> bool:
    """Whether its container runs, at an address that is known."""
    return bool(pod.get("status", {}).get("podIP")) and any("running" in state for state in _states(pod))


def unschedulable(pod: Described) -> str:
    """Why the scheduler finds no place for it; "" when it does, or has not looked yet."""
    one = conditions(pod).get("PodScheduled", {})
    if one.get("status") == "False" and one.get("reason") in ("Unschedulable", "SchedulerError"):
        return str(one.get("message") or "no reason was given")
    return ""


def ended(pod: Described) -> str:
    """Why its container does not start, or has ended; "" while it may run."""
    status = pod.get("status", {})
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return _deleted(pod)
    if status.get("phase") in ("Failed", "Succeeded"):
        why = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
        return f"it ended ({why or _last(pod) or status['phase']})"
    for state in _states(pod):
        waiting = state.get("waiting", {})
        if waiting.get("reason") in HOPELESS:
            why = ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))
            return f"{HOPELESS[waiting['reason']]} ({why})"
        if "terminated" in state:
            return f"its container ended ({_terminated(state['terminated'])})"
    return ""


def _deleted(pod: Described) -> str:
    """Whether it was evicted: the API says so in a condition, where the deletion was a part of a disruption."""
    why = conditions(pod).get("DisruptionTarget", {})
    if why.get("status") == "True":
        return f"it was evicted ({': '.join(filter(None, (why.get('reason'), why.get('message'))))})"
    return "it is being deleted, and not by this campaign"


def _states(pod: Described) -> Iterator[Described]:
    for one in pod.get("status", {}).get("containerStatuses", ()):
        yield one.get("state", {})


def _last(pod: Described) -> str:
    return "; ".join(_terminated(state["terminated"]) for state in _states(pod) if "terminated" in state)


def _terminated(state: Described) -> str:
    said = (state.get("reason"), state.get("message"), f"exit code {state.get('exitCode')}")
    return ", ".join(str(one) for one in said if one)


def facts(pod: Described, planned: str) -> dict[str, Any]:
    """What is recorded of a pod; `planned` is its machine in the study."""
    status, spec = pod.get("status", {}), pod.get("spec", {})
    restarts = sum(int(one.get("restartCount", 0)) for one in status.get("containerStatuses", ()))
    return {
        "name": pod["metadata"]["name"],
        "namespace": pod["metadata"].get("namespace", ""),
        "uid": pod["metadata"].get("uid", ""),
        "machine": spec.get("nodeName", ""),
        "planned": planned,
        "qos": status.get("qosClass", ""),
        "runtime_class": spec.get("runtimeClassName", ""),
        "restarts": restarts,
    }
