"""Nodes that are pods of a Kubernetes cluster, driven by `kubectl` alone.

A cluster of nodes is a namespace with a Secret, which has the files of every node, and one pod each on the machine that
the study names. Commands reach a pod by SSH over one `kubectl exec`, which runs an SSH server on its standard input and
output: all commands share that connection, and nothing is exposed.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vtax.cluster.access import write_ssh_config
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import hosts, seed
from vtax.errors import EnvironmentMissing, ProvisionError, VtaxError
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec
from vtax.providers import network
from vtax.providers.base import Cluster, Commands, Leftover, Node, Provider, Site
from vtax.providers.kubernetes import checks, images, inside, login, manifests, owned, starting, states
from vtax.providers.kubernetes.manifests import Order
from vtax.providers.kubernetes.options import KubernetesOptions, options_of
from vtax.providers.kubernetes.pausing import PodsPausing
from vtax.transport import process
from vtax.transport.kubectl import INSTALL, Described, Kubectl
from vtax.transport.ssh import SshTransport

READY_S = 180.0  # for pods to be ready, with pulling their image
CREATE_S = 60.0
FIRST_PORT, PORTS = 20_000, 10_000  # below those that the kernel gives to outgoing connections


class Kubernetes(Provider):
    name = "kubernetes"
    options = KubernetesOptions
    runners = ()
    install_hint = INSTALL
    capabilities = Capabilities(
        kind=NodeKind.CONTAINER,
        limits_cpu=True,
        limits_memory=True,
        separate_nodes=True,
        fresh_per_cell=True,
        elsewhere=True,
    )
    provision_estimate_s = 6.0

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self.current: inside.Pods | None = None
        self.machines: Mapping[str, Mapping[str, Any]] = {}  # of the last cluster, when it was made

    def slowdown(self, options: KubernetesOptions) -> float:  # of the protocol
        return 1.0

    def launcher(self, options: KubernetesOptions) -> Launcher:
        made = Mpirun(interface=network.INTERFACE, transport=options.mpi_transport)
        return made.on_machines_network() if options.host_network else made

    def commands(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        shared_path: str,
        kernel: str,  # of the protocol
        workload: bool = False,  # of the protocol: it is refused
    ) -> Commands:
        options = options_of(spec)
        owner, port = manifests.Owner("CAMPAIGN", "RUNTIME", "HOST"), manifests.ssh_port(options, 0)
        return _commands(Order(owner, "vtax-CAMPAIGN", options, "vtax-rootfs:DIGEST", port, shared_path), shape)

    def unavailable(self) -> str:
        for program in ("kubectl", "ssh", "ssh-keygen"):
            if not process.installed(program):
                return f"{program} is not installed"
        return Kubectl().unreachable()

    def status_note(self) -> str:
        return "a study names the machines of its pods"

    def check(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        capacity: HostCapacity,  # each machine has its own
    ) -> Sequence[Problem]:
        options = options_of(spec)
        if not process.installed("ssh-keygen"):
            return [Problem.blocker("ssh-keygen is not installed", "apt-get install openssh-client")]
        if reason := options.cluster.unreachable():
            return [Problem.blocker(reason, self.install_hint)]
        if wrong := options.wrong_nodes([node.name for node in shape.nodes]):
            return [Problem.blocker(wrong, "nodes = {NODE = MACHINE, ...} names each node once")]
        try:
            return [*checks.problems(options.cluster, options, shape), *images.problems(options)]
        except VtaxError as error:
            return [Problem.blocker(f"{error.message}: {error.detail}".strip(": "), error.remedy or self.install_hint)]

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:  # of the protocol
        images.ensure(options_of(spec), image)

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        options = options_of(spec)
        with ThreadPoolExecutor(max_workers=1) as pool:  # what is known of machines is asked for meanwhile
            described = pool.submit(_machines, options.cluster)
            images.ensure(options, site.image)
            order = Order(
                owner=owned.owner_of(site.campaign, self.runtime),
                space=owned.new_name(site.campaign),
                options=options,
                image=images.name_of(options, site.image),
                port=manifests.ssh_port(options, FIRST_PORT + secrets.randbelow(PORTS)),
                shared_path=shared_path,
            )
            pods = self._started(order, shape, site, described)
            return self._connected(spec, shape, site, order, pods, described.result())

    def _started(
        self, order: Order, shape: ClusterShape, site: Site, machines: Future[dict[str, Described]]
    ) -> dict[str, Described]:
        """The pods, running, and where the study has them."""
        options, deadline = order.options, time.monotonic() + READY_S
        names = [node.name for node in shape.nodes]
        make_keys(site.keys, names)
        owned.note(self.runtime, site.campaign, options.cluster)
        places = {name: name for name in names}  # addresses in the pods' network are not known before they are there
        if options.host_network:
            places = {name: _address(machines.result().get(options.nodes[name], {})) for name in names}
        slots = {node.name: node.cpus for node in shape.nodes}
        seeds = {name: seed(site.keys, name, places, slots, port=order.port) for name in names}
        given = [order.seeds(seeds), *([order.login(login.found(options.registry))] if options.registry_login else [])]
        starting.order(options.cluster, manifests.document(order.objects(shape.nodes, given)), CREATE_S)
        pods = starting.Watched(options.cluster, order.space, names).until_started(deadline)
        starting.refuse_misplaced(pods, {name: options.nodes[name] for name in pods})
        return pods

    def _connected(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        site: Site,
        order: Order,
        pods: Mapping[str, Described],
        machines: Mapping[str, Described],
    ) -> Cluster:
        """The cluster, whose nodes have the names of all, with the CPUs that the pods have."""
        options, space = order.options, order.space
        through = {name: inside.server(options.cluster, space, name) for name in pods}
        config = write_ssh_config(site.directory, site.keys, {}, paused=site.paused, through=through)
        transports = {name: SshTransport(config, name, terminals=False) for name in pods}
        uids = {name: pod["metadata"]["uid"] for name, pod in pods.items()}
        self.current = inside.Pods(options.cluster, space, transports, uids)
        said = self.current.seen()
        places = {name: one["address"] for name, one in said.items()}
        self.current.named(hosts(places), order.port, places if options.host_network else {})
        limit = inside.limited_by(shape, said, options)
        if limit == "cpuset":
            shape = inside.with_cpus(shape, said)
        self.machines = {
            options.nodes[name]: inside.machine_facts(machines[options.nodes[name]], said[name]) for name in pods
        }
        return Cluster(
            environment=spec.model_copy(update={"options": {**spec.options, "cpu_limit": limit}}),
            shape=shape,
            nodes=tuple(Node(node.name, places[node.name], node, transports[node.name]) for node in shape.nodes),
            capabilities=self.capabilities,
            launcher=self.launcher(options),
            shared_path=order.shared_path,
            commands=_commands(order, shape),
            notes=tuple(_sentence(name, pod, places[name]) for name, pod in pods.items()),
            facts={name: _facts(pod, options.nodes[name], limit) for name, pod in pods.items()},
            pausing=PodsPausing(options.cluster, space, list(pods)),
            hostnames={said[name]["hostname"]: name for name in pods} if options.host_network else {},
        )

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        raise EnvironmentMissing("what vtax makes in a cluster of Kubernetes ends with the process that made it")

    def lost(self) -> str:
        """Why pods no longer answer, by what the API server says of them."""
        return self.current.lost() if self.current else ""

    def machine_facts(self) -> Mapping[str, Mapping[str, Any]]:
        return self.machines

    def destroy(self, campaign: str) -> None:
        cluster = owned.noted(self.runtime, campaign)
        if cluster is None and not process.installed("kubectl"):
            return
        if self.current is not None:
            self.current.close()
            self.current = None
        for one in [cluster] if cluster else owned.clusters(self.runtime):
            if cluster is None and one.unreachable():
                continue  # nothing says that something of it is there
            owned.remove(one, self.runtime, campaign)

    def leftovers(self) -> Sequence[Leftover]:
        return owned.leftovers(self.name, self.runtime)

    def remove_image(self, image: Image) -> None:
        """Nothing is made of it on this machine."""

    def published(self, spec: EnvironmentSpec, cached: Sequence[Image]) -> Sequence[str]:
        return images.published(options_of(spec), cached)

    def withdraw(self, name: str) -> None:
        images.withdraw(name)


def _commands(order: Order, shape: ClusterShape) -> Commands:
    """What `kubectl` is given, one object a line, without the Secrets."""
    words = order.options.cluster.words("create", "--filename=-")
    return tuple((*words, json.dumps(one)) for one in order.objects(shape.nodes))


def _machines(cluster: Kubectl) -> dict[str, Described]:
    return {one["metadata"]["name"]: one for one in cluster.items("nodes")}


def _facts(pod: Described, planned: str, limit: str) -> Mapping[str, Any]:
    return {"on_machine": planned, "pod": {**states.facts(pod, planned), "cpu_limit": limit}}


def _address(machine: Described) -> str:
    """By which the machines reach one another."""
    known = {one["type"]: one["address"] for one in machine.get("status", {}).get("addresses", ())}
    if "InternalIP" not in known:
        raise ProvisionError(
            "a machine of the study has no address in the cluster", remedy="`kubectl get nodes -o wide`"
        )
    return str(known["InternalIP"])


def _sentence(name: str, pod: Described, address: str) -> str:
    return f"pod {name}: on {pod['spec']['nodeName']}, {pod['status'].get('qosClass')}, address {address}"
