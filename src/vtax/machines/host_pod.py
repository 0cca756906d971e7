"""A machine of a Kubernetes cluster: a pod that enters it, in which every command of that machine begins.

The pod has the machine's processes in view (hostPID) and four capabilities beyond the usual ones: SYS_PTRACE to see
the namespaces of the machine's first process, SYS_ADMIN and SYS_CHROOT to enter them, NET_ADMIN for networks of nodes.
A command leaves the pod's control groups too, so that no limit of the pod is one of the machine's environments.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from vtax.cluster.archive import NAME
from vtax.errors import EnvironmentMissing, VtaxError
from vtax.machines.connection import Connection
from vtax.model.study import ClusterNodeSpec, MachineSpec
from vtax.providers.kubernetes import checks, inside, manifests, owned, starting
from vtax.store import alive
from vtax.transport.kubectl import INSTALL, Kubectl, last_line
from vtax.transport.local import ENVIRONMENT

READY_S = 120.0
CREATE_S = 60.0
CONTAINER = "host"
ASK_S, REMOVE_S = 30.0, 300.0
CONTAINERD = ("ctr", "--namespace=k8s.io", "images")
NAMED = f"/{NAME}:"  # a root file system of vtax, from wherever it came
CAPABILITIES = ("SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT", "NET_ADMIN")
ENTER = ("nsenter", "--target=1", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--")
LEAVE = """\
for group in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do
  [ -w "$group" ] && { echo $$ >"$group"; } 2>/dev/null
done
{ echo 0 >/proc/self/oom_score_adj; } 2>/dev/null
exec "$@"
"""


class HostPod(Connection):
    """One machine of a study. The pod is in a namespace with a label, which this process holds."""

    def __init__(self, name: str, spec: MachineSpec, node: ClusterNodeSpec, runtime: Path) -> None:
        super().__init__(name, spec)
        self.given, self.runtime = node, runtime
        self.cluster = Kubectl(node.kubeconfig, node.context)
        self.label = self.space = ""
        self.held = ExitStack()

    def __str__(self) -> str:
        return f"machine {self.name} ({self.given.node})"

    @property
    def directory(self) -> str:
        return self.spec.directory or "/var/tmp/vtax-0"

    def connect(self) -> None:
        """Have a pod there. Raises EnvironmentMissing."""
        if self.space and self.cluster.run(*self._exec(("true",))).exit_code == 0:
            return
        self.close()
        if reason := self.cluster.unreachable():
            raise EnvironmentMissing(f"{self}: {reason}", remedy=INSTALL)
        for problem in checks.machine_problems(self.cluster, {self.given.node: ()}):
            raise EnvironmentMissing(f"{self}: {problem.message}", remedy=problem.remedy)
        self.label = secrets.token_hex(4)
        self.space = owned.new_name(self.label)
        self.held.enter_context(alive(self.runtime / self.label))
        owned.note(self.runtime, self.label, self.cluster)
        owner = owned.owner_of(self.label, self.runtime)
        try:
            objects = (manifests.namespace(owner, self.space), host_pod(owner, self.space, self.given))
            starting.order(self.cluster, manifests.document(objects), CREATE_S)
            starting.Watched(self.cluster, self.space, [CONTAINER]).until_started(time.monotonic() + READY_S)
            result = self.cluster.run(*self._exec(("true",)))
        except VtaxError as error:
            with suppress(VtaxError):  # what is said is why it failed
                self.close()
            raise EnvironmentMissing(f"{self}: {error.message}", detail=error.detail, remedy=error.remedy) from error
        if result.exit_code != 0:
            said = last_line(result)
            self.close()
            raise EnvironmentMissing(
                f"{self}: its pod cannot enter the machine",
                detail=said,
                remedy="the cluster must let this user create pods with hostPID and the capabilities SYS_ADMIN, "
                "SYS_PTRACE, SYS_CHROOT and NET_ADMIN (a namespace of the pod security level privileged)",
            )

    def _exec(self, argv: Sequence[str]) -> tuple[str, ...]:
        settings = (f"{name}={value}" for name, value in ENVIRONMENT.items())
        there = (*ENTER, "/usr/bin/env", "-i", *settings, "sh", "-c", LEAVE, "sh", *argv)
        return ("exec", "--stdin", "--quiet", f"--namespace={self.space}", CONTAINER, "--", *there)

    def command(self, argv: Sequence[str], *, terminal: bool = False) -> tuple[str, ...]:  # noqa: ARG002
        return self.cluster.words(*self._exec(argv))

    @property
    def node(self) -> str:
        return self.given.node

    @property
    def terminals(self) -> bool:
        return False

    @property
    def connected(self) -> bool:
        return bool(self.space)

    def facts(self) -> Mapping[str, Any]:
        with suppress(VtaxError):
            for one in self.cluster.items("nodes"):
                if one["metadata"]["name"] == self.given.node:
                    return {"kubernetes": inside.machine(one)}
        return {}

    def images(self) -> Sequence[str]:
        """In containerd, under all their names; nothing where another engine starts the pods."""
        listed = self.run((*CONTAINERD, "list"), timeout_s=ASK_S)
        lines = [line.split() for line in listed.stdout.splitlines()[1:]] if listed.exit_code == 0 else []
        digests = {line[0]: line[2] for line in lines if len(line) > 2}
        ours = {digest for name, digest in digests.items() if NAMED in name}
        return [name for name, digest in digests.items() if digest in ours]

    def remove_images(self, names: Sequence[str]) -> None:
        if names:
            self.must((*CONTAINERD, "remove", "--sync", *names), timeout_s=REMOVE_S)

    def close(self) -> None:
        """Remove the pod. May be called twice."""
        label, self.label, self.space = self.label, "", ""
        if not label:
            return
        try:
            owned.remove(self.cluster, self.runtime, label)
        finally:
            self.held.close()
            shutil.rmtree(self.runtime / label, ignore_errors=True)


def host_pod(owner: manifests.Owner, space: str, node: ClusterNodeSpec) -> manifests.Object:
    """A pod that only waits. Nothing limits it, because what it starts leaves it."""
    container = {
        "name": CONTAINER,
        "image": node.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "securityContext": {
            "runAsUser": 0,
            "capabilities": {"add": list(CAPABILITIES)},
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        },
    }
    spec = {
        "restartPolicy": "Never",
        "hostPID": True,
        "hostNetwork": True,
        "affinity": manifests.on(node.node),
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": owner.metadata(CONTAINER, space, CONTAINER), "spec": spec}
