"""A machine on which NFS programs do to files below a directory what they do to a kernel."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from vtax.machines.nfs import Shares
from vtax.model.trial import CommandResult

PROGRAMS = ("exportfs", "rpc.nfsd", "rpc.mountd", "mount.nfs4", "modprobe", "mount", "umount")
ROOT = "1 0 259:0 / / rw - ext4 /dev/root rw\n"
DAEMON = 4242
HEADER = "sl local_address rem_address st\n"


class FakeMachine:
    """`installed` are its programs, `modules` what its kernel could load; `fails` are beginnings of commands that
    fail. `log` is what was run."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, loaded: Sequence[str] = ()) -> None:
        self.root, self.installed, self.modules = root, set(PROGRAMS), {"nfsd", "nfsv4"}
        self.fails: set[str] = set()
        self.stuck: set[str] = set()  # mount points of which a plain umount does not return
        self.log: list[str] = []
        self.closed: str = ""  # why no server can be reached
        self.killed: list[int] = []
        for place in ("proc/self/ns", "proc/net", "proc/fs/nfsd", "proc/sys/kernel/random", "run", "var/lib/nfs"):
            (root / place).mkdir(parents=True)
        self.write("proc/self/status", "Name:\tpython3\nCapEff:\t000001ffffffffff\n")
        self.write("proc/self/uid_map", "         0          0 4294967295\n")
        self.write("proc/self/mountinfo", ROOT)
        self.write("proc/sys/kernel/random/boot_id", "1f3c\n")
        self.write("proc/net/tcp", HEADER)
        self.write("proc/filesystems", "".join(f"nodev\t{name}\n" for name in ("proc", *loaded)) + "\text4\n")
        (root / "proc/self/ns/net").symlink_to("net:[1]")
        patch.setattr("vtax.transport.process.run", self.run)
        patch.setattr("vtax.transport.process.installed", lambda name: name in self.installed)
        patch.setattr("os.geteuid", lambda: 0)
        patch.setattr("os.kill", self.kill)
        patch.setattr("socket.create_connection", self.connect)

    @property
    def shares(self) -> Shares:
        return Shares(self.root / "vtax/run", self.root)

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def read(self, path: str) -> str:
        place = self.root / path
        return place.read_text() if place.exists() else ""

    def run(self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        line = " ".join(argv).replace(str(self.root), "")
        self.log.append(line)
        failed = any(line.startswith(one) for one in self.fails)
        code = 1 if failed else self.done(list(argv))
        return CommandResult(
            argv=tuple(argv), exit_code=code, stdout="", stderr="refused" if code else "", started=0.0, elapsed_s=0.0
        )

    def done(self, argv: list[str]) -> int:
        match argv:
            case ["modprobe", "--dry-run", "--quiet", name]:
                return 0 if name in self.modules else 1
            case ["modprobe", "nfsd"]:
                self.write("proc/filesystems", self.read("proc/filesystems") + "nodev\tnfsd\n")
            case ["modprobe", "--remove", "--quiet", "nfsd"]:
                self.write("proc/filesystems", self.read("proc/filesystems").replace("nodev\tnfsd\n", ""))
            case ["mount", "--bind", _, place]:
                self.mount(place, "ext4")
            case ["mount", "-t", kind, *_, place]:
                self.mount(place, kind)
                if kind == "nfsd":
                    self.write("proc/fs/nfsd/versions", "+3 +4 +4.1 +4.2\n")
            case ["umount", "-i", "-c", *how, place]:
                if place in self.stuck and not how:
                    return 32
                lines = self.read("proc/self/mountinfo").splitlines(keepends=True)
                self.write("proc/self/mountinfo", "".join(one for one in lines if one.split(" ")[4] != place))
            case ["exportfs", "-i", "-o", options, what]:
                client, _, place = what.partition(":")
                self.write("var/lib/nfs/etab", self.read("var/lib/nfs/etab") + f"{place}\t{client}({options})\n")
            case ["exportfs", "-u", what]:
                client, _, place = what.partition(":")
                lines = self.read("var/lib/nfs/etab").splitlines(keepends=True)
                kept = "".join(one for one in lines if not one.startswith(f"{place}\t{client}("))
                self.write("var/lib/nfs/etab", kept)
            case ["rpc.nfsd", *_, count]:
                self.write("proc/fs/nfsd/threads", f"{count}\n")
                self.write("proc/fs/nfsd/versions", "-3 +4 +4.1 +4.2\n")
            case ["rpc.mountd", *_]:
                self.process(DAEMON)
        return 0

    def mount(self, place: str, kind: str) -> None:
        self.write("proc/self/mountinfo", self.read("proc/self/mountinfo") + f"2 1 0:9 / {place} rw - {kind} x rw\n")

    def process(self, pid: int, name: str = "rpc.mountd", network: str = "net:[1]") -> None:
        """A daemon of a server."""
        (self.root / f"proc/{pid}/ns").mkdir(parents=True)
        (self.root / f"proc/{pid}/ns/net").symlink_to(network)
        self.write(f"proc/{pid}/comm", f"{name}\n")

    def kill(self, pid: int, number: int) -> None:
        self.killed.append(pid)
        shutil.rmtree(self.root / f"proc/{pid}")

    def other_server(self, export: str = "/srv\t*(rw,sync)\n", versions: str = "+3 +4 +4.1 +4.2\n") -> None:
        """One that somebody else has started."""
        self.done(["modprobe", "nfsd"])
        self.mount("/proc/fs/nfsd", "nfsd")
        self.write("proc/fs/nfsd/threads", "8\n")
        self.write("proc/fs/nfsd/versions", versions)
        self.write("var/lib/nfs/etab", export)
        self.process(99)

    def connect(self, address: tuple[str, int], timeout_s: float) -> socket.socket:
        if self.closed:
            raise OSError(111, self.closed)
        return socket.socket()

    def points(self) -> list[str]:
        """What is mounted but for the root."""
        return [line.split(" ")[4] for line in self.read("proc/self/mountinfo").splitlines()[1:]]
