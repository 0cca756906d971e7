"""A real Slurm for tests: a controller and two nodes, from Debian trixie, each with files and a network of its own.

They are machines as in `machines_lab`, over a root file system that has Slurm, made once. The commands of Slurm that
tests and vtax run are those of the controller's machine, entered from here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from integration import sid
from integration.machines_lab import Lab, lab

PACKAGES = (
    "slurm-wlm,munge,openssh-server,iproute2,iputils-ping,procps,util-linux,nftables,uidmap,openmpi-bin,python3-minimal"
)
NODES = ("c1", "c2")
COMMANDS = ("salloc", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
CONFIG = """\
ClusterName=lab
SlurmctldHost=c0
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=300
OverTimeLimit=0
StateSaveLocation=/var/lib/slurm/ctld
SlurmdSpoolDir=/var/lib/slurm/d
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/ctld.log
SlurmdLogFile=/var/log/slurm/d.log
SlurmdParameters=config_overrides
NodeName=c0 NodeAddr=10.213.0.11
NodeName=c1 NodeAddr=10.213.0.12 CPUs={cpus} RealMemory=4000 State=UNKNOWN
NodeName=c2 NodeAddr=10.213.0.13 CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=idle Nodes=c1,c2 Default=YES MaxTime=2:00:00 State=UP
PartitionName=closed Nodes=c2 MaxTime=1:00 State=DOWN
"""
# Of a shell, within single quotes. The key is one that no other cluster has.
SERVICES = """
printf "10.213.0.11 c0\\n10.213.0.12 c1\\n10.213.0.13 c2\\n" >/etc/hosts
mkdir -p /run/munge /var/lib/slurm/ctld /var/lib/slurm/d /var/log/slurm /var/log/munge /var/lib/munge
chmod u+w /etc/munge/munge.key; echo {key} >/etc/munge/munge.key
chown -R munge: /etc/munge /run/munge /var/log/munge /var/lib/munge
chmod 755 /run/munge; chmod 400 /etc/munge/munge.key
setpriv --reuid munge --regid munge --clear-groups munged --force
cat >/etc/slurm/slurm.conf <<END
{config}END
cat >/etc/slurm/cgroup.conf <<END
{cgroup}END
if [ "$(hostname)" = c0 ]; then slurmctld -c; else slurmd; fi
"""
READY_S = 60.0


@dataclass
class Slurm:
    """The cluster. What is run with its environment finds Slurm's commands first."""

    machines: Lab

    def controller(self, *argv: str) -> str:
        """What a command prints on the controller's machine."""
        return self.machines.machines["c0"].inside(*argv)

    def jobs(self) -> list[str]:
        """Jobs that have not ended: number and state."""
        return self.controller("squeue", "--noheader", "--format=%i %T").splitlines()

    def states(self) -> dict[str, str]:
        """Node -> its state in the partition that is open."""
        lines = self.controller("sinfo", "--noheader", "--Node", "--partition=idle", "--format=%N %T").splitlines()
        return dict(map(str.split, lines))

    def wait_idle(self) -> None:
        deadline = time.monotonic() + READY_S
        while set(self.states().values()) != {"idle"} or self.jobs():
            assert time.monotonic() < deadline, (self.states(), self.jobs(), self.logs())
            time.sleep(0.2)

    def logs(self) -> str:
        """The ends of the logs of its daemons."""
        made = []
        for name, machine in self.machines.machines.items():
            log = "ctld.log" if name == "c0" else "d.log"
            made.append(f"{name}: {machine.inside('tail', '-n', '15', f'/var/log/slurm/{log}')}")
        return "\n".join(made)


@contextlib.contextmanager
def slurm(cache: Path, images: Path, place: Path, task: str = "task/none") -> Iterator[Slurm]:
    """A cluster until the end. With `task` "task/none" it limits nothing."""
    tree = sid.tree(cache, "slurm-trixie", PACKAGES, "trixie")
    config = CONFIG.format(task=task, cpus=os.cpu_count())
    services = SERVICES.format(key=secrets.token_hex(64), config=config, cgroup="CgroupPlugin=disabled\n")
    with lab(("c0", *NODES), tree, images, place, services) as machines:
        made = Slurm(machines)
        _commands(made)
        made.wait_idle()
        yield made


def _commands(made: Slurm) -> None:
    """Programs of Slurm's names that run on the controller's machine."""
    pid = made.machines.machines["c0"].sshd
    for name in COMMANDS:
        program = made.machines.place / "bin" / name
        enter = f"nsenter -t {pid} -a --root=/proc/{pid}/root --wdns=/"
        program.write_text(f'#!/bin/sh\nexec {enter} /usr/bin/{name} "$@"\n')
        program.chmod(0o755)
