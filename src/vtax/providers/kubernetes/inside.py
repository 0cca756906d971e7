"""Pods from inside: how they are reached, what they say of their machine, and why they no longer answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vtax.errors import EnvironmentMissing, NotMatched, ProvisionError, VtaxError
from vtax.facts.cpu import cpu_list
from vtax.model.nodes import ClusterShape
from vtax.providers.kubernetes import states
from vtax.providers.kubernetes.manifests import CONTAINER
from vtax.providers.kubernetes.options import KubernetesOptions
from vtax.transport.kubectl import Described, Kubectl
from vtax.transport.parallel import each
from vtax.transport.ssh import SshTransport

ASK_S = 30.0
KNOWN_S, AGAIN_S = 2.0, 0.2
CLOSED = "the API server closed the connection"
# An SSH server for one connection, on its standard input and output, once the node has its files, the host file last.
# Without -e it ends where there is no /dev/log.
WAIT = (
    "until [ -s /root/hostfile ]; do sleep 0.02; done; mkdir -p /run/sshd; exec /usr/sbin/sshd -i -e -o LogLevel=ERROR"
)
SERVER = ("sh", "-c", WAIT)
# Says the node's address, and what it sees of its machine.
SEE = """\
say() { echo "$1=$(eval "$2" 2>/dev/null)"; }
say address 'cat /run/vtax-address'
say hostname 'cat /proc/sys/kernel/hostname'
say boot_id 'cat /proc/sys/kernel/random/boot_id'
say kernel 'uname -r'
say cpu_model "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1"
say memory_total_kib "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo"
say cpus_online 'cat /sys/devices/system/cpu/online'
say cpus_allowed "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status"
"""
# Gives the node the names of all nodes, which have addresses only now, and waits until its SSH server listens on the
# port, which is given in the hexadecimal digits of the kernel. With an address, which a node on the machines' own
# network has, MPI uses the interface that has it.
PREPARE = """\
cat >/etc/hosts || exit 1
for try in $(seq 500); do
  grep -qsE "^ *[0-9]+: [0-9A-F]+:$1 [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6 && break
  sleep 0.02
done
for place in ${2:+/sys/class/net/*}; do
  ip -o -4 addr show "${place##*/}" | grep -qF " $2/" || continue
  mkdir -p /root/.openmpi /root/.prte
  echo "btl_tcp_if_include = ${place##*/}" >/root/.openmpi/mca-params.conf
  echo "prte_if_include = ${place##*/}" >/root/.prte/mca-params.conf
done
"""
Seen = Mapping[str, str]


def server(cluster: Kubectl, space: str, pod: str) -> tuple[str, ...]:
    """The command whose standard input and output are an SSH server in the pod."""
    return cluster.words(
        "exec", "--stdin", "--quiet", f"--namespace={space}", pod, f"--container={CONTAINER}", "--", *SERVER
    )


@dataclass(frozen=True)
class Pods:
    """The pods of one cluster of nodes, while they are used; `uids` are those that were created."""

    cluster: Kubectl
    space: str
    transports: Mapping[str, SshTransport]
    uids: Mapping[str, str]

    def seen(self) -> dict[str, Seen]:
        """Connect to all, and ask each what it is. Raises ProvisionError, CommandError."""
        return self._asked(dict.fromkeys(self.transports, (SEE,)), "", "does not answer")

    def named(self, hosts: str, port: int, addresses: Mapping[str, str]) -> None:
        """Give each the names of all. `port` is that of their SSH servers, and `addresses` those on the machines' own
        network. Raises ProvisionError, CommandError."""
        words = {name: (PREPARE, "sh", f"{port:04X}", addresses.get(name, "")) for name in self.transports}
        self._asked(words, hosts, "does not take the names of the others")

    def _asked(self, scripts: Mapping[str, Sequence[str]], stdin: str, otherwise: str) -> dict[str, Seen]:
        """What a script with its words, on each node, says line by line."""

        def one(name: str) -> Seen:
            said = self.transports[name].run(("sh", "-c", *scripts[name]), timeout_s=ASK_S, stdin=stdin)
            if said.exit_code != 0:
                raise ProvisionError(f"pod {name} {otherwise}", detail=self._ended() or said.stderr.strip())
            return dict(line.split("=", 1) for line in said.stdout.splitlines() if "=" in line)

        return dict(zip(self.transports, each(one, self.transports), strict=True))

    def lost(self) -> str:
        """Why one of them no longer answers; "" when all do, or when that is not the cluster's doing."""
        if why := self._gone():
            return why
        closed = [
            name
            for name, alive in zip(self.transports, each(_connected, self.transports.values()), strict=True)
            if not alive
        ]
        return f"{CLOSED} to pod {', '.join(closed)}" if closed else ""

    def _gone(self) -> str:
        """What the API server says of those that are no longer there."""
        try:
            found = {pod["metadata"]["name"]: pod for pod in self.cluster.items("pods", f"--namespace={self.space}")}
        except EnvironmentMissing as error:
            return f"{CLOSED}, and does not answer: {error.detail}"
        except VtaxError as error:
            return f"the API server does not say what became of the pods: {error.message}"
        return "; ".join(why for name, uid in self.uids.items() if (why := _changed(name, uid, found.get(name))))

    def _ended(self) -> str:
        """The same of pods that started a moment ago: what becomes of them is known a second later."""
        deadline = time.monotonic() + KNOWN_S
        while not (why := self._gone()) and time.monotonic() < deadline:
            time.sleep(AGAIN_S)
        return why

    def close(self) -> None:
        each(lambda one: one.close(), self.transports.values())


def _connected(transport: SshTransport) -> bool:
    return transport.connected()


def _changed(name: str, uid: str, pod: Described | None) -> str:
    if pod is None:
        return f"pod {name} was deleted"
    if pod["metadata"].get("uid") != uid:
        return f"pod {name} was replaced by another one"
    why = states.ended(pod)
    return f"pod {name}: {why}" if why else ""


def limited_by(shape: ClusterShape, seen: Mapping[str, Seen], options: KubernetesOptions) -> str:
    """How the kubelets limit the CPUs of the nodes: by a "cpuset", or by a "quota". Raises NotMatched where that is not
    what the study demands, or not the same on all machines."""
    cpus = {name: len(cpu_list(one.get("cpus_allowed", ""))) for name, one in seen.items()}
    online = {name: len(cpu_list(one.get("cpus_online", ""))) for name, one in seen.items()}
    # On a machine with as many CPUs as the node wants, these are its own in either case.
    kinds = {
        node.name: "cpuset" if cpus[node.name] == node.cpus and options.qos == "guaranteed" else "quota"
        for node in shape.nodes
    }
    wanted = set(kinds.values()) if options.cpu_limit == "auto" else {options.cpu_limit}
    if len(wanted) == 1 and set(kinds.values()) <= wanted:
        return next(iter(wanted))
    said = [
        f"{one.name} on {options.nodes[one.name]}: {one.cpus} planned, {cpus[one.name]} of {online[one.name]} allowed"
        for one in shape.nodes
    ]
    what = {
        "cpuset": "pods have no exclusive CPUs, which the study demands",
        "quota": "pods have exclusive CPUs, where the study wants a quota",
        "auto": "some pods have exclusive CPUs, and others only a quota",
    }
    raise NotMatched(
        what[options.cpu_limit],
        detail="\n".join(said),
        remedy='the kubelets of all machines need cpuManagerPolicy "static" for exclusive CPUs (and whole CPUs, qos '
        'guaranteed), and none of them for cpu_limit = "quota"',
    )


def with_cpus(shape: ClusterShape, seen: Mapping[str, Seen]) -> ClusterShape:
    """The nodes with the CPUs that they have."""
    given = {name: cpu_list(one.get("cpus_allowed", "")) for name, one in seen.items()}
    return ClusterShape(nodes=tuple(node.model_copy(update={"cpu_ids": given[node.name]}) for node in shape.nodes))


def machine(described: Described) -> dict[str, Any]:
    """What the scheduler knows of a machine."""
    status = described["status"]
    info, has = status.get("nodeInfo", {}), status.get("capacity", {})
    return {
        "node": described["metadata"]["name"],
        "cpus": str(has.get("cpu", "")),
        "memory": str(has.get("memory", "")),
        "boot_id": str(info.get("bootID", "")),
        "kernel": str(info.get("kernelVersion", "")),
        "kubelet": str(info.get("kubeletVersion", "")),
        "runtime": str(info.get("containerRuntimeVersion", "")),
        "os": str(info.get("osImage", "")),
    }


def machine_facts(described: Described, seen: Seen) -> dict[str, Any]:
    """What is recorded of a machine: what a pod sees of it, and what the scheduler knows."""
    found: dict[str, Any] = {name: seen[name] for name in ("boot_id", "kernel", "cpu_model") if seen.get(name)}
    if seen.get("memory_total_kib", "").isdigit():
        found["memory_total_bytes"] = 1024 * int(seen["memory_total_kib"])
    if online := cpu_list(seen.get("cpus_online", "")):
        found["cpus_usable"] = list(online)
    return {**found, "kubernetes": machine(described)}
