"""What vtax asks Kubernetes for: a namespace, a Secret, and one pod a node. Pure.

A pod is limited as the study says: its requests are its limits, in whole CPUs, so that its class is Guaranteed. It has
the capabilities and the seccomp profile that containers have by default, cannot gain others, and no account.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vtax.cluster.seed import SSH
from vtax.model.nodes import NodeShape
from vtax.providers.base import LABEL, RUNTIME_LABEL
from vtax.providers.kubernetes.options import KubernetesOptions

CONTAINER = "node"
NODE_LABEL = "vtax.node"
HOST_LABEL = "vtax.host"  # an annotation: the machine whose vtax made it
KEYS_AT = "/run/vtax-seed"
SEED = "seed.tar"
# The files of the node, then the first process of every container node.
START = f'tar -C / -xf {KEYS_AT}/{SEED} && mkdir -p "$1" && exec /usr/local/bin/node-init'
GRACE_S = 1
Object = Mapping[str, Any]


class Owner(NamedTuple):
    """Whose something is: the label of its clusters, and the run-time directory and the machine of its vtax."""

    campaign: str
    runtime: str
    host: str

    def metadata(self, name: str, namespace: str = "", node: str = "") -> Object:
        labels = {LABEL: self.campaign, **({NODE_LABEL: node} if node else {})}
        about = {RUNTIME_LABEL: self.runtime, HOST_LABEL: self.host}
        return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels, "annotations": about}


def namespace(owner: Owner, name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": owner.metadata(name)}


def secret(owner: Owner, space: str, seeds: Mapping[str, bytes]) -> Object:
    """The files of all nodes: their keys are in them."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": owner.metadata("seeds", space),
        "data": {f"{node}.tar": base64.b64encode(content).decode() for node, content in seeds.items()},
    }


def pod(
    owner: Owner, space: str, node: NodeShape, options: KubernetesOptions, image: str, port: int, shared_path: str
) -> Object:
    """One node, on the machine that the study names for it; it is ready when its SSH server answers."""
    container = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent" if options.registry else "Never",
        "command": ["sh", "-ec", START, "sh", shared_path],
        "resources": resources(node, options),
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 120},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "seed", "mountPath": KEYS_AT, "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    spec = {
        "restartPolicy": "Never",
        "affinity": on(options.nodes[node.name]),
        "hostname": node.name,
        "hostNetwork": options.host_network,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_S,
        **({"runtimeClassName": options.runtime_class} if options.runtime_class else {}),
        "containers": [container],
        "volumes": [
            {
                "name": "seed",
                "secret": {
                    "secretName": "seeds",
                    "defaultMode": 0o400,
                    "items": [{"key": f"{node.name}.tar", "path": SEED}],
                },
            },
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(options.shm)}},
        ],
    }
    if options.host_network:
        del spec["hostname"]  # the machine's
    return {"apiVersion": "v1", "kind": "Pod", "metadata": owner.metadata(node.name, space, node.name), "spec": spec}


def on(machine: str) -> Object:
    """What one machine of the cluster meets alone: the scheduler still decides whether there is room."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [machine]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def resources(node: NodeShape, options: KubernetesOptions) -> Object:
    """Limits in whole CPUs, and requests that are the same, or half of them."""
    limits = {"cpu": f"{node.cpus}", "memory": f"{node.memory_bytes}"}
    if options.qos == "guaranteed":
        return {"limits": limits, "requests": limits}
    return {"limits": limits, "requests": {"cpu": f"{500 * node.cpus}m", "memory": f"{node.memory_bytes // 2}"}}


def document(objects: Iterable[Object]) -> bytes:
    """All of them, for `kubectl create -f -`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()


def ssh_port(options: KubernetesOptions, chosen: int) -> int:
    """Where the nodes' SSH servers listen: on the machines' own network not where the machines' do."""
    return chosen if options.host_network else SSH
