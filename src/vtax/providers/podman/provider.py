"""Containers under Podman, on small machines and without root too."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from vtax.model.finding import Problem
from vtax.model.link import Link
from vtax.paths import replacing
from vtax.providers.container import engine as lines
from vtax.providers.container.provider import Container
from vtax.transport import process

MOST_PROCESSES = 4096  # per user; Podman asks for more than kernels without CAP_SYS_RESOURCE grant
FIREWALLS = ("iptables", "nft")  # with which netavark writes its rules; it starts no container without one of them


class Podman(Container):
    name = "podman"
    runners = ("conmon",)
    install_hint = "as root: apt-get install podman runc netavark aardvark-dns iptables nftables openssh-client"
    version_format = "json"
    force = ("--time", "0")

    def environment(self) -> Mapping[str, str]:
        """Podman as it works on small machines too: rlimits that the kernel grants, no systemd, no hybrid cgroups."""
        place = self.runtime / "containers.conf"
        text = containers_conf(
            nofile=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            nproc=min(MOST_PROCESSES, resource.getrlimit(resource.RLIMIT_NPROC)[1]),
            systemd=Path("/run/systemd/system").exists(),
            hybrid=Path("/sys/fs/cgroup/unified").exists() or not Path("/sys/fs/cgroup/cgroup.controllers").exists(),
            netavark=any((Path(folder) / "netavark").exists() for folder in ("/usr/lib/podman", "/usr/libexec/podman")),
        )
        if not place.exists() or place.read_text() != text:
            self.runtime.mkdir(parents=True, exist_ok=True)
            with replacing(place) as fresh:
                fresh.write_text(text)
        return {**os.environ, "CONTAINERS_CONF": str(place)}

    def part_of(self, campaign: str, link: Link) -> tuple[str, ...]:
        name = lines.bridge_name(campaign)
        return ("--opt", f"mtu={link.mtu}", "--interface-name", name, "--gateway", lines.gateway(link))

    def unavailable(self) -> str:
        reason = super().unavailable()
        if not reason and not any(map(process.installed, FIREWALLS)):
            return f"neither {' nor '.join(FIREWALLS)} is installed: Podman's networks need one of them"
        return reason

    def limit_problems(self) -> Sequence[Problem]:
        if os.geteuid() == 0:
            return ()
        reason, remedy = undelegated(Path("/sys/fs/cgroup"), os.getuid())
        return [Problem.blocker(reason, remedy)] if reason else ()


def undelegated(root: Path, uid: int) -> tuple[str, str]:
    """Why Podman cannot limit CPUs and memory for this user, and the remedy; both are empty when it can."""
    if not (root / "cgroup.controllers").exists():
        return (
            "Podman without root cannot limit CPUs and memory on cgroup version 1",
            "run as root, or boot with cgroup version 2 (systemd.unified_cgroup_hierarchy=1)",
        )
    place = root / f"user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
    given = set(place.read_text().split()) if place.exists() else set()
    missing = sorted({"cpu", "cpuset", "memory", "pids"} - given)
    if not missing:
        return "", ""
    return (
        f"Podman without root cannot limit nodes: {', '.join(missing)} not delegated to this user",
        "run as root, or give user@.service a drop-in with [Service] Delegate=cpu cpuset memory pids",
    )


def containers_conf(nofile: int, nproc: int, systemd: bool, hybrid: bool, netavark: bool) -> str:
    """Podman's configuration for vtax's calls only. crun refuses hybrid cgroups, so runc is used there."""
    parts = ["[containers]"]
    limits = [f"{name}={value}:{value}" for name, value in (("nofile", nofile), ("nproc", nproc)) if value > 0]
    parts.append(f"default_ulimits = {json.dumps(limits)}")
    if netavark:
        parts += ["[network]", 'network_backend = "netavark"']
    parts.append("[engine]")
    if not systemd:
        parts += ['cgroup_manager = "cgroupfs"', 'events_logger = "file"']
    if hybrid and shutil.which("runc"):
        parts.append('runtime = "runc"')
    return "\n".join(parts) + "\n"
