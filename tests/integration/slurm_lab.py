"""A real Slurm for tests: a controller and two nodes, from Debian trixie, each with files and a network of its own.

They are machines as in `machines_lab`, over a root file system that has Slurm, made once. The commands of Slurm that
tests and vtax run are those of the controller's machine, entered from here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from integration import sid
from integration.machines_lab import Lab, lab

PACKAGES = (
    "slurm-wlm,munge,openssh-server,iproute2,iputils-ping,procps,util-linux,nftables,uidmap,openmpi-bin,"
    "python3-minimal,podman"
)
NODES = ("c1", "c2")
USER = ("worker", 1000)  # an ordinary one, with subordinate ids
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
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
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
PartitionName=urgent Nodes=c1,c2 MaxTime=2:00:00 State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=closed Nodes=c2 MaxTime=1:00 State=DOWN
"""
# Slurm limits the CPUs and the memory of jobs, in control groups that have the names of its nodes.
LIMITS = "CgroupPlugin=cgroup/v1\nConstrainCores=yes\nConstrainRAMSpace=yes\n"
# Another boot: what ran there has ended, but for the SSH server of this lab and the daemon that Slurm's need.
REBOOT = """
cat /proc/sys/kernel/random/uuid >/run/boot
mount --bind /run/boot /proc/sys/kernel/random/boot_id
for one in $(ps -eo pid=); do
  case $(cat /proc/$one/comm 2>/dev/null) in ""|sshd*|munged|sh|ps|sleep) ;; *) kill -9 $one 2>/dev/null ;; esac
done
sleep "$1"
slurmd -b
"""
# Of a shell, within single quotes. The key is one that no other cluster has.
SERVICES = """
printf "10.213.0.11 c0\\n10.213.0.12 c1\\n10.213.0.13 c2\\n" >/etc/hosts
echo "{name}:x:{number}:{number}::/home/{name}:/bin/sh" >>/etc/passwd
echo "{name}:x:{number}:" >>/etc/group
echo "{name}:200000:65536" | tee -a /etc/subuid >>/etc/subgid
mkdir -p /home/{name}; chown {name}: /home/{name}; chmod 711 /root
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
    user: str = "root"

    @property
    def environment(self) -> dict[str, str]:
        """In which Slurm's commands are those of this cluster, for this user."""
        known = self.machines.environment
        return {**known, "PATH": f"{self.machines.place}/bin/{self.user}:{known['PATH']}"}

    def reboot(self, node: str, away_s: int = 0) -> subprocess.Popen[bytes]:
        """Boot a node anew, as far as others see it; it is back after a while, in which the caller goes on."""
        pid = self.machines.machines[node].sshd
        enter = ("nsenter", "-t", str(pid), "-a", f"--root=/proc/{pid}/root", "--wdns=/")
        running = subprocess.Popen((*enter, "sh", "-c", REBOOT, "sh", str(away_s)))
        if not away_s:
            assert running.wait() == 0
        return running

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
def slurm(cache: Path, images: Path, place: Path, *, limits: bool = False) -> Iterator[Slurm]:
    """A cluster until the end, which limits what jobs use, or does not."""
    tree = sid.tree(cache, "slurm-trixie-podman", PACKAGES, "trixie")
    config = CONFIG.format(task="task/cgroup,task/affinity" if limits else "task/none", cpus=os.cpu_count())
    cgroup = LIMITS if limits else "CgroupPlugin=disabled\n"
    name, number = USER
    services = SERVICES.format(key=secrets.token_hex(64), config=config, cgroup=cgroup, name=name, number=number)
    with lab(("c0", *NODES), tree, images, place, services) as machines:
        made = Slurm(machines)
        _commands(made)
        made.wait_idle()
        try:
            yield made
        finally:
            if limits:
                _remove_groups(made.machines)


def _commands(made: Slurm) -> None:
    """Programs of Slurm's names that run on the controller's machine, for each user."""
    pid, (ordinary, number) = made.machines.machines["c0"].sshd, USER
    enter = f"nsenter -t {pid} -a --root=/proc/{pid}/root --wdns=/"
    about = f"env HOME=/home/{ordinary} USER={ordinary} LOGNAME={ordinary}"
    drop = f"setpriv --reuid={number} --regid={number} --clear-groups {about}"
    for user, words in (("root", enter), (ordinary, f"{enter} {drop}")):
        (made.machines.place / "bin" / user).mkdir()
        for name in COMMANDS:
            program = made.machines.place / "bin" / user / name
            program.write_text(f'#!/bin/sh\nexec {words} /usr/bin/{name} "$@"\n')
            program.chmod(0o755)


def _remove_groups(machines: Lab) -> None:
    """Those of the nodes, which end for it."""
    for node in NODES:
        machines.machines[node].end()
        for top in Path("/sys/fs/cgroup").glob(f"*/slurm_{node}"):
            places = sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True)
            for place in (*places, top):
                _remove_group(place)


def _remove_group(place: Path) -> None:
    """Once the last process in it is gone."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            place.rmdir()
        except OSError:
            assert time.monotonic() < deadline, f"{place} is in use"
            time.sleep(0.05)
        else:
            return
