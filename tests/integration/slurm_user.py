"""Studies on the real Slurm of tests, and a user of vtax who runs them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from integration.slurm_lab import NODES, USER, Slurm
from vtax.model.trial import Status
from vtax.store import Campaign

STUDY = """\
name = "two"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
[environments.bridged]
provider = "host"
network = "bridge"
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = {seconds}
[machines.cluster]
directory = "{directory}"
slurm = {{ {slurm} }}
"""
SPREAD = """\
name = "across"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
network = "host"
[environments.bridged]
provider = "host"
network = "bridge"
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
place = "spread"
[[benchmarks]]
name = "ping"
count = 5
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = {seconds}
[machines.cluster]
directory = "{directory}"
slurm = {{ {slurm} }}
"""
SRUN = """\
name = "started"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
network = "host"
[environments.slurm]
provider = "host"
network = "host"
launcher = "srun"
[nodes]
workers = 1
cpus = 2
memory = "512 MiB"
place = "spread"
[[benchmarks]]
name = "hpl"
n = 500
scopes = ["cluster"]
[machines.cluster]
directory = "{directory}"
slurm = {{ {slurm} }}
"""
LONG = SRUN.replace("n = 500", "n = 6000").replace('baseline = "host"', 'baseline = "slurm"')
TWO = 'nodes = 2, time = "10 min"'
WAIT_S = 180.0


class User:
    """A user of vtax on the machine that has Slurm's commands."""

    def __init__(self, cluster: Slurm, images: Path, place: Path, state: Path, directory: str = "") -> None:
        self.cluster, self.images, self.place = cluster, images, place
        self.directory = directory or str(images.parent)
        self.environment = {
            **cluster.environment,
            "XDG_STATE_HOME": str(state),
            "XDG_CACHE_HOME": str(images.parents[1]),
        }
        self.campaign = place / "campaign"
        self.started: subprocess.Popen[bytes] | None = None

    def study(self, asked: str = TWO, rounds: int = 1, seconds: int = 1, text: str = STUDY) -> str:
        path = self.place / "study.toml"
        path.write_text(text.format(rounds=rounds, seconds=seconds, directory=self.directory, slurm=asked))
        return str(path)

    def vtax(self, *words: str, code: int = 0) -> str:
        """What vtax prints."""
        made = subprocess.run(
            (sys.executable, "-m", "vtax", *words),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            cwd=self.place,
        )
        said = made.stdout + made.stderr
        assert made.returncode == code, said + self.cluster.logs()
        return said

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.place / "log").open("wb") as log:
            self.started = subprocess.Popen(
                (sys.executable, "-m", "vtax", *words),
                env=self.environment,
                stdout=log,
                stderr=log,
                cwd=self.place,
                start_new_session=True,
            )
        return self.started

    def end(self) -> None:
        """End what still runs."""
        if self.started is not None:
            self.started.kill()
            self.started.wait()
        for name in ("root", USER[0]):
            self.cluster.controller("scancel", f"--user={name}")

    def log(self) -> str:
        return (self.place / "log").read_text()

    def wait(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not what():
            assert time.monotonic() < deadline, self.log() + self.cluster.logs()
            time.sleep(0.1)

    def running_trial(self) -> bool:
        """Whether a trial runs on a node."""
        nodes = (self.cluster.machines.machines[name] for name in NODES)
        return any("sysbench" in line for node in nodes for line in node.processes())

    def statuses(self) -> dict[str, Status]:
        return {one.id: one.status for one in Campaign.open(self.campaign).trials(texts=False)}

    def assert_nothing_is_left(self) -> None:
        self.wait(lambda: not self.cluster.jobs())
        self.wait(lambda: not self.processes())

    def processes(self) -> list[str]:
        """What runs on the nodes besides what always does."""
        nodes = (self.cluster.machines.machines[name] for name in NODES)
        return [line for node in nodes for line in node.processes() if not daemon(line)]


def daemon(line: str) -> bool:
    return any(line.startswith(name) for name in ("munged", "slurmd", "[slurmd]", "slurmctld", "/usr/sbin/slurm"))
