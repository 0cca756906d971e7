"""What vtax asks Kubernetes for: a namespace, a Secret, and one pod a node. Pure.

A pod is limited as the study says: its requests are its limits, in whole CPUs, so that its class is Guaranteed. It has
the capabilities and the seccomp profile that containers have by default, cannot gain others, and no account.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
# The address of the node, its files, then the first process of every container node.
ADDRESS = "VTAX_ADDRESS"
START = (
    f'echo "${ADDRESS}" >/run/vtax-address && tar -C / -xf {KEYS_AT}/{SEED} && mkdir -p "$1" && '
    "exec /usr/local/bin/node-init"
)
SEEDS, LOGIN = "seeds", "registry"  # the Secrets
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


@dataclass(frozen=True)
class Order:
    """One cluster of nodes as it is asked for: what all its objects share. `port` is that of the SSH servers."""

    owner: Owner
    space: str
    options: KubernetesOptions
    image: str
    port: int
    shared_path: str

    def objects(self, nodes: Iterable[NodeShape], secrets: Iterable[Object] = ()) -> tuple[Object, ...]:
        """All of them, in the order in which they are made; the Secrets are given."""
        return (namespace(self.owner, self.space), *secrets, *(self.pod(node) for node in nodes))

    def seeds(self, seeds: Mapping[str, bytes]) -> Object:
        """The Secret with the files of all nodes: their keys are in them."""
        return self._secret(SEEDS, "Opaque", {f"{node}.tar": content for node, content in seeds.items()})

    def login(self, content: bytes) -> Object:
        """The Secret with the login of the registry."""
        return self._secret(LOGIN, "kubernetes.io/dockerconfigjson", {".dockerconfigjson": content})

    def _secret(self, name: str, kind: str, data: Mapping[str, bytes]) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": kind,
            "metadata": self.owner.metadata(name, self.space),
            "data": {key: base64.b64encode(content).decode() for key, content in data.items()},
        }

    def pod(self, node: NodeShape) -> Object:
        """One node, on the machine that the study names for it."""
        host_network = self.options.host_network
        spec = {
            "restartPolicy": "Never",
            "affinity": on(self.options.nodes[node.name]),
            **({} if host_network else {"hostname": node.name}),  # else it is called as its machine
            "hostNetwork": host_network,
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": GRACE_S,
            **({"runtimeClassName": self.options.runtime_class} if self.options.runtime_class else {}),
            **({"imagePullSecrets": [{"name": LOGIN}]} if self.options.registry_login else {}),
            "containers": [self._container(node)],
            "volumes": [
                {
                    "name": "seed",
                    "secret": {
                        "secretName": SEEDS,
                        "defaultMode": 0o400,
                        "items": [{"key": f"{node.name}.tar", "path": SEED}],
                    },
                },
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(self.options.shm)}},
            ],
        }
        metadata = self.owner.metadata(node.name, self.space, node.name)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _container(self, node: NodeShape) -> Object:
        """It is ready when its SSH server answers."""
        return {
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent" if self.options.registry else "Never",
            "command": ["sh", "-ec", START, "sh", self.shared_path],
            "env": [{"name": ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "resources": resources(node, self.options),
            "readinessProbe": {"tcpSocket": {"port": self.port}, "periodSeconds": 1, "failureThreshold": 120},
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
