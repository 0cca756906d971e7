"""Jobs that vtax asked for and whose process is gone."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple

from vtax.machines.slurm import commands
from vtax.machines.slurm.allocation import PREFIX, began


class Job(NamedTuple):
    """A job of this user that vtax asked for; `elsewhere` is the machine whose vtax did."""

    number: str
    name: str
    state: str
    elsewhere: str
    in_use: bool


def jobs() -> list[Job]:
    """All that the queue has of this user, by their names and comments."""
    form = "--format=%i|%T|%j|%k"
    lines = commands.must("squeue", "--noheader", f"--user={os.geteuid()}", form).splitlines()
    return [job for line in lines if (job := parsed(line)) is not None]


def parsed(line: str) -> Job | None:
    """A line of the queue; None for a job that is not vtax's."""
    number, state, name, comment = (*line.split("|", 3), "", "", "")[:4]
    words = comment.split()
    if not name.startswith(PREFIX) or len(words) != 5 or words[0] != "vtax":
        return None
    _, host, boot, pid, since = words
    if host != socket.gethostname():
        return Job(number, name, state, host, in_use=True)
    running = boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip() and pid.isdigit()
    return Job(number, name, state, "", in_use=running and began(int(pid)) == since)


def cancel(found: list[Job]) -> list[Job]:
    """Cancel them, by number and name; those that are still there."""
    for job in found:
        commands.ask("scancel", "--quiet", f"--user={os.geteuid()}", f"--name={job.name}", job.number)
    gone = {job.number for job in found}
    return [job for job in jobs() if job.number in gone and job.state not in ("COMPLETING", "CANCELLED")]
