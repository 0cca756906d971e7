"""A real Kubernetes for tests, without systemd: a control plane and two nodes on one computer.

The nodes are machines as in `machines_lab`, over a root file system with containerd, each with a kubelet, control
groups and a network of pods. etcd, the API server, the scheduler and the controller manager are processes in the lab's
network. The `kubectl` of the lab's environment runs in that network. There is no DNS and no kube-proxy.

To try things by hand: PYTHONPATH=tests .venv/bin/python -m integration.kubernetes_lab DIRECTORY [--without-static]
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from integration import kubernetes_build, kubernetes_images, namespaces, sid
from integration import kubernetes_config as config
from integration.machines_lab import Lab, lab, run

PACKAGES = (
    "containerd,runc,containernetworking-plugins,docker-registry,busybox-static,openssh-server,ca-certificates,iproute2,"
    "iputils-ping,procps,util-linux,mount,nftables,iptables,uidmap,kmod,python3-minimal,libffi8"
)
# Each node reserves the CPU that pods of the other one can have for themselves.
RESERVED: Mapping[str, str | None] = {"n1": "0", "n2": "1"}
NO_STATIC: Mapping[str, str | None] = {"n1": "0", "n2": None}
GROUPS = Path("/sys/fs/cgroup")
READY_S = 90.0
END_S = 10.0


@dataclass
class Kubernetes:
    """The cluster. What is run with its environment is its administrator, and finds its kubectl first."""

    machines: Lab
    programs: Path
    place: Path
    parts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(self.machines.machines)

    @property
    def environment(self) -> dict[str, str]:
        return {**self.machines.environment, "KUBECONFIG": str(self.kubeconfig())}

    def kubeconfig(self, user: str = "admin") -> Path:
        """Of "admin", or of "restricted", who has no right but those that a test binds to this name."""
        return self.place / f"{user}.kubeconfig"

    def kubectl(self, *words: str, user: str = "admin", typed: str | None = None, code: int = 0) -> str:
        """What kubectl prints; `typed` is its standard input."""
        made = self.ask(*words, user=user, typed=typed)
        assert made.returncode == code, f"kubectl {' '.join(words)}: {made.stdout}{made.stderr}\n{self.logs()}"
        return made.stdout if code == 0 else made.stderr

    def ask(self, *words: str, user: str = "admin", typed: str | None = None) -> subprocess.CompletedProcess[str]:
        """kubectl, which may fail."""
        return subprocess.run(
            (str(self.machines.place / "bin/kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *words),
            input="" if typed is None else typed,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def objects(self, *words: str) -> list[dict[str, Any]]:
        """What `kubectl get` finds."""
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *words, "--output=json"))["items"]
        return found

    def ready(self) -> dict[str, bool]:
        """Node -> whether pods can start on it."""
        return {node["metadata"]["name"]: _is_ready(node) for node in self.objects("nodes")}

    def load(self, archive: Path) -> None:
        """Give all nodes the images of an archive as `docker save` writes it."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: self._import(node, archive), self.nodes))

    def _import(self, node: str, archive: Path) -> None:
        command = self.machines.machines[node].enter("ctr", "--namespace=k8s.io", "images", "import", "-")
        with archive.open("rb") as file:
            made = subprocess.run(command, stdin=file, capture_output=True, timeout=300)
        assert made.returncode == 0, made.stderr.decode()

    def serve_images(self, address: str = config.REGISTRY, *, login: bool = False) -> str:
        """Start a registry on n1, by HTTP, and return its address; with `login`, for `config.LOGIN` alone. At any
        address but the two of the configuration nodes expect TLS."""
        settings = f"REGISTRY_HTTP_ADDR={address}"
        if login:
            (self.place / "n1/htpasswd").write_text(f"{config.LOGIN[0]}:{config.LOGIN_HASH}\n")
            settings += f" REGISTRY_AUTH_HTPASSWD_REALM=lab REGISTRY_AUTH_HTPASSWD_PATH={config.SEEN}/n1/htpasswd"
        serve = f"{settings} docker-registry serve {config.SEEN}/n1/registry.yml"
        if not self.connects(address):
            self.machines.machines["n1"].inside("sh", "-c", f"{serve} >/var/log/registry.log 2>&1 </dev/null &")
        wait(lambda: self.connects(address), "the registry", self.logs)
        return address

    def connects(self, address: str) -> bool:
        """Whether something listens there, seen from the lab's network."""
        host, _, port = address.partition(":")
        probe = f"import socket; socket.create_connection(({host!r}, {port}), 5)"
        command = self.machines.enter((sys.executable, "-c", probe))
        return subprocess.run(command, capture_output=True).returncode == 0

    def start_kubelet(self, node: str) -> None:
        start = f"sh {config.SEEN}/{node}/kubelet.sh >/dev/null 2>&1 </dev/null &"
        self.machines.machines[node].inside("sh", "-c", start)

    def kill_kubelet(self, node: str) -> None:
        self.machines.machines[node].inside("pkill", "-KILL", "-x", "kubelet")

    def drain(self, node: str) -> None:
        self.kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--grace-period=1")

    def start_part(self, name: str, *words: str) -> None:
        """A part of the control plane."""
        argv = self.machines.enter((str(self.programs / name), *words))
        with (self.place / f"{name}.log").open("ab") as log:
            self.parts[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end_part(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        part = self.parts.pop(name)
        part.send_signal(number)
        part.wait(END_S)

    def start_api_server(self) -> None:
        """Until it answers."""
        self.start_part("kube-apiserver", *config.api_server(self.place))
        wait(lambda: (self.place / "certificates/apiserver.crt").exists(), "the API server's certificate", self.logs)
        _write_kubeconfigs(self.place)
        wait(lambda: self.ask("get", "--raw=/readyz").stdout == "ok", "the API server", self.logs)

    def restart_api_server(self, away_s: float = 0) -> None:
        """Kill it, and start it after some time."""
        self.end_part("kube-apiserver")
        time.sleep(away_s)
        self.start_api_server()

    def logs(self) -> str:
        """The ends of the logs of all parts."""
        made = [f"{path.name}: {_tail(path.read_text())}" for path in sorted(self.place.glob("*.log"))]
        for name, machine in self.machines.machines.items():
            for log in ("containerd", "kubelet"):
                text = run(*machine.enter("tail", "-n", "15", f"/var/log/{log}.log"), check=False)
                made.append(f"{name} {log}: {text}")
        return "\n".join(made)


@contextlib.contextmanager
def kubernetes(
    cache: Path, images: Path, place: Path, reserved: Mapping[str, str | None] = RESERVED
) -> Iterator[Kubernetes]:
    """A cluster with both nodes ready, until the end. `reserved`: node -> CPUs that no pod has for itself, with the
    static policy; None: without that policy."""
    programs = kubernetes_build.programs(cache)
    tree = sid.tree(cache, "kubernetes-debian13", PACKAGES, "trixie")
    files = place / "files"
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(_groups(tuple(reserved)))
        for node, cpus in reserved.items():
            config.write_node(files / node, node, group, cpus, kubernetes_images.PAUSE)
            (place / "disks" / node).mkdir(parents=True)
        stack.callback(shutil.rmtree, place / "disks")
        mounts = {
            config.SEEN: str(files),
            config.PROGRAMS: str(programs),
            "/var/lib/containerd": f"{place}/disks/{{name}}",  # no overlay, on which no other could be made
        }
        services = f"exec sh {config.SEEN}/$(hostname)/start.sh;"
        machines = stack.enter_context(lab(tuple(reserved), tree, images, place, services, mounts))
        made = Kubernetes(machines, programs, files)
        stack.callback(_end_parts, made)
        _start(made, tree)
        yield made


def _start(made: Kubernetes, tree: Path) -> None:
    (made.place / "tokens").write_text(
        "".join(f'{secrets.token_hex(16)},{user},{user},"{groups}"\n' for user, groups in config.USERS.items())
    )
    (made.place / "tokens").chmod(0o600)
    run("ssh-keygen", "-q", "-t", "rsa", "-m", "PEM", "-N", "", "-C", "", "-f", str(made.place / "accounts"))
    _write_kubectl(made)
    for node in made.nodes:
        run("ip", "-n", made.machines.namespace, "route", "add", config.NETWORKS[node], "via", config.ADDRESSES[node])
    made.start_part("etcd", *config.etcd(made.place))
    made.start_api_server()
    made.start_part("kube-scheduler", *config.scheduler(made.place))
    made.start_part("kube-controller-manager", *config.controller_manager(made.place))
    pause = kubernetes_images.pause(made.programs / kubernetes_build.PAUSE, made.place / "pause.tar")
    made.load(pause)
    made.load(kubernetes_images.busybox(tree / "bin/busybox", made.place / "busybox.tar"))
    for node in made.nodes:
        made.start_kubelet(node)
    wait(lambda: made.ready() == dict.fromkeys(made.nodes, True), "the nodes", made.logs)
    wait(lambda: made.ask("get", "serviceaccount", "default").returncode == 0, "the account of pods", made.logs)


def _write_kubectl(made: Kubernetes) -> None:
    program = made.machines.place / "bin/kubectl"
    enter = " ".join(made.machines.enter((str(made.programs / "kubectl"),)))
    program.write_text(f'#!/bin/sh\nexec {enter} "$@"\n')
    program.chmod(0o755)


def _write_kubeconfigs(place: Path) -> None:
    """For all users, with the certificate that the API server has made for itself."""
    authority = base64.b64encode((place / "certificates/apiserver.crt").read_bytes()).decode()
    for line in (place / "tokens").read_text().splitlines():
        token, user, _ = line.split(",", 2)
        path = place / f"{user}.kubeconfig"
        path.write_text(config.kubeconfig(user, token, authority))
        path.chmod(0o600)
    for node in config.ADDRESSES:
        if (place / node).exists():
            shutil.copy(place / f"system:node:{node}.kubeconfig", place / node / "kubeconfig")


def _end_parts(made: Kubernetes) -> None:
    for name in tuple(reversed(made.parts)):
        made.end_part(name)


@contextlib.contextmanager
def _groups(nodes: Sequence[str]) -> Iterator[str]:
    """A control group of each hierarchy, with one below for each node; its name."""
    hierarchies = [path for path in GROUPS.iterdir() if (path / "tasks").exists()]
    assert hierarchies, "this lab needs control groups of version 1 (boot with systemd.unified_cgroup_hierarchy=0)"
    group = namespaces.new_name("groups")
    _remove_abandoned_groups()
    try:
        for hierarchy in hierarchies:
            for path in (hierarchy / group, *(hierarchy / group / node for node in nodes)):
                path.mkdir()
                for setting in ("cpuset.cpus", "cpuset.mems"):
                    if (path / setting).exists():
                        (path / setting).write_text((path.parent / setting).read_text())
        yield group
    finally:
        remove_groups(group)


def _remove_abandoned_groups() -> None:
    """Of labs that were killed. What ran in them has ended with their network."""
    for name in {path.name for path in GROUPS.glob("*/vtaxtest-*")}:
        found = namespaces.NAME.match(name)
        if found and namespaces.started(int(found["process"])) != int(found["started"]):
            remove_groups(name)


def remove_groups(group: str) -> None:
    """All below a control group of any hierarchy. Processes that were killed may take a moment to leave it."""
    deadline = time.monotonic() + END_S
    for top in GROUPS.glob(f"*/{group}"):
        for path, _, _ in os.walk(top, topdown=False):
            while Path(path).exists():
                try:
                    Path(path).rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)


def wait(reached: Callable[[], bool], what: str, about: Callable[[], str], limit_s: float = READY_S) -> None:
    """Until something is so."""
    deadline = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < deadline, f"{what} took more than {limit_s:.0f} s\n{about()}"
        time.sleep(0.1)


def _is_ready(item: Mapping[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", ()))


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-15:])


def main() -> None:
    """A lab until SIGINT or SIGTERM."""
    options = argparse.ArgumentParser()
    options.add_argument("directory", type=Path, help="a new directory for its files")
    options.add_argument("--without-static", action="store_true", help="n2 has no static CPU policy")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    given.directory.mkdir(parents=True)
    reserved = NO_STATIC if given.without_static else RESERVED
    began = time.monotonic()
    with kubernetes(cache, cache / "vtax/images", given.directory.resolve(), reserved) as made:
        print(f"ready after {time.monotonic() - began:.1f} s; for a shell:")  # noqa: T201
        print(f"export PATH={made.machines.place}/bin:$PATH KUBECONFIG={made.kubeconfig()}")  # noqa: T201
        print(f"inside of its network: nsenter --net=/run/netns/{made.machines.namespace} ...", flush=True)  # noqa: T201
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
