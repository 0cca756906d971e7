"""What Slurm can be known to refuse, found before anything is submitted."""

from __future__ import annotations

from collections.abc import Mapping

from vtax.errors import UsageError
from vtax.machines.slurm import commands
from vtax.model.study import SlurmSpec
from vtax.units import format_seconds
from vtax.wording import listed, plural

NOT_NOW = "Requested node configuration is not available"  # also where nodes are drained: such a job waits for them


def refuse(spec: SlurmSpec) -> None:
    """Raise UsageError for an allocation that this Slurm cannot give to this user."""
    known = commands.partitions()
    name = spec.partition or next((name for name, one in known.items() if one.get("Default") == "YES"), "")
    if name not in known:
        what = f"has no partition {name!r} that you may use" if name else "has no default partition"
        raise UsageError(
            f"machines.{spec.name}: Slurm {what}",
            detail=f"it has {listed(sorted(known))}" if known else "`sinfo` shows none",
            remedy="set `partition` of its `slurm` to one that `sinfo` shows",
        )
    refuse_size(spec, name, known[name])
    if spec.account:
        refuse_account(spec, commands.settings(commands.must("scontrol", "show", "config")))
    tested = commands.ask("sbatch", "--test-only", *commands.wanted(spec), "--wrap=true")
    if tested.exit_code != 0 and NOT_NOW not in tested.stderr:
        lines = [line.removeprefix("sbatch: error: ") for line in tested.stderr.strip().splitlines()]
        raise UsageError(
            f"machines.{spec.name}: Slurm refuses such a job: {lines[-1] if lines else 'it does not say why'}",
            detail="\n".join(lines[:-1][-6:]),
            remedy=f"`sbatch --test-only {' '.join(commands.wanted(spec))} --wrap=true` must succeed",
        )


def refuse_size(spec: SlurmSpec, name: str, partition: Mapping[str, str]) -> None:
    """More nodes or more time than a partition has, or one that is closed."""
    if (state := partition.get("State", "UP")) != "UP":
        raise UsageError(
            f"machines.{spec.name}: partition {name} is {state}: it starts no job",
            remedy="use another partition, or ask those who run the cluster",
        )
    counts = (partition.get("TotalNodes", ""), partition.get("MaxNodes", ""))
    most = min((int(one) for one in counts if one.isdigit()), default=spec.nodes)
    if spec.nodes > most:
        raise UsageError(
            f"machines.{spec.name}: {spec.nodes} {plural(spec.nodes, 'node')}; partition {name} gives {most} at most",
            remedy=f"set `nodes` of its `slurm` to {most} or less",
        )
    limit_s = commands.seconds(partition.get("MaxTime", "UNLIMITED"))
    if limit_s is not None and spec.time_s > limit_s:
        raise UsageError(
            f"machines.{spec.name}: {format_seconds(spec.time_s)}, and partition {name} has a limit of "
            f"{format_seconds(limit_s)}",
            remedy=f'set `time` of its `slurm` to "{limit_s / 60:g} min" or less: `vtax run --resume` goes on in the '
            "next allocation",
        )


def refuse_account(spec: SlurmSpec, config: Mapping[str, str]) -> None:
    """An account where Slurm has none; sbatch finds those that do not exist where it has some."""
    if "slurmdbd" not in config.get("AccountingStorageType", ""):
        raise UsageError(
            f"machines.{spec.name}: account {spec.account!r} does not exist: this Slurm keeps no accounts",
            remedy="leave `account` out of its `slurm`",
        )
