"""C11, R16, T12: campaigns on a Kubernetes cluster: how pods are limited, what became of them, and whether machines are
what the scheduler says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.evidence.campaign import Evidence, observed, observed_in, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import Status
from vtax.units import format_bytes
from vtax.wording import plural

LOST = ("pod ", "the API server ")  # how what ends a trial from outside begins
KIBIBYTE = 2**10
MEMORY = 0.01  # by which what a machine says may differ from what its kubelet reported


def with_pods(evidence: Evidence) -> str:
    """Why a row about pods does not apply; "" when it does."""
    return "" if environments(evidence) else "no node is a pod"


def environments(evidence: Evidence) -> list[str]:
    return [name for name in evidence.environments if any("pod" in values for _, values in observed(evidence, name))]


def with_machines(evidence: Evidence) -> str:
    """Why a row about machines of a cluster does not apply; "" when it does."""
    known = any("kubernetes" in facts for cells in evidence.identities.values() for _, facts in cells)
    return "" if known else "no machine is one of a Kubernetes cluster"


@row(
    "C11",
    Severity.WARNING,
    "pods are not Guaranteed, or have no CPUs of their own",
    short="pods without CPUs of their own",
    why="a pod that is not Guaranteed may be throttled or evicted for others, and without the static CPU policy its "
    "CPUs are any of the machine's, which other pods use too: a quota then stops it in the middle of a period",
    remedy='set cpuManagerPolicy "static" for the kubelets, whole `cpus` in [nodes], qos = "guaranteed"; '
    'cpu_limit = "cpuset" refuses clusters without it',
    source="the class that the API reports of each pod, and the CPUs that it may use; C02 has the throttled periods of "
    "every trial",
    needs=Needs("what Kubernetes says of its pods", origin=Origin.RUN),
    applies=with_pods,
)
def guaranteed(evidence: Evidence) -> Iterator[Result]:
    """C11: the class of pods, and how their CPUs are limited."""
    for environment in environments(evidence):
        pods = [values["pod"] for _, values in observed(evidence, environment) if "pod" in values]
        classes = sorted({str(pod.get("qos") or "unknown") for pod in pods})
        limits = sorted({str(pod.get("cpu_limit") or "unknown") for pod in pods})
        wrong = []
        if classes != ["Guaranteed"]:
            wrong.append(f"of class {shown(classes)}")
        if limits != ["cpuset"]:
            wrong.append(f"limited by {shown(limits)}, without exclusive CPUs")
        if wrong:
            yield Failed(f"the pods of {environment} are {' and '.join(wrong)}", environment)
        else:
            yield f"{environment}: {len(pods)} pods, Guaranteed, with exclusive CPUs"


@row(
    "R16",
    Severity.WARNING,
    "pods were evicted, deleted or restarted, or are not where the study has them",
    short="pods that were lost or misplaced",
    why="a pod that is replaced in a trial is another node, a restarted one has lost its files, and two pods on one "
    "machine share what the study has as the machines of two nodes",
    remedy="keep other loads off these machines for the campaign (taints, priorities), and look at `kubectl get "
    "events`; name another machine for each node in `nodes`, unless they are to share one",
    source="the machine and the restarts of every pod when its cluster was made, and why trials ended",
    needs=Needs("what Kubernetes says of its pods", origin=Origin.RUN),
    applies=with_pods,
)
def as_planned(evidence: Evidence) -> Iterator[Result]:
    """R16: pods that were lost, restarted or misplaced."""
    for environment in environments(evidence):
        wrong = list(_misplaced(evidence, environment))
        lost = [
            trial.failure.partition("\n")[0]
            for trial in evidence.trials
            if trial.environment == environment and trial.status is not Status.OK and trial.failure.startswith(LOST)
        ]
        if lost:
            wrong.append(f"{len(lost)} {plural(len(lost), 'trial')} ended from outside, such as: {lost[0]}")
        yield from (Failed(f"{environment}: {one}", environment) for one in dict.fromkeys(wrong))
        if not wrong:
            cells = sum(cell.environment == environment for cell in evidence.provisioned)
            yield f"{environment}: all pods of {cells} {plural(cells, 'cluster')} where the study has them, none lost"


def _misplaced(evidence: Evidence, environment: str) -> Iterator[str]:
    for cell in evidence.provisioned:
        if cell.environment != environment:
            continue
        pods = {node: values["pod"] for node, values in observed_in(cell) if "pod" in values}
        for node, pod in pods.items():
            if pod.get("machine") != pod.get("planned"):
                yield f"{node} was on {pod.get('machine')}, planned is {pod.get('planned')}"
            if pod.get("restarts"):
                yield f"the container of {node} was restarted"
        planned = len({pod.get("planned") for pod in pods.values()})
        seen = len({pod.get("machine") for pod in pods.values()})
        if seen < planned:
            yield f"{len(pods)} pods were on {seen} {plural(seen, 'machine')}, planned are {planned}"


@row(
    "T12",
    Severity.WARNING,
    "a machine is not what the scheduler of Kubernetes says of it",
    short="a machine unlike the scheduler's word",
    why="pods were then placed by what a machine was before, or the report names another machine than was measured",
    remedy="restart the kubelet of that machine, so that it reports what is there; compare `kubectl describe node` "
    "with `lscpu`, `free` and `uname -r` on it",
    source="the status of each machine in the API against what its nodes see of it",
    needs=Needs("what the API says of each machine", origin=Origin.RUN),
    applies=with_machines,
)
def as_scheduled(evidence: Evidence) -> Iterator[Result]:
    """T12: the API's word against what was seen on the machine."""
    for machine, cells in evidence.identities.items():
        known = [facts for _, facts in cells if "kubernetes" in facts]
        wrong = dict.fromkeys(said for facts in known for said in _differences(facts))
        yield from (Failed(f"{machine}: {said}") for said in wrong)
        if known and not wrong:
            if not known[0].get("boot_id"):
                yield Undecided(f"{machine}: not recorded: what it says of itself")
                continue
            told = known[0]["kubernetes"]
            yield f"{machine}: machine {told.get('node')}, kernel {told.get('kernel')}, {told.get('cpus')} CPUs"


def _differences(facts: Mapping[str, Any]) -> Iterator[str]:
    told = facts["kubernetes"]
    for name, word in (("boot_id", "boot"), ("kernel", "kernel")):
        if told.get(name) and facts.get(name) and told[name] != facts[name]:
            yield f"the API says {word} {told[name]}, and the machine {facts[name]}"
    cpus, usable = str(told.get("cpus", "")), len(facts.get("cpus_usable", ()))
    if cpus.isdigit() and usable and int(cpus) != usable:
        yield f"the API says {cpus} CPUs, and the machine has {usable}"
    memory, total = str(told.get("memory", "")).removesuffix("Ki"), float(facts.get("memory_total_bytes", 0))
    if memory.isdigit() and total and abs(int(memory) * KIBIBYTE - total) > MEMORY * total:
        given = format_bytes(int(memory) * KIBIBYTE)
        yield f"the API says {given} of memory, and the machine has {format_bytes(int(total))}"
