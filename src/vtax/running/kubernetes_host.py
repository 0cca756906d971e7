"""The machines of a Kubernetes cluster as they are, without pods: the baseline for environments of pods.

As nodes that exist already, with a pod that enters the machine in place of SSH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from vtax.model.names import ImageName, KubernetesContext, KubernetesName, MachinePlace, StudyName
from vtax.model.nodes import ClusterShape
from vtax.model.study import ClusterNodeSpec, EnvironmentSpec, MachineSpec
from vtax.providers.base import Options
from vtax.running.existing import Existing
from vtax.transport import process
from vtax.transport.kubectl import INSTALL
from vtax.wording import listed


class KubernetesHostOptions(Options):
    """`nodes` names each node of the study and a machine of the cluster, as `kubectl get nodes` shows it. `image` is of
    the pod that enters a machine: any that has `nsenter` and `sleep`, such as the root file system that `vtax image
    export` names vtax-rootfs:latest. vtax keeps its files in `directory` there. `kubeconfig` and `context` are those of
    kubectl; `mpi_transport` as on the host."""

    nodes: Mapping[StudyName, KubernetesName] = Field(default_factory=dict)
    image: ImageName = "vtax-rootfs:latest"
    directory: MachinePlace = ""
    kubeconfig: MachinePlace = ""
    context: KubernetesContext = ""
    mpi_transport: Literal["auto", "tcp"] = "auto"

    @property
    def one_directory(self) -> bool:
        return False

    @property
    def machines(self) -> Mapping[str, MachineSpec]:
        given = {"image": self.image, "kubeconfig": self.kubeconfig, "context": self.context}
        return {
            node: MachineSpec(kubernetes=ClusterNodeSpec(node=name, **given), directory=self.directory)
            for node, name in self.nodes.items()
        }

    def words(self, node: str) -> tuple[str, ...]:
        return ("kubectl", "exec", self.nodes.get(node, node), "--")

    def wrong_nodes(self, names: Sequence[str]) -> str:
        if missing := [name for name in names if name not in self.nodes]:
            return f"it names no machine for {listed(missing)}"
        if unknown := [name for name in self.nodes if name not in names]:
            return f"the study has no node {listed(unknown)}"
        if len(set(self.nodes.values())) < len(self.nodes):
            return "two nodes are on the same machine"
        return ""


class KubernetesHost(Existing):
    name = "kubernetes-host"
    options = KubernetesHostOptions
    install_hint = INSTALL

    def cannot_share(self, spec: EnvironmentSpec, shape: ClusterShape) -> None:
        """The pod that enters a machine has none of the capabilities to load a module or to start a server."""

    def unavailable(self) -> str:
        return "" if process.installed("kubectl") else "kubectl is not installed"
