"""Slurm's own commands, and what they print: partitions, jobs, nodes, the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from vtax.errors import EnvironmentMissing
from vtax.model.study import SlurmSpec
from vtax.model.trial import CommandResult
from vtax.transport import process

ASK_S = 30.0  # for slurmctld to answer
OURS = ("SLURM_", "SRUN_", "SALLOC_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SCONTROL_", "SINFO_")
KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER")
FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z0-9_:/]*)=")
DAYS = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})")
READY = "vtax has"
# Says what was given, and stays until nothing holds its standard input any more: then the allocation ends.
HOLD = f'echo "{READY} $SLURM_JOB_ID $SLURM_JOB_NODELIST"; exec cat >/dev/null'


def clean(argv: Sequence[str]) -> tuple[str, ...]:
    """A command of Slurm without the defaults that a user, or a job around this one, has in the environment."""
    found = sorted(name for name in os.environ if name.startswith(OURS) and name not in KEPT)
    return (*(("env", *(word for name in found for word in ("-u", name))) if found else ()), *argv)


def ask(*argv: str) -> CommandResult:
    """Raises EnvironmentMissing where Slurm does not answer."""
    result = process.run(clean(argv), timeout_s=ASK_S)
    if result.timed_out or "Unable to contact slurm controller" in result.stderr:
        raise EnvironmentMissing(
            f"Slurm does not answer: {argv[0]}",
            detail=result.stderr,
            remedy="`sinfo` must show partitions on the machine on which vtax runs",
        )
    return result


def must(*argv: str) -> str:
    """What a command prints. Raises CommandError, EnvironmentMissing."""
    result = ask(*argv)
    if result.exit_code != 0:
        raise process.failed(result, "`sinfo` and `squeue` must work on the machine on which vtax runs")
    return result.stdout


def fields(line: str) -> dict[str, str]:
    """The `Name=value` of one line of `scontrol --oneliner`; a value may hold spaces."""
    found = list(FIELD.finditer(line))
    ends = [one.start() for one in found[1:]] + [len(line)]
    return {one[1]: line[one.end() : end].strip() for one, end in zip(found, ends, strict=True)}


def settings(text: str) -> dict[str, str]:
    """The `Name = value` lines of `scontrol show config`."""
    lines = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in lines}


def seconds(text: str) -> float | None:
    """A time of Slurm, [DAYS-][HOURS:]MINUTES:SECONDS; None where it has no limit."""
    found = DAYS.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, rest = (int(one or 0) for one in found.groups())
    return float(((24 * days + hours) * 60 + minutes) * 60 + rest)


def partitions() -> dict[str, dict[str, str]]:
    """Those that this user can see, by name."""
    found = map(fields, must("scontrol", "show", "partition", "--oneliner").splitlines())
    return {one["PartitionName"]: one for one in found if "PartitionName" in one}


def constrains(config: Mapping[str, str]) -> bool:
    """Whether Slurm confines a job to the CPUs and the memory that it was given."""
    limits = (config.get("ConstrainCores", "no"), config.get("ConstrainRAMSpace", "no"))
    return "task/cgroup" in config.get("TaskPlugin", "") and limits == ("yes", "yes")


def wanted(spec: SlurmSpec) -> tuple[str, ...]:
    """The options of salloc and sbatch that ask for what the study says."""
    minutes = max(1, -(-int(spec.time_s) // 60))
    return (
        f"--nodes={spec.nodes}",
        f"--time={minutes}",
        *((f"--partition={spec.partition}",) if spec.partition else ()),
        *((f"--account={spec.account}",) if spec.account else ()),
        *(("--exclusive",) if spec.exclusive else ()),
        *spec.options,
    )


def allocate(spec: SlurmSpec, name: str, comment: str) -> tuple[str, ...]:
    """The command that has an allocation while it runs."""
    about = (f"--job-name={name}", f"--comment={comment}", "--kill-command=TERM", "--wait-all-nodes=1")
    return clean(("salloc", *wanted(spec), *about, "sh", "-c", HOLD))


def launch(job: str, hosts: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
    """The command that runs `argv` as a rank of one MPI program for each of `hosts`, in their order. Who starts it sees
    to it that ranks have CPUs of their own."""
    where = (f"--jobid={job}", f"--ntasks={len(hosts)}", "--distribution=arbitrary", f"--nodelist={','.join(hosts)}")
    how = ("--overlap", "--overcommit", "--cpu-bind=none", "--mem=0", "--mpi=pmix", "--kill-on-bad-exit=1")
    return clean(("srun", "--quiet", *where, *how, "--export=PATH", "--chdir=/", *argv))


def step(job: str, node: str, argv: Sequence[str]) -> tuple[str, ...]:
    """The command that runs `argv` on a node of an allocation, next to whatever runs there, with all CPUs and all
    memory that the job has there."""
    where = (f"--jobid={job}", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--overlap")
    how = ("--cpu-bind=none", "--mem=0", "--mpi=none", "--kill-on-bad-exit=1", "--export=HOME,USER,LOGNAME,PATH")
    return clean(("srun", "--quiet", *where, *how, "/usr/bin/env", *argv))
