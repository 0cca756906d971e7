"""A directory of one machine that others mount by NFS: exported, mounted, found again and removed here.

The server is the machine's kernel. One that runs already stays as it is, with one export more and later one less; else
vtax starts it, and stops it after its last export. On every machine the directory is /run/NAME, which no other user can
choose and which needs no quoting: on the server a bind mount of one on the disk with vtax's files. What was made is
noted before it is made, so that it is found after a crash; a reboot removes notes and mounts alike.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from vtax import files
from vtax.errors import CommandError, ProvisionError
from vtax.facts.machine import read
from vtax.machines import nfs_kernel as kernel
from vtax.model.link import Address
from vtax.model.names import CampaignId
from vtax.model.record import Record
from vtax.model.trial import CommandResult
from vtax.providers.base import Leftover, elsewhere
from vtax.store import write_atomic
from vtax.transport import process

ShareName = Annotated[str, Field(pattern=r"^vtax-[0-9a-f]{8}-[0-9a-f]{8}$")]
RUN, NOTES, SERVER = "run", "run/vtax-nfs", "server"
# As the guests of virtual machines mount theirs: a server that does not answer is an error after two minutes.
MOUNT = f"vers={kernel.VERSION},proto=tcp,softerr,timeo=600,retrans=1,retry=0,noatime"
THREADS = 8
SETTINGS = ("versions", "nfsv4leasetime", "nfsv4gracetime")  # that starting a server changes, or may
COMMAND_S, MOUNT_S = 30.0, 150.0
FORCED = ("-f", "-l")  # what waits for an answer of the server gets an error, and the mount goes in any case
CONNECT_S = 20.0
LOCK_S = 60.0
TCP = f"open TCP port {kernel.PORT} between the machines, or set nfs = false in [shared]"


class Share(Record):
    """One directory on this machine. `server` is where it is mounted from; None on the machine that serves it."""

    name: ShareName
    label: CampaignId
    runtime: str
    server: Address | None = None

    @property
    def place(self) -> str:
        return f"/{RUN}/{self.name}"

    @property
    def backing(self) -> Path:
        """Where the files are, on the machine that serves them."""
        return Path(self.runtime) / self.label / self.name

    @property
    def fsid(self) -> str:
        """By which clients know the export, whatever its file system."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:32]


class Started(Record):
    """A server that vtax started, and what of it was not there before: the module, the mount of the kernel's directory
    for it, a daemon."""

    boot: str
    loaded: bool
    mounted: bool
    daemon: bool
    settings: Mapping[str, str] = Field(default_factory=dict)


class Shares:
    """Those of this machine. `runtime` is where vtax has the files of its clusters."""

    def __init__(self, runtime: Path, root: Path = Path("/")) -> None:
        self.runtime, self.root = runtime, root
        self.notes = root / NOTES

    def serve(self, label: str, name: str, clients: tuple[str, ...]) -> None:
        """Make the directory, and export it to these addresses alone. Raises CommandError or ProvisionError; `release`
        then removes what was made."""
        with self._alone():
            share = Share(name=name, label=label, runtime=str(self.runtime))
            self._note(name, share)
            share.backing.mkdir(mode=0o700, parents=True)
            self._place(share).mkdir(mode=0o700)
            self._must("mount", "--bind", str(share.backing), share.place)
            self._start()
            for client in clients:
                options = f"rw,no_root_squash,no_subtree_check,fsid={share.fsid}"
                self._must("exportfs", "-i", "-o", options, f"{client}:{share.place}")

    def mount(self, label: str, name: str, server: str) -> None:
        """Mount the directory of the machine with this address. Raises ProvisionError."""
        with self._alone():
            share = Share(name=name, label=label, runtime=str(self.runtime), server=server)
            self._note(name, share)
            self._place(share).mkdir(mode=0o700)
            source = f"{server}:{share.place}"
            _refuse_unreachable(server)
            made = self._run("mount", "-t", "nfs4", "-o", MOUNT, source, share.place, timeout_s=MOUNT_S)
            if made.exit_code != 0 or made.timed_out:
                why = "there was no answer in time" if made.timed_out else made.stderr.strip()
                raise ProvisionError(f"{source} cannot be mounted", detail=why, remedy=TCP)

    def release(self, label: str) -> None:
        """Remove what belongs to a cluster; fine when there is nothing. Raises ProvisionError for what stays."""
        if not any(share.label == label for share in self._shares()):
            return
        with self._alone():
            for share in self._shares():
                if share.label == label:
                    self._remove(share)

    def ended(self, label: str, destroy: Callable[[str], None]) -> None:
        """Let `destroy` remove the nodes of a cluster. A program that waits for a server that is gone does not even end
        when it is killed, so where nodes stay, what they wait for is given up first. Raises what `destroy` raises."""
        try:
            destroy(label)
        except (ProvisionError, CommandError):
            if not self._given_up(label):
                raise
            destroy(label)

    def _given_up(self, label: str) -> bool:
        """Unmount what a cluster has of other machines, whoever uses it. Returns whether there was any."""
        mounts = [share.place for share in self._shares() if share.label == label and share.server]
        for place in mounts:
            self._unmount(place, FORCED)
        return bool(mounts)

    def leftovers(self) -> list[Leftover]:
        """All that is noted, with the owner of what another vtax instance made."""
        return [
            Leftover(
                "nfs",
                "mount" if one.server else "export",
                one.place,
                one.label,
                elsewhere=elsewhere(self.runtime, one.label, Path(one.runtime) / one.label),
            )
            for one in self._shares()
        ]

    def _remove(self, share: Share) -> None:
        if share.server is None:
            for place, client, _ in kernel.exports(self.root):
                if place == share.place:
                    self._run("exportfs", "-u", f"{client}:{place}")
            if not any(one.server is None and one.name != share.name for one in self._shares()):
                self._stop()
            if kernel.threads(self.root):
                self._run("exportfs", "-f")  # what the kernel knows of an export keeps its mount in use
        self._unmount(share.place)
        if share.server is None and share.backing.exists():
            shutil.rmtree(share.backing)
        with suppress(FileNotFoundError):
            self._place(share).rmdir()
        (self.notes / share.name).unlink(missing_ok=True)

    def _unmount(self, place: str, *ways: tuple[str, ...]) -> None:
        """Whether its server answers or not: without a look at what is mounted, and at last without waiting for it."""
        for how in ways or ((), FORCED):
            if self._is_mounted(place):
                self._run("umount", "-i", "-c", *how, place)
        if self._is_mounted(place):
            raise ProvisionError(f"{place} cannot be unmounted", remedy="`umount -f -l` by hand, then `vtax clean`")

    def _is_mounted(self, place: str) -> bool:
        return any(point == place for point, _ in kernel.mounted(self.root))

    # --- the server ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the kernel's server where none runs."""
        if kernel.threads(self.root):
            return
        known = {one.place for one in self._shares()}
        for place, client, _ in kernel.exports(self.root):
            if kernel.OWN.fullmatch(place) and place not in known:  # the machine stopped while it was exported
                self._run("exportfs", "-u", f"{client}:{place}")
        state = self.root / "proc/fs/nfsd"
        begun = Started(
            boot=self._boot(),
            loaded="nfsd" not in kernel.filesystems(self.root),
            mounted=not any(kind == "nfsd" for _, kind in kernel.mounted(self.root)),
            daemon=not kernel.daemons(self.root),
        )
        self._note(SERVER, begun)
        if begun.loaded:
            self._must("modprobe", "nfsd")
        if begun.mounted:
            self._must("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
        begun = begun.model_copy(update={"settings": {name: read(state / name).strip() for name in SETTINGS}})
        self._note(SERVER, begun)
        if begun.daemon:
            self._must(kernel.DAEMON, "-N", "3")
        self._must("rpc.nfsd", "-N", "3", "-V", kernel.VERSION, str(THREADS))
        # Nobody has locks to reclaim on a server that has never run. One that others used waits for these.
        with suppress(OSError):
            (state / "v4_end_grace").write_text("Y")

    def _stop(self) -> None:
        """Stop the server if vtax started it, and nothing else is exported since."""
        note = self.notes / SERVER
        try:
            begun = Started.model_validate_json(note.read_bytes())
        except (OSError, ValidationError):
            begun = None
        others = [place for place, _, _ in kernel.exports(self.root) if not kernel.OWN.fullmatch(place)]
        if begun is not None and begun.boot == self._boot() and not others:
            self._stopped(begun)
        note.unlink(missing_ok=True)

    def _stopped(self, begun: Started) -> None:
        if kernel.threads(self.root):
            self._must("rpc.nfsd", "0")
        for daemon in kernel.daemons(self.root) if begun.daemon else ():
            with suppress(ProcessLookupError):
                os.kill(daemon, signal.SIGTERM)
        for name, text in begun.settings.items():
            with suppress(OSError):  # a kernel may show what it does not take back
                (self.root / "proc/fs/nfsd" / name).write_text(text)
        if begun.mounted:
            self._unmount("/proc/fs/nfsd")
        if begun.loaded:
            self._run("modprobe", "--remove", "--quiet", "nfsd")  # it stays where something else uses it by now

    def _boot(self) -> str:
        return read(self.root / "proc/sys/kernel/random/boot_id").strip()

    # --- notes and commands -------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other vtax on this machine does the same."""
        self.notes.mkdir(mode=0o700, parents=True, exist_ok=True)
        deadline = time.monotonic() + LOCK_S
        while True:
            with files.locked(self.notes / "lock") as mine:
                if mine:
                    yield
                    return
            if time.monotonic() > deadline:
                raise ProvisionError("another vtax exports or mounts a directory just now", remedy="try again")

    def _shares(self) -> list[Share]:
        """What is noted; a note that says nothing that vtax writes is nobody's."""
        found = []
        for path in sorted(self.notes.glob("vtax-*")):
            with suppress(OSError, ValidationError):
                found.append(Share.model_validate_json(path.read_bytes()))
        return found

    def _note(self, name: str, note: Record) -> None:
        write_atomic(self.notes / name, note.model_dump_json().encode())

    def _place(self, share: Share) -> Path:
        return self.root / RUN / share.name

    def _run(self, *argv: str, timeout_s: float = COMMAND_S) -> CommandResult:
        return process.run(argv, timeout_s=timeout_s, env=process.system_environment())

    def _must(self, *argv: str) -> None:
        made = self._run(*argv)
        if made.exit_code != 0 or made.timed_out:
            raise process.failed(made, remedy="set nfs = false in [shared] to do without")


def _refuse_unreachable(server: str) -> None:
    """Raise ProvisionError, in seconds, where a mount would be tried for minutes."""
    try:
        socket.create_connection((server, kernel.PORT), CONNECT_S).close()
    except OSError as error:
        what = f"the NFS server at {server} cannot be reached: {error.strerror or error}"
        raise ProvisionError(what, remedy=TCP) from error
