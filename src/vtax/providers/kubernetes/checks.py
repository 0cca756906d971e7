"""Everything that keeps pods from being created, found before any is: rights, machines, room on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, NodeShape
from vtax.providers.kubernetes.manifests import document
from vtax.providers.kubernetes.options import KubernetesOptions
from vtax.transport.kubectl import Described, Kubectl, last_line, objects
from vtax.units import format_bytes
from vtax.wording import listed

# Verb and resource of each right; `rbac.yaml` at the top of the repository gives them.
RIGHTS = (
    *((verb, "namespaces") for verb in ("create", "delete", "get", "list", "watch")),
    *((verb, "pods") for verb in ("create", "delete", "deletecollection", "get", "list", "watch")),
    *((verb, "pods/exec") for verb in ("create", "get")),
    *((verb, "secrets") for verb in ("create", "delete", "deletecollection", "list")),
    *((verb, "events") for verb in ("list", "watch")),
    ("list", "nodes"),
)
RBAC = "who runs the cluster can give them: `kubectl apply -f rbac.yaml`, a file of vtax's repository"
QUANTITY = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)([numkKMGTPE]i?|)")
FACTORS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
HARD = ("NoSchedule", "NoExecute")  # effects of taints


def quantity(text: str) -> float:
    """A number of Kubernetes: "500m", "4Gi". Raises ValueError."""
    found = QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"not a quantity: {text}")
    return float(found[1]) * {**FACTORS, **BINARY}[found[2]]


def missing_rights(cluster: Kubectl) -> list[str]:
    """What this user may not do, of what vtax needs: asked all at once. Raises CommandError, EnvironmentMissing."""
    said, _ = objects(cluster.must("create", "--filename=-", "--output=json", stdin=_reviews()).stdout)
    allowed = [bool(one.get("status", {}).get("allowed")) for one in said]
    return [f"{verb} {resource}" for (verb, resource), able in zip(RIGHTS, allowed, strict=True) if not able]


def _reviews() -> bytes:
    """One question for each right, which the API server answers and does not keep."""

    def review(verb: str, resource: str) -> dict[str, object]:
        name, _, part = resource.partition("/")
        asked = {"verb": verb, "resource": name, **({"subresource": part} if part else {})}
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {"creationTimestamp": None},
            "spec": {"resourceAttributes": asked},
        }

    return document([review(*one) for one in RIGHTS])


def problems(cluster: Kubectl, options: KubernetesOptions, shape: ClusterShape) -> Iterator[Problem]:
    """What is wrong with the cluster, for these nodes."""
    wanted = {
        name: [node for node in shape.nodes if options.nodes[node.name] == name]
        for name in dict.fromkeys(options.nodes.values())
    }
    found = list(machine_problems(cluster, wanted))
    yield from found
    if options.runtime_class and not found:
        said = cluster.read("get", "runtimeclass", options.runtime_class, "--output=name")
        if said.exit_code != 0:
            what = f"runtime class {options.runtime_class} cannot be used: {last_line(said)}"
            yield Problem.blocker(what, "choose one that `kubectl get runtimeclass` shows, or leave it out")


def machine_problems(cluster: Kubectl, wanted: Mapping[str, Sequence[NodeShape]]) -> Iterator[Problem]:
    """Rights that are missing, or what is wrong with these machines for pods of these shapes."""
    if missing := missing_rights(cluster):
        yield Problem.blocker(f"this user of the cluster may not {listed(missing)}", RBAC)
        return
    machines = {one["metadata"]["name"]: one for one in cluster.items("nodes")}
    if unknown := sorted(name for name in wanted if name not in machines):
        what = f"the cluster has no machine {listed(unknown)}: it has {listed(sorted(machines))}"
        yield Problem.blocker(what, "name machines that `kubectl get nodes` shows in `nodes`")
    for name, nodes in wanted.items():
        if name in machines:
            cpus, memory = sum(node.cpus for node in nodes), sum(node.memory_bytes for node in nodes)
            yield from _unfit(name, machines[name], cpus, memory)


def _unfit(name: str, machine: Described, cpus: int, memory_bytes: int) -> Iterator[Problem]:
    """Why a machine takes no pods, or not these."""
    state = {one["type"]: one for one in machine["status"].get("conditions", ())}.get("Ready", {})
    if state.get("status") != "True":
        why = state.get("message") or "it says nothing"
        yield Problem.blocker(f"machine {name} is not Ready: {why}", f"`kubectl describe node {name}` says more")
    if machine["spec"].get("unschedulable"):
        yield Problem.blocker(f"machine {name} is cordoned: it takes no new pods", f"`kubectl uncordon {name}`")
    elif taints := _taints(machine["spec"].get("taints", ())):
        what = f"machine {name} takes no pods of vtax: it has the taint {listed(taints)}"
        yield Problem.blocker(what, f"`kubectl taint nodes {name} {taints[0]}-`, or use another machine")
    has = machine["status"].get("allocatable", {})
    have_cpus, have_memory = quantity(has.get("cpu", "0")), quantity(has.get("memory", "0"))
    if have_cpus < cpus:
        what = f"machine {name} gives pods {have_cpus:g} CPUs, and the plan wants {cpus}"
        yield Problem.blocker(what, "set fewer `cpus` in [nodes]")
    if have_memory < memory_bytes:
        what = f"machine {name} gives pods {format_bytes(int(have_memory))}, and the plan wants "
        yield Problem.blocker(what + format_bytes(memory_bytes), "set less `memory` in [nodes]")


def _taints(found: Sequence[Mapping[str, str]]) -> list[str]:
    """Those that keep pods away; a cordoned machine, and one that is not ready, are named apart."""
    return [
        f"{one['key']}:{one['effect']}"
        for one in found
        if one.get("effect") in HARD and not one["key"].startswith("node.kubernetes.io/")
    ]
