"""Nodes of the host environment that have a network: their own /etc and home directory, and an SSH server in each."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import time
from pathlib import Path

from vtax.cluster.seed import hosts, seed
from vtax.errors import ProvisionError
from vtax.model.nodes import ClusterShape
from vtax.providers import network
from vtax.providers.base import Site
from vtax.transport import process
from vtax.transport.local import ENVIRONMENT

FIRST_PROCESS = ("node-init",)  # the same as in containers
CAPABILITIES = {  # of the server and of what logs in; no other command on the host has any
    "audit_write": "where the kernel audits, sshd ends a login that it cannot report",
    "net_bind_service": "port 22",
    "setgid": "sshd gives up its groups before it looks at what a client sends",
    "setuid": "and its user; a login sets both",
    "sys_chroot": "and the file system, for an empty directory",
}
SERVING = r"^Server listening on \S+ port {port}\."
READY_S = 20.0
POLL_S = 0.01
OWN = ("etc/ssh", "root")  # what a node has instead of the root file system's


def write_files(site: Site, shape: ClusterShape, name: str, port: int) -> None:
    """The files of one node: those of the root file system, and the seed that a container would get."""
    place, root = site.directory / name, Path(site.image.directory)
    places = network.places(site, shape)
    for part in OWN:
        shutil.copytree(root / part, place / part, symlinks=True, dirs_exist_ok=True)
    own = seed(
        site.keys,
        name,
        places,
        network.slots(site, shape),
        port=port,
        interface=site.link.interface if site.link else "",
    )
    with tarfile.open(fileobj=io.BytesIO(own)) as archive:
        for member in archive:  # all are files; `extractall` without a filter warns, with one Debian 12's Python fails
            content, path = archive.extractfile(member), place / member.name
            assert content is not None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(content.read())
            path.chmod(member.mode)
    (place / "etc" / "hosts").write_text(hosts(places))


def start_server(command: tuple[str, ...], name: str, log: Path, port: int) -> tuple[float, float]:
    """Start what `server` says in the background, and return when it accepts connections: when it printed its first
    line, and when it accepted them, on the monotonic clock. Raises ProvisionError."""
    deadline = time.monotonic() + READY_S
    process.run(command, timeout_s=READY_S, env=ENVIRONMENT, stdout=log, stderr=log, check=True)
    first, serving = None, re.compile(SERVING.format(port=port), re.MULTILINE)
    while (now := time.monotonic()) < deadline:
        printed = log.read_text(errors="replace")
        first = now if first is None and printed else first
        if first is not None and serving.search(printed):
            return first, now
        time.sleep(POLL_S)
    raise ProvisionError(
        f"{name}: its SSH server did not start in {READY_S:g} s",
        detail="\n".join(log.read_text(errors="replace").splitlines()[-12:]),
        remedy="the lines above say why; is the machine overloaded?",
    )


def server(entered: tuple[str, ...]) -> tuple[str, ...]:
    """The command that starts a node's first process in the background; it outlives vtax, as a container's does."""
    return ("setsid", "--fork", *entered)
