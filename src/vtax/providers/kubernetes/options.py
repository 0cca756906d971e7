"""What a study may say of an environment of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from vtax.model.names import KubernetesContext, KubernetesName, MachinePlace, Registry, StudyName
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Options
from vtax.transport.kubectl import Kubectl
from vtax.units import parse_bytes
from vtax.wording import listed

SIZE_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 2**20}, {"type": "string", "examples": ["256 MiB"]}]}


def _size(value: object) -> object:
    return parse_bytes(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else value


class KubernetesOptions(Options):
    """`nodes` names each node of the study and the machine of the cluster, as `kubectl get nodes` shows it, on which
    its pod runs. `network` "pod" is that of the cluster's CNI plug-in, "host" that of the machines. `cpu_limit`
    "cpuset" demands exclusive CPUs, which kubelets with the static policy give, "quota" a limit of CPU time, and "auto"
    takes what they give, the same on all machines. `qos` "burstable" requests half of what it limits. `runtime_class`
    is a RuntimeClass of the cluster. The root file system is pulled from `registry`, to which vtax pushes it; without
    one it has to be in the machines' containerd. With `registry_login` the machines pull with the login that skopeo
    has. `shm` is the size of /dev/shm; `mpi_transport` "tcp" forces TCP. `kubeconfig` and `context` are those of
    kubectl."""

    nodes: Mapping[StudyName, KubernetesName] = Field(default_factory=dict)
    network: Literal["pod", "host"] = "pod"
    cpu_limit: Literal["auto", "cpuset", "quota"] = "auto"
    qos: Literal["guaranteed", "burstable"] = "guaranteed"
    runtime_class: KubernetesName | None = None
    registry: Registry = ""
    registry_login: bool = False
    shm: Annotated[int, BeforeValidator(_size), Field(ge=2**20), WithJsonSchema(SIZE_SCHEMA)] = 256 * 2**20
    mpi_transport: Literal["auto", "tcp"] = "auto"
    kubeconfig: MachinePlace = ""
    context: KubernetesContext = ""

    @property
    def host_network(self) -> bool:
        return self.network == "host"

    @property
    def one_directory(self) -> bool:
        return False

    @property
    def cluster(self) -> Kubectl:
        return Kubectl(self.kubeconfig, self.context)

    def wrong_nodes(self, names: Sequence[str]) -> str:
        if missing := [name for name in names if name not in self.nodes]:
            return f"it names no machine for {listed(missing)}"
        if unknown := [name for name in self.nodes if name not in names]:
            return f"the study has no node {listed(unknown)}"
        if self.host_network and len(set(self.nodes.values())) < len(self.nodes):
            return "two nodes are on one machine, whose network they would share"
        if self.registry_login and not self.registry:
            return "registry_login is of a registry, and it names none"
        if self.cpu_limit == "cpuset" and self.qos != "guaranteed":
            return "only pods with qos guaranteed have exclusive CPUs"
        return ""


def options_of(spec: EnvironmentSpec) -> KubernetesOptions:
    return KubernetesOptions.model_validate(dict(spec.options))
