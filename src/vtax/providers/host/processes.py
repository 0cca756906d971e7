"""Processes of this user inside host environments: found by the command line of `vtax-enter`, and ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vtax.facts.processes import parent_of
from vtax.providers.base import LABEL, Site, elsewhere
from vtax.providers.host import entering


class Process(NamedTuple):
    """A process inside a host environment; `site` is the directory of its node."""

    pid: int
    campaign: str
    site: str

    def elsewhere(self, runtime: Path) -> str:
        return elsewhere(runtime, self.campaign, Path(self.site))

    def kill(self) -> None:
        """Send SIGKILL, unless the number is another process's by now."""
        with suppress(ProcessLookupError):
            held = os.pidfd_open(self.pid)
            try:
                if process_at(Path(f"/proc/{self.pid}")) == self:
                    signal.pidfd_send_signal(held, signal.SIGKILL)
            finally:
                os.close(held)


def labelled() -> list[Process]:
    """This user's processes inside host environments."""
    found = (process_at(place) for place in Path("/proc").glob("[0-9]*"))
    return [one for one in found if one is not None]


def process_at(place: Path) -> Process | None:
    """The process with this directory, if it is one of a host environment: its command line contains the label, then
    root and site. A command line is what a program wants it to be, so the process must also belong to this user and
    have this machine's root directory or the root that it names."""
    try:
        words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None  # gone meanwhile
    labels = [number for number, word in enumerate(words) if word.startswith(f"{LABEL}=")]
    if not labels or len(words) <= labels[0] + 2 or not any(word.endswith(entering.PROGRAM) for word in words):
        return None
    campaign, root, site = words[labels[0]].partition("=")[2], *words[labels[0] + 1 : labels[0] + 3]
    return Process(int(place.name), campaign, site) if _is_mine(place, root) else None


def first_inside(site: Site, node: str) -> int | None:
    """The process of this machine that entered a node first; None where it is not to be seen."""
    inside = [one.pid for one in labelled() if one.site == str(site.directory / node)]
    return next((pid for pid in inside if parent_of(pid) not in inside), None)


def holder(site: Site) -> int | None:
    """The process that holds the mounts of an ordinary user's cluster."""
    mine = (site.campaign, str(site.directory))
    return next((one.pid for one in labelled() if (one.campaign, one.site) == mine), None)


def _is_mine(process_: Path, root: str) -> bool:
    with suppress(OSError):  # gone meanwhile, or not this user's to look at
        mine = process_.stat().st_uid == os.geteuid()
        return mine and any((process_ / "root").samefile(one) for one in ("/", root))
    return False


def of_campaign(campaign: str, runtime: Path) -> list[Process]:
    """Those of a campaign with this run-time directory."""
    return [one for one in labelled() if one.campaign == campaign and not one.elsewhere(runtime)]
