"""The life of an allocation, with programs in place of Slurm's that hold no nodes: asked for, shown, held, given back.

What a real Slurm does is tested in `tests/integration/test_slurm.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vtax.errors import AllocationEnded, EnvironmentMissing, UsageError
from vtax.machines.agent import Agent
from vtax.machines.slurm import allocation
from vtax.machines.slurm.allocation import Allocation
from vtax.machines.slurm.srun import Srun
from vtax.model.study import MachineSpec, SlurmSpec

PROGRAMS = {
    "scontrol": """
case "$1 $2" in
  "show partition") echo "PartitionName=idle Default=YES MaxNodes=UNLIMITED MaxTime=02:00:00 State=UP TotalNodes=2" ;;
  "show config") cat "$PLACE/config" ;;
  "show hostnames") printf 'c1\\nc2\\n' ;;
  "show job") echo "JobId=$3 JobName=x JobState=$(cat "$PLACE/state") Reason=None Partition=idle NumCPUs=4 \\
OverSubscribe=NO TimeLimit=00:10:00" ;;
  "show node") echo "$3" | tr , '\\n' | sed 's/.*/NodeName=& CPUTot=2 RealMemory=4000 State=ALLOCATED/' ;;
esac""",
    "sbatch": '[ -z "$(cat "$PLACE/refusal")" ] || { echo "sbatch: error: $(cat "$PLACE/refusal")" >&2; exit 1; }',
    "squeue": 'echo "7|PENDING|Resources|N/A"',
    "scancel": 'echo "$*" >>"$PLACE/cancelled"',
    "salloc": """
echo $$ >"$PLACE/holder"
while [ ! -e "$PLACE/idle" ]; do sleep 0.05; done
while [ "$1" != sh ]; do shift; done
echo RUNNING >"$PLACE/state"
SLURM_JOB_ID=7 SLURM_JOB_NODELIST='c[1-2]' "$@"
echo COMPLETED >"$PLACE/state\"""",
    "srun": """
[ "$(cat "$PLACE/state")" = RUNNING ] || { echo "srun: error: Unable to confirm allocation for job 7" >&2; exit 1; }
while [ "$1" != /usr/bin/env ]; do shift; done
exec "$@\"""",
}
CONFIG = "AccountingStorageType = (null)\nTaskPlugin = task/none\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where these programs keep what they know; the partition is idle when it has a file of that name."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (programs / "python3").symlink_to(sys.executable)
    for name, text in {"config": CONFIG, "state": "PENDING", "refusal": "", "cancelled": ""}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "idle").touch()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PLACE", str(tmp_path))
    yield tmp_path
    holder = tmp_path / "holder"
    assert not holder.exists() or not running(int(holder.read_text()))


def running(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text()


def spec(wait_s: float = 20.0) -> SlurmSpec:
    return SlurmSpec(name="cluster", nodes=2, time_s=600.0, wait_s=wait_s)


def test_an_allocation_is_held_and_given_back(place: Path) -> None:
    said: list[str] = []
    one = Allocation(spec())
    one.request(said.append)
    assert (one.job, one.nodes, one.ended()) == ("7", ("c1", "c2"), "")
    assert said[-1] == "Slurm's job 7 has c1 c2"
    facts = one.facts("c1")
    assert (facts["node"], facts["job_cpus"], facts["node_memory_bytes"]) == ("c1", 2, 4000 * 2**20)
    assert facts["exclusive"] and not facts["constrained"] and facts["time_limit_s"] == 600.0
    one.release()
    one.release()
    assert (place / "state").read_text() == "COMPLETED\n"
    assert f"--name={one.name}" in (place / "cancelled").read_text()


def test_the_queue_is_shown_and_the_wait_has_a_limit(place: Path) -> None:
    (place / "idle").unlink()
    said: list[str] = []
    with pytest.raises(EnvironmentMissing, match="its job did not start within") as raised:
        Allocation(spec(wait_s=1.0)).request(said.append)
    assert said == ["machines.cluster: job 7 is PENDING (Resources)"]
    assert raised.value.exit_code == 3 and raised.value.detail == "job 7 is PENDING (Resources)"


def test_what_slurm_refuses_is_not_submitted(place: Path) -> None:
    (place / "refusal").write_text("Batch job submission failed: Invalid account")
    with pytest.raises(UsageError, match="Slurm refuses such a job: Batch job submission failed: Invalid account"):
        Allocation(spec()).request(print)
    assert not (place / "holder").exists()


def test_a_job_for_nodes_that_are_drained_is_submitted(place: Path) -> None:
    (place / "refusal").write_text("allocation failure: Requested node configuration is not available")
    one = Allocation(spec())
    one.request(lambda _: None)
    assert one.nodes == ("c1", "c2")
    one.release()


@pytest.mark.parametrize(("state", "why"), [("TIMEOUT", "its time limit was reached"), ("NODE_FAIL", "nodes failed")])
def test_why_it_ended_is_said(place: Path, state: str, why: str) -> None:
    one = Allocation(spec())
    one.request(lambda _: None)
    (place / "state").write_text(state)
    assert why in one.ended()
    with pytest.raises(AllocationEnded, match=why):
        Srun("cluster1", MachineSpec(slurm=spec()), one, 0).connect()
    one.release()


def test_it_ends_with_the_process_that_holds_it(place: Path) -> None:
    program = (
        "import os, signal; from vtax.machines.slurm.allocation import Allocation; "
        "from vtax.model.study import SlurmSpec; "
        "one = Allocation(SlurmSpec(name='cluster', nodes=2, time_s=600, wait_s=20)); one.request(print); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run((sys.executable, "-c", program), capture_output=True).returncode == -9
    deadline = time.monotonic() + 10
    while running(int((place / "holder").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (place / "state").read_text() == "COMPLETED\n"


def test_an_agent_answers_through_a_step(place: Path) -> None:
    one = Allocation(spec())
    one.request(lambda _: None)
    agent = Agent(Srun("cluster1", MachineSpec(slurm=spec(), directory=str(place / "there")), one, 0))
    agent.start()
    try:
        assert agent.ask("hello").content["pid"] > 0
        assert agent.directory == str(place / "there") and agent.machine.lent
        limits = agent.machine.unmatched("host", limits_memory=False)
        assert "nothing limits the memory of host" in limits[0].message
        assert agent.machine.unmatched("host", limits_memory=True) == ()
    finally:
        agent.close()
        one.release()


def test_files_have_a_place_on_the_node() -> None:
    assert Srun("c1", MachineSpec(slurm=spec()), Allocation(spec()), 0).directory == f"/var/tmp/vtax-{os.geteuid()}"
    assert allocation.began(os.getpid()) and allocation.began(-1) == ""
