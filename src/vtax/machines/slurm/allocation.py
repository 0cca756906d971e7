"""One allocation of Slurm: asked for, waited for, held while vtax runs, and given back.

`salloc` holds it. What salloc runs reads a pipe from vtax, so that the allocation ends with vtax, however that ends.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vtax.errors import AllocationEnded, EnvironmentMissing, VtaxError
from vtax.machines.slurm import commands
from vtax.machines.slurm.refusals import refuse
from vtax.model.study import SlurmSpec
from vtax.transport import process
from vtax.units import format_seconds

PREFIX = "vtax-"  # of a job's name
FIRST_S, POLL_S = 0.2, 5.0  # between two looks at the queue
END_S = 10.0
OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE", "OUT_OF_MEMORY", "REVOKED")
WHY = {
    "CANCELLED": "it was cancelled",
    "TIMEOUT": "its time limit was reached",
    "NODE_FAIL": "one of its nodes failed",
    "PREEMPTED": "it was preempted",
    "COMPLETED": "it was ended",
}
Say = Callable[[str], None]


class Allocation:
    """The nodes of one table of a study, while this process has them."""

    def __init__(self, spec: SlurmSpec) -> None:
        self.spec, self.name = spec, f"{PREFIX}{secrets.token_hex(4)}"
        self.job, self.nodes = "", ()
        self.holder: process.Popen | None = None
        self.constrained = False
        self.known: Mapping[str, Mapping[str, Any]] = {}  # node -> its facts, which hold while this process has it
        self.asking = threading.Lock()

    job: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"Slurm's job {self.job}" if self.job else f"the allocation of {self.spec.name}"

    def request(self, say: Say) -> None:
        """Have it. Raises UsageError for what cannot be given, EnvironmentMissing when it does not start in time."""
        refuse(self.spec)
        self.constrained = commands.constrains(commands.settings(commands.must("scontrol", "show", "config")))
        with process.in_memory() as said:
            self.holder = process.talk(commands.allocate(self.spec, self.name, owner()), said)
            try:
                line = self._waited(said, say)
            except BaseException:
                self.release()
                raise
        self.job, given = line.split()
        self.nodes = tuple(commands.must("scontrol", "show", "hostnames", given).split())
        say(f"{self} has {' '.join(self.nodes)}")

    def _waited(self, said: Any, say: Say) -> str:
        """What the job says when it has its nodes. Meanwhile, the state of the queue is shown when it changes."""
        assert self.holder is not None and self.holder.stdout is not None
        began, shown, text = time.monotonic(), "", b""
        waiting = select.poll()
        waiting.register(self.holder.stdout.fileno(), select.POLLIN)
        while True:
            passed_s = time.monotonic() - began
            if waiting.poll(1000 * min(POLL_S, max(FIRST_S, passed_s / 4))):
                chunk = os.read(self.holder.stdout.fileno(), 4096)
                if not chunk:
                    raise self._refused(said, shown)
                text += chunk
                begin = text.decode(errors="replace").rpartition(commands.READY)[2]
                if commands.READY.encode() in text and begin.endswith("\n"):
                    return begin.strip()
                continue
            state = self._queued()
            if state and state != shown:
                shown = state
                say(f"machines.{self.spec.name}: {state}")
            if passed_s > self.spec.wait_s:
                raise EnvironmentMissing(
                    f"machines.{self.spec.name}: its job did not start within {format_seconds(self.spec.wait_s)}",
                    detail=shown,
                    remedy="look at the partition with `sinfo`, ask for less, or set a longer `wait` in its `slurm`",
                )

    def _queued(self) -> str:
        """What the queue says of it."""
        with suppress(VtaxError):
            for line in commands.must(
                "squeue", "--noheader", f"--name={self.name}", "--format=%i|%T|%r|%S"
            ).splitlines():
                job, state, reason, start = line.split("|", 3)
                self.job = job.strip()
                when = "" if start in ("N/A", "") else f", start expected at {start.replace('T', ' ')}"
                return f"job {self.job} is {state} ({reason}){when}"
        return ""

    def _refused(self, said: Any, shown: str) -> EnvironmentMissing:
        said.seek(0)
        lines = [line.removeprefix("salloc: ") for line in said.read().decode(errors="replace").strip().splitlines()]
        return EnvironmentMissing(
            f"machines.{self.spec.name}: Slurm gave no allocation: {lines[-1] if lines else 'salloc ended'}",
            detail="\n".join([shown, *lines[:-1][-5:]]).strip(),
            remedy="`sinfo` and `squeue --me` show what there is; run it again when the partition has nodes",
        )

    def ended(self) -> str:
        """Why this process no longer has it; "" while it has, or while that is not known."""
        if self.holder is None:
            return f"{self} was given back"
        with suppress(VtaxError):
            deadline = time.monotonic() + END_S
            while (about := self._about()).get("JobState") == "COMPLETING" and time.monotonic() < deadline:
                time.sleep(POLL_S / 10)  # until Slurm says how it ended
            state = about.get("JobState", "")
            if state in OVER:
                return f"{self} ended: {WHY.get(state, state)}"
            if state == "COMPLETING" or (state and self.holder.poll() is not None):
                return f"{self} ended ({state}, {about.get('Reason', 'no reason')})"
            return ""
        return f"{self} ended" if self.holder.poll() is not None else ""

    def _about(self) -> dict[str, str]:
        return commands.fields(commands.must("scontrol", "show", "job", self.job, "--oneliner"))

    def refuse_ended(self) -> None:
        """Raise AllocationEnded when it has."""
        if why := self.ended():
            raise AllocationEnded(why, remedy="`vtax run --resume DIR` goes on in the next allocation")

    def facts(self, node: str) -> Mapping[str, Any]:
        """What Slurm says of this job and of one of its nodes."""
        with self.asking:  # once, for all of them
            if not self.known:
                job = self._about()
                said = commands.must("scontrol", "show", "node", ",".join(self.nodes), "--oneliner").splitlines()
                nodes = {one["NodeName"]: one for one in map(commands.fields, said) if "NodeName" in one}
                self.known = {name: self._facts(name, job, nodes.get(name, {})) for name in self.nodes}
        return self.known[node]

    def _facts(self, node: str, job: Mapping[str, str], about: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "job": self.job,
            "node": node,
            "partition": job.get("Partition", ""),
            "exclusive": job.get("OverSubscribe", "") == "NO",
            "constrained": self.constrained,
            "node_cpus": int(about.get("CPUTot", 0)),
            "job_cpus": int(job.get("NumCPUs", 0)) // max(1, len(self.nodes)),
            "node_memory_bytes": int(about.get("RealMemory", 0)) * 2**20,
            "time_limit_s": commands.seconds(job.get("TimeLimit", "")),
        }

    def release(self) -> None:
        """Give it back, or stop waiting for it. May be called twice."""
        holder, self.holder = self.holder, None
        if holder is None:
            return
        assert holder.stdin is not None and holder.stdout is not None
        with suppress(OSError):
            holder.stdin.close()
        if self.nodes:
            process.wait(holder, END_S)
        process.end(holder)
        holder.stdout.close()
        with suppress(VtaxError):  # it ends with its holder; this is for one that was asked for and not yet seen
            commands.ask("scancel", "--quiet", f"--user={os.geteuid()}", f"--name={self.name}")


def owner() -> str:
    """The process that a job belongs to, as its comment: machine, boot, process, when that began."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"vtax {socket.gethostname()} {boot} {os.getpid()} {began(os.getpid())}"


def began(pid: int) -> str:
    """When a process began, in ticks since the start of the system; "" when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
