"""Studies on the real Slurm of tests, and a user of vtax who runs them."""

from __future__ import annotations

from pathlib import Path

from integration.slurm_lab import NODES, USER, Slurm
from integration.user import CommandUser

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


class User(CommandUser):
    """A user of vtax on the machine that has Slurm's commands."""

    def __init__(self, cluster: Slurm, images: Path, place: Path, state: Path, directory: str = "") -> None:
        super().__init__(cluster.environment, images.parents[1], state, place, WAIT_S)
        self.cluster = cluster
        self.directory = directory or str(images.parent)

    def logs(self) -> str:
        return self.cluster.logs()

    def study(self, asked: str = TWO, rounds: int = 1, seconds: int = 1, text: str = STUDY) -> str:
        return str(self.written(text.format(rounds=rounds, seconds=seconds, directory=self.directory, slurm=asked)))

    def end(self) -> None:
        super().end()
        for name in ("root", USER[0]):
            self.cluster.controller("scancel", f"--user={name}")

    def running_trial(self) -> bool:
        """Whether a trial runs on a node."""
        nodes = (self.cluster.machines.machines[name] for name in NODES)
        return any("sysbench" in line for node in nodes for line in node.processes())

    def assert_nothing_is_left(self) -> None:
        self.wait(lambda: not self.cluster.jobs())
        self.wait(lambda: not self.processes())

    def processes(self) -> list[str]:
        """What runs on the nodes besides what always does."""
        nodes = (self.cluster.machines.machines[name] for name in NODES)
        return [line for node in nodes for line in node.processes() if not daemon(line)]


def daemon(line: str) -> bool:
    return any(line.startswith(name) for name in ("munged", "slurmd", "[slurmd]", "slurmctld", "/usr/sbin/slurm"))
