"""The running processes of nodes and switches, found and identified by their command lines."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vtax.errors import ProvisionError
from vtax.providers.base import LABEL
from vtax.providers.guest.guest_config import NAME
from vtax.providers.qemu import switch, user
from vtax.providers.qemu.command import QEMU, Machine
from vtax.providers.qemu.descriptors import home

POLL_S = 0.01
END_S = 10.0  # for a process that was killed; freeing many GiB of memory takes a second
SWITCH = Path(switch.__file__)


class Process:
    """A node's process, or a switch (then `node` is ""); `place` is the directory of its files."""

    def __init__(self, pid: int, campaign: str, node: str, place: Path) -> None:
        self.pid, self.campaign, self.node, self.place = pid, campaign, node, place
        self.started = start_time(pid)

    def alive(self) -> bool:
        return self.started != "" and start_time(self.pid) == self.started

    def kill(self) -> None:
        """Send SIGKILL."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)


def end(group: Sequence[Process]) -> list[Process]:
    """Kill processes, and return when all have ended, or those that have not after `END_S`: a process that waits for a
    device in the kernel ends when the device answers."""
    remaining = [one for one in group if one.alive()]
    for one in remaining:
        one.kill()
    deadline = time.monotonic() + END_S
    while remaining and time.monotonic() < deadline:
        time.sleep(POLL_S)
        remaining = [one for one in remaining if one.alive()]
    return remaining


def unkillable(remaining: Sequence[Process]) -> ProvisionError:
    """The error that says which processes are still there."""
    which = ", ".join(f"{one.node or 'switch'} ({one.pid})" for one in remaining)
    return ProvisionError(
        f"processes of {remaining[0].campaign} were killed, but have not ended after {END_S:g} s: {which}",
        remedy="they wait for a device or a file system that does not answer (state D in `ps`); when it does, or after "
        "a restart of this machine, run `vtax clean` again",
    )


def start_time(pid: int) -> str:
    """When a process started, which distinguishes it from a later one of the same number; "" when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def ended(machine: Machine) -> str:
    """Why a node will never be ready, "" while its process runs."""
    with suppress(OSError, ValueError):
        if start_time(int((machine.directory / "pid").read_text())) != "":
            return ""
    return "QEMU has ended"


def processes() -> list[Process]:
    """All processes of this user, or of one that only this user's vtax gives a cluster, that run nodes or switches,
    whichever vtax instance started them.

    Not those with another root directory: they belong to a vtax in a container, whose files cannot be seen from here.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if not (entry / "root").samefile("/"):
                continue
            words = entry / "cmdline"
            owner = owner_of(words.read_bytes().decode(errors="replace").split("\0"))
            if owner is not None and user.is_ours(owner[0], words.stat().st_uid):
                found.append(Process(int(entry.name), *owner))
        except OSError:
            continue  # gone meanwhile, or not this user's to look at
    return found


def owner_of(words: Sequence[str]) -> tuple[str, str, Path] | None:
    """Campaign, node and directory of a node or switch by its command line; None for any other process."""
    if Path(words[0]).name == QEMU and "-name" in words:
        name = NAME.match(words[words.index("-name") + 1].partition(",")[0])
        place = home(words)
        return (name[1], name[2], place) if name and place else None
    if len(words) > 5 and Path(words[3]).name == SWITCH.name:
        label, _, campaign = words[4].partition("=")
        return (campaign, "", Path(words[5]).parent) if label == LABEL else None
    return None
