"""What this machine's kernel and its NFS programs can do, and what they do now, read below `root`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from vtax.facts.machine import read
from vtax.transport import process

OWN = re.compile(r"/run/vtax-[0-9a-f]{8}-[0-9a-f]{8}")  # where vtax exports a directory, and where it mounts one
PORT = 2049
VERSION = "4.2"
SERVER = ("exportfs", "rpc.nfsd", "rpc.mountd")
DAEMON = "rpc.mountd"
LISTENS = "0A"  # the state of a socket in /proc/net/tcp
SYS_ADMIN = 1 << 21
IDENTICAL = ["0", "0", str(2**32 - 1)]  # the map of a user namespace in which root is the machine's own
UNFIT = {  # file systems that cannot be exported as they are -> why
    "overlay": "an overlay, which NFS cannot serve",
    "nfs": "NFS already",
    "nfs4": "NFS already",
}
COMMAND_S = 30.0


def cannot_serve(directory: Path, root: Path = Path("/")) -> str:
    """Why this machine cannot serve a directory below `directory` to others; "" when it can. Changes nothing."""
    if reason := _without_rights(root):
        return reason
    if missing := [name for name in SERVER if not process.installed(name)]:
        return f"the program {missing[0]} is not installed (apt-get install nfs-kernel-server)"
    if reason := _without_module(root, "nfsd", "nfsd"):
        return reason
    kind = _filesystem(directory, root)
    if kind in UNFIT or kind.startswith("fuse"):
        return f"the file system of {directory} is {UNFIT.get(kind, kind)}"
    return _wrong_server(root)


def _wrong_server(root: Path) -> str:
    """Why an NFS server that runs, or what is in its place, does not do."""
    others = [options for place, _, options in exports(root) if not OWN.fullmatch(place)]
    if threads(root) == 0:
        if listening(root):
            return f"port {PORT} is taken by another program"
        if others:
            return "exports of an NFS server that does not run are in /var/lib/nfs/etab (exportfs -ua removes them)"
    elif f"+{VERSION}" not in read(root / "proc/fs/nfsd/versions").split():
        return f"the NFS server that runs there does not speak version {VERSION}"
    elif any("fsid=0" in one.split(",") or "fsid=root" in one.split(",") for one in others):
        return "the NFS server that runs there has a root of its own (fsid=0), outside of which nothing is seen"
    return ""


def cannot_mount(root: Path = Path("/")) -> str:
    """Why this machine cannot mount a directory of another one; "" when it can. Changes nothing."""
    if reason := _without_rights(root):
        return reason
    if not process.installed("mount.nfs4"):
        return "the program mount.nfs4 is not installed (apt-get install nfs-common)"
    return _without_module(root, "nfsv4", "nfs4")


def _without_rights(root: Path) -> str:
    granted = re.search(r"^CapEff:\s*([0-9a-f]+)", read(root / "proc/self/status"), re.MULTILINE)
    own = read(root / "proc/self/uid_map").split() in ([], IDENTICAL)
    if os.geteuid() == 0 and own and granted and int(granted[1], 16) & SYS_ADMIN:
        return ""
    return "it takes root with the right to mount (log in as root)"


def _without_module(root: Path, module: str, filesystem: str) -> str:
    if filesystem in filesystems(root):
        return ""
    if process.installed("modprobe"):
        command = ("modprobe", "--dry-run", "--quiet", module)
        found = process.run(command, timeout_s=COMMAND_S, env=process.system_environment())
        if found.exit_code == 0:
            return ""
    return f"its kernel has no module {module}"


def filesystems(root: Path) -> set[str]:
    """The kinds that the kernel knows now."""
    return {line.split()[-1] for line in read(root / "proc/filesystems").splitlines() if line.strip()}


def mounted(root: Path) -> Iterator[tuple[str, str]]:
    """Mount point, as the kernel writes it, and file system type of every mount, in order."""
    for line in read(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        if len(before.split(" ")) > 4 and after:
            yield before.split(" ")[4], after.split(" ")[0]


def _filesystem(directory: Path, root: Path) -> str:
    """The type of the file system of a directory, or of the first directory above it that is there."""
    there = next(place for place in (directory, *directory.parents) if place.exists() or place == place.parent)
    resolved, found = there.resolve(), ("/", "")
    for point, kind in mounted(root):
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point)
        if resolved.is_relative_to(place) and len(place) >= len(found[0]):
            found = place, kind
    return found[1]


def threads(root: Path) -> int:
    """Of the kernel's NFS server; 0 where none runs."""
    said = read(root / "proc/fs/nfsd/threads").strip()
    return int(said) if said.isdigit() else 0


def listening(root: Path) -> bool:
    """Whether anything has the server's port."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in read(root / f"proc/net/{name}").splitlines()[1:]]
    return any(len(one) > 3 and one[1].endswith(f":{PORT:04X}") and one[3] == LISTENS for one in lines)


def exports(root: Path) -> list[tuple[str, str, str]]:
    """Directory, client and options of what is exported now."""
    lines = (line.split("\t", 1) for line in read(root / "var/lib/nfs/etab").splitlines())
    pairs = ((one[0], one[1].partition("(")) for one in lines if len(one) == 2)
    return [(place, client, options.rstrip(")\n")) for place, (client, _, options) in pairs]


def daemons(root: Path) -> list[int]:
    """The processes of this network that answer the kernel's questions about exports."""
    here = _network(root / "proc/self")
    found = (place for place in (root / "proc").glob("[0-9]*") if read(place / "comm").strip() == DAEMON)
    return [int(one.name) for one in found if _network(one) == here]


def _network(place: Path) -> str:
    try:
        return str((place / "ns/net").readlink())
    except OSError:
        return ""
