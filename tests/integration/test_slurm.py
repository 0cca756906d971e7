"""A real Slurm with two nodes: a campaign on one allocation, what Slurm refuses, and the bad days."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.slurm_lab import NODES, Slurm, slurm
from integration.slurm_user import LONG, SPREAD, SRUN, STUDY, TWO, WAIT_S, User
from vtax.machines.slurm.commands import fields
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = [pytest.mark.integration, pytest.mark.long]

FIRST_S, TRIES = 10.0, 3


@pytest.fixture(scope="module")
def cluster(cache: Path, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    images = Path(image.directory).parent.parent
    with slurm(cache, images, tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture
def user(cluster: Slurm, image: Image, tmp_path: Path, state: Path) -> Iterator[User]:
    cluster.wait_idle()
    made = User(cluster, Path(image.directory).parent.parent, tmp_path, state)
    yield made
    made.end()


def test_a_study_on_two_nodes(user: User) -> None:
    said = user.vtax("run", user.study(rounds=2), "-o", str(user.campaign))
    assert "report:" in said and "has c1 c2" in said
    assert user.statuses() == {
        f"r00{number}-cluster{node}-{name}/sysbench-cpu.worker1.1": Status.OK
        for number in (1, 2)
        for node in (1, 2)
        for name in ("host", "bridged")
    }
    campaign = Campaign.open(user.campaign)
    assert {cell.host_facts["slurm_job"]["node"] for cell in campaign.cells()} == {"c1", "c2"}
    assert len({cell.host_facts["slurm"]["job"] for cell in campaign.cells()}) == 1
    user.assert_nothing_is_left()


@pytest.mark.parametrize("text", [STUDY, SPREAD, SRUN], ids=["together", "spread", "srun"])
def test_the_first_trial_begins_soon_after_the_allocation(user: User, text: str) -> None:
    """Of a few tries the best: this computer may be busy. The root file system is on the nodes."""
    taken: list[float] = []
    while min(taken, default=FIRST_S) >= FIRST_S:
        assert len(taken) < TRIES, f"the first trial began {taken} s after the allocation; the limit is {FIRST_S} s"
        user.campaign = user.place / f"campaign{len(taken)}"
        user.vtax("run", user.study(text=text), "-o", str(user.campaign))
        taken.append(first_trial_s(user))


def first_trial_s(user: User) -> float:
    """From when Slurm says that the job of the campaign began, in whole seconds, to its first trial."""
    campaign = Campaign.open(user.campaign)
    (job,) = {facts["slurm"]["job"] for cell in campaign.cells() for facts in cell.machine_facts.values()} or {
        cell.host_facts["slurm"]["job"] for cell in campaign.cells()
    }
    about = user.cluster.controller("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "job", job, "--oneliner")
    return min(one.started for one in campaign.trials(texts=False)) - int(fields(about)["StartTime"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ('partition = "nope", time = "10 min"', "Slurm has no partition 'nope'"),
        ('nodes = 3, time = "10 min"', "partition idle gives 2 at most"),
        ('time = "3 h"', "partition idle has a limit of 2 h"),
        ('time = "10 min", account = "nope"', "account 'nope' does not exist"),
        ('partition = "closed", time = "1 min"', "partition closed is DOWN"),
        ('time = "10 min", options = ["--constraint=nope"]', "Invalid feature specification"),
    ],
)
def test_what_slurm_cannot_give_is_refused_before_anything_is_submitted(user: User, asked: str, expected: str) -> None:
    before = user.cluster.controller("scontrol", "show", "config")
    assert expected in user.vtax("plan", user.study(asked), code=2)
    assert user.cluster.jobs() == []
    assert next_job(before) == next_job(user.cluster.controller("scontrol", "show", "config"))


def next_job(config: str) -> str:
    """The number that the next job will have."""
    return next(line for line in config.splitlines() if line.startswith("NEXT_JOB_ID"))


def test_a_job_that_is_cancelled_ends_the_round_and_the_next_one_goes_on(user: User) -> None:
    running = user.start("run", user.study(rounds=2, seconds=6), "-o", str(user.campaign))
    user.wait(user.running_trial)
    user.cluster.controller("scancel", user.cluster.jobs()[0].split()[0])
    assert running.wait(WAIT_S) == 3
    assert "ended: it was cancelled" in user.log() and f"--resume {user.campaign}" in user.log()
    assert Status.FAILED in user.statuses().values()
    user.assert_nothing_is_left()
    user.vtax("run", "--resume", str(user.campaign), code=4)
    found = user.statuses()
    assert {status for name, status in found.items() if name.startswith("r002")} == {Status.OK}
    jobs = {cell.host_facts["slurm"]["job"] for cell in Campaign.open(user.campaign).cells() if cell.host_facts}
    assert len(jobs) == 2


def test_a_cluster_has_its_nodes_on_several_nodes_of_slurm_while_the_allocation_lasts(user: User) -> None:
    """A job that is cancelled in the first round ends it; the next allocation has the second one."""
    running = user.start("run", user.study(rounds=2, seconds=6, text=SPREAD), "-o", str(user.campaign))
    user.wait(user.running_trial)
    user.cluster.controller("scancel", user.cluster.jobs()[0].split()[0])
    assert running.wait(WAIT_S) == 3
    assert "ended: it was cancelled" in user.log() and f"--resume {user.campaign}" in user.log()
    assert Status.FAILED in user.statuses().values()
    user.assert_nothing_is_left()
    said = user.vtax("run", "--resume", str(user.campaign), code=4)
    assert "round 1 is dropped" in said
    found = user.statuses()
    assert {status for name, status in found.items() if name.startswith("r002")} == {Status.OK}
    cells = [one for one in Campaign.open(user.campaign).cells() if one.round == 2]
    assert {cell.environment for cell in cells} == {"host", "bridged"}
    for cell in cells:
        named = {name: (facts["slurm"], facts["slurm_job"]) for name, facts in cell.machine_facts.items()}
        assert {name: (slurm["node"], job["node"]) for name, (slurm, job) in named.items()} == {
            "cluster1": ("c1", "c1"),
            "cluster2": ("c2", "c2"),
        }
    user.assert_nothing_is_left()


def test_srun_starts_the_ranks_of_a_cluster(user: User) -> None:
    """Two ranks on each node, in two rounds, in which nodes change places: rank 0 is where the command runs."""
    user.vtax("run", user.study(rounds=2, text=SRUN), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}
    cells = [one for one in Campaign.open(user.campaign).cells() if one.environment == "slurm"]
    assert len(cells) == 2
    for cell in cells:
        assert "mpi world cluster: 4 ranks, each of which sees all" in cell.checks
        assert "mpi placement cluster: master=2 worker1=2" in cell.checks
        assert "mpi binding cluster: master=0 master=1 worker1=0 worker1=1" in cell.checks
        assert "mpi memory cluster: ranks of a node can read each other's memory" in cell.checks
        assert {one.values["launcher"] for one in cell.facts} == {"srun"}
    assert len({next(one.values["on_machine"] for one in cell.facts if one.node == "master") for cell in cells}) == 2
    user.assert_nothing_is_left()


def test_ranks_of_srun_that_do_not_know_each_other_are_named(user: User) -> None:
    """A real srun that is told to use no PMIx starts every rank as a program of its own, and ends with code 0."""
    for name in NODES:
        program = "/usr/local/bin/srun"
        text = '#!/bin/bash\\nexec /usr/bin/srun "${@/--mpi=pmix/--mpi=none}"\\n'
        user.cluster.machines.machines[name].inside("sh", "-c", f"printf '{text}' >{program}; chmod 755 {program}")
    try:
        said = user.vtax("run", user.study(text=SRUN), "-o", str(user.campaign), code=4)
        assert "srun started 4 programs of one rank each, but the plan has one program of 4 ranks" in said
    finally:
        for name in NODES:
            user.cluster.machines.machines[name].inside("rm", "/usr/local/bin/srun")
    statuses = user.statuses()
    assert {status for name, status in statuses.items() if "-slurm/" in name} == {Status.NOT_RUN}
    assert {status for name, status in statuses.items() if "-host/" in name} == {Status.OK}
    user.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ranks_of_srun_end_with_vtax(user: User, number: signal.Signals) -> None:
    running = user.start("run", user.study(text=LONG), "-o", str(user.campaign))
    user.wait(lambda: "r001-slurm" in user.log() and any("xhpl" in line for line in user.processes()))
    running.send_signal(number)
    running.wait(WAIT_S)
    user.assert_nothing_is_left()
    assert "nothing is left behind" in user.vtax("clean", "--machines", user.study())


def test_the_time_limit_ends_it_likewise(user: User) -> None:
    """The least limit is a minute."""
    running = user.start("run", user.study('time = "1 min"', 4, 30), "-o", str(user.campaign))
    user.wait(user.running_trial)
    assert running.wait(WAIT_S) == 3
    assert "its time limit was reached" in user.log()
    user.assert_nothing_is_left()


def test_a_node_that_fails_ends_it_likewise(user: User) -> None:
    running = user.start("run", user.study(rounds=2, seconds=20), "-o", str(user.campaign))
    user.wait(user.running_trial)
    user.cluster.controller("scontrol", "update", "nodename=c2", "state=down", "reason=test")
    try:
        assert running.wait(WAIT_S) == 3
        assert "one of its nodes failed" in user.log() and f"--resume {user.campaign}" in user.log()
    finally:
        user.cluster.controller("scontrol", "update", "nodename=c2", "state=idle")
    user.assert_nothing_is_left()


def test_a_node_that_is_drained_works_to_the_end_of_the_job(user: User) -> None:
    running = user.start("run", user.study(rounds=1, seconds=6), "-o", str(user.campaign))
    user.wait(user.running_trial)
    user.cluster.controller("scontrol", "update", "nodename=c2", "state=drain", "reason=test")
    try:
        assert running.wait(WAIT_S) == 0, user.log()
        assert set(user.statuses().values()) == {Status.OK}
    finally:
        user.cluster.controller("scontrol", "update", "nodename=c2", "state=resume")


@pytest.mark.parametrize("text", [STUDY, SPREAD], ids=["together", "spread"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_vtax_that_ends_gives_the_nodes_back(user: User, number: signal.Signals, code: int, text: str) -> None:
    running = user.start("run", user.study(seconds=30, text=text), "-o", str(user.campaign))
    user.wait(user.running_trial)
    running.send_signal(number)
    assert running.wait(WAIT_S) == code
    user.assert_nothing_is_left()
    assert "nothing is left behind" in user.vtax("clean", "--machines", user.study())


def test_a_job_that_waits_is_shown_and_given_up(user: User) -> None:
    user.cluster.controller("scontrol", "update", "nodename=c2", "state=drain", "reason=test")
    try:
        said = user.vtax("plan", user.study(f'{TWO}, wait = "8 s"'), code=3)
        assert "PENDING" in said and "did not start within 8 s" in said
        assert user.cluster.jobs() == []
    finally:
        user.cluster.controller("scontrol", "update", "nodename=c2", "state=resume")


def test_a_job_whose_holder_was_killed_too_is_cancelled_by_clean(user: User) -> None:
    running = user.start("run", user.study(seconds=60), "-o", str(user.campaign))
    user.wait(user.running_trial)
    other = subprocess.run(
        ("sbatch", "--parsable", "--time=1", "--job-name=vtax-mine", "--hold", "--wrap=true"),
        env=user.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    running.kill()
    running.wait()
    user.vtax("clean", "--machines", user.study())
    user.wait(lambda: [line.split()[0] for line in user.cluster.jobs()] == [other])


def test_a_job_that_is_preempted_ends_the_round(user: User) -> None:
    """By one of a partition of a higher tier, which wants all nodes."""
    running = user.start("run", user.study(rounds=2, seconds=20), "-o", str(user.campaign))
    user.wait(user.running_trial)
    user.cluster.controller("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=sleep 1")
    assert running.wait(WAIT_S) == 3
    assert "ended: it was preempted" in user.log() and f"--resume {user.campaign}" in user.log()
    failures = [one.failure for one in Campaign.open(user.campaign).trials(texts=False) if one.failure]
    assert failures and all("it was preempted" in one for one in failures)
    user.assert_nothing_is_left()


def test_a_job_that_is_to_be_queued_again_goes_on(user: User) -> None:
    """Slurm queues only jobs of sbatch again; that of an allocation stays as it is."""
    running = user.start("run", user.study(seconds=6), "-o", str(user.campaign))
    user.wait(user.running_trial)
    job = user.cluster.jobs()[0].split()[0]
    user.cluster.controller("sh", "-c", f"! scontrol requeue {job}")
    assert running.wait(WAIT_S) == 0, user.log()
    assert set(user.statuses().values()) == {Status.OK}


@pytest.mark.parametrize("text", [STUDY, SPREAD], ids=["together", "spread"])
def test_a_node_that_reboots_at_once_costs_a_trial_and_is_named(user: User, text: str) -> None:
    """Another boot id, the end of all that ran there, a slurmd that says so. Slurm leaves an allocation as it is."""
    running = user.start("run", user.study(rounds=2, seconds=8, text=text), "-o", str(user.campaign))
    machine = user.cluster.machines.machines["c2"]
    user.wait(lambda: any("sysbench" in line for line in machine.processes()))
    before = machine.inside("cat", "/proc/sys/kernel/random/boot_id").strip()
    user.cluster.reboot("c2")
    assert running.wait(WAIT_S) == 4, user.log()
    bad = {name: status for name, status in user.statuses().items() if status is not Status.OK}
    assert list(bad.values()) == [Status.FAILED], user.log()
    assert f"cluster2: the boot was {before} and, from cell" in user.vtax("audit", str(user.campaign))
    user.assert_nothing_is_left()


def test_a_node_that_is_away_for_longer_ends_the_allocation(user: User) -> None:
    """Longer than Slurm waits for it (`SlurmdTimeout`)."""
    running = user.start("run", user.study(rounds=2, seconds=8, text=SPREAD), "-o", str(user.campaign))
    user.wait(lambda: any("sysbench" in line for line in user.cluster.machines.machines["c2"].processes()))
    back = user.cluster.reboot("c2", away_s=40)
    assert running.wait(WAIT_S) == 3, user.log()
    assert "one of its nodes failed" in user.log() and f"--resume {user.campaign}" in user.log()
    assert back.wait() == 0
    user.assert_nothing_is_left()
