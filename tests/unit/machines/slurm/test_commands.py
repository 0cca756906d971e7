"""What Slurm prints, read; what vtax asks Slurm for, as command lines; what is refused before anything is submitted."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from vtax.errors import UsageError
from vtax.machines.slurm import commands, leftover
from vtax.machines.slurm.allocation import owner
from vtax.machines.slurm.refusals import refuse_account, refuse_size
from vtax.model.study import SlurmSpec

JOB = (
    "JobId=7 JobName=vtax-00c0ffee UserId=root(0) GroupId=root(0) JobState=TIMEOUT Reason=TimeLimit Dependency=(null) "
    "TimeLimit=00:10:00 Partition=idle NodeList=c[1-2] NumNodes=2 NumCPUs=4 OverSubscribe=NO Comment=vtax c0 a 1 2 "
    "WorkDir=/root\n"
)


def spec(**given: Any) -> SlurmSpec:
    return SlurmSpec(**{"name": "cluster", "nodes": 2, "time_s": 600.0, "wait_s": 60.0, **given})


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where nobody set anything for Slurm."""
    for name in [name for name in os.environ if name.startswith(commands.OURS)]:
        monkeypatch.delenv(name)


def test_fields_may_hold_spaces() -> None:
    found = commands.fields(JOB)
    assert found["JobState"] == "TIMEOUT" and found["Comment"] == "vtax c0 a 1 2" and found["WorkDir"] == "/root"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("00:10:00", 600), ("2-01:00:00", 176_400), ("10:00", 600), ("UNLIMITED", None), ("", None), ("1-00", None)],
)
def test_times(text: str, expected: float | None) -> None:
    assert commands.seconds(text) == expected


def test_limits_need_all_three_settings() -> None:
    text = "TaskPlugin              = task/cgroup,task/affinity\nCgroup Support:\nConstrainCores = yes\n"
    assert not commands.constrains(commands.settings(text))
    assert commands.constrains(commands.settings(text + "ConstrainRAMSpace       = yes\n"))
    assert not commands.constrains(commands.settings(text.replace("task/cgroup,", "") + "ConstrainRAMSpace = yes\n"))


def test_what_is_asked_for() -> None:
    assert commands.wanted(spec(partition="idle", account="lab", options=("--constraint=amd",), time_s=90)) == (
        *("--nodes=2", "--time=2", "--partition=idle", "--account=lab", "--exclusive", "--constraint=amd"),
    )
    assert "--exclusive" not in commands.wanted(spec(exclusive=False))


def test_defaults_of_the_environment_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert commands.clean(("squeue",)) == ("squeue",)
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    monkeypatch.setenv("SALLOC_PARTITION", "other")
    monkeypatch.setenv("SLURM_CONF", "/etc/other.conf")
    assert commands.clean(("squeue",)) == ("env", "-u", "SALLOC_PARTITION", "-u", "SLURM_JOB_ID", "squeue")


def test_a_step_is_next_to_others_and_not_bound() -> None:
    line = commands.step("7", "c1", ("true",))
    assert {"--jobid=7", "--nodelist=c1", "--overlap", "--cpu-bind=none", "--mem=0"} < set(line)
    assert line[-2:] == ("/usr/bin/env", "true")


@pytest.mark.parametrize(
    ("partition", "given", "expected"),
    [
        ({"State": "DOWN"}, {}, "partition idle is DOWN"),
        ({"TotalNodes": "1"}, {}, "2 nodes; partition idle gives 1 at most"),
        ({"TotalNodes": "9", "MaxNodes": "1"}, {}, "gives 1 at most"),
        ({"MaxTime": "00:05:00"}, {}, "10 min 0 s, and partition idle has a limit of 5 min 0 s"),
    ],
)
def test_more_than_a_partition_gives_is_refused(partition: dict[str, str], given: Any, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        refuse_size(spec(**given), "idle", partition)


def test_what_a_partition_gives_is_not_refused() -> None:
    refuse_size(spec(), "idle", {"State": "UP", "TotalNodes": "2", "MaxNodes": "UNLIMITED", "MaxTime": "UNLIMITED"})


def test_an_account_is_refused_where_there_are_none() -> None:
    with pytest.raises(UsageError, match="account 'lab' does not exist: this Slurm keeps no accounts"):
        refuse_account(spec(account="lab"), {"AccountingStorageType": "(null)"})
    refuse_account(spec(account="lab"), {"AccountingStorageType": "accounting_storage/slurmdbd"})


def test_only_own_jobs_of_processes_that_are_gone_are_left_behind() -> None:
    mine = leftover.parsed(f"7|RUNNING|vtax-00c0ffee|{owner()}")
    assert mine is not None and mine.in_use and mine.number == "7"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    gone = leftover.parsed(f"7|PENDING|vtax-00c0ffee|vtax {socket.gethostname()} {boot} {os.getpid()} 1")
    assert gone is not None and not gone.in_use  # the process has another one's number
    rebooted = leftover.parsed(f"7|PENDING|vtax-00c0ffee|vtax {socket.gethostname()} x {os.getpid()} 1")
    assert rebooted is not None and not rebooted.in_use
    other = leftover.parsed(f"7|PENDING|vtax-00c0ffee|vtax another {boot} {os.getpid()} 1")
    assert other is not None and other.in_use and other.elsewhere == "another"


@pytest.mark.parametrize(
    "line", ["", "7|RUNNING|vtax-x|", "7|RUNNING|vtax-x|mine", "7|RUNNING|simulation|vtax a b 1 2", "7|RUNNING|x"]
)
def test_jobs_of_others_are_not_vtaxs(line: str) -> None:
    assert leftover.parsed(line) is None
