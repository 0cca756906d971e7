"""Trials that alternate between real clusters, all but one paused; and vtax killed while they are."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from vtax.model.trial import TrialRecord
from vtax.paths import Paths
from vtax.store import Campaign

from .conftest import CPU, Vtax, finish, labels_of, study
from .test_bad_days import left, running, wait_for, write

pytestmark = [pytest.mark.integration, pytest.mark.alone]
QEMU = 'provider = "qemu"\nallow_emulation = true\n'


def alternating(names: Sequence[str], seconds: int = 1) -> str:
    """Four iterations of one entry on one node of each environment."""
    return study(names, CPU.format(seconds=seconds) + "iterations = 4\n").replace("workers = 2", "workers = 1")


def in_order(campaign: Path) -> list[TrialRecord]:
    return sorted(Campaign.open(campaign).trials(texts=False), key=lambda one: one.started)


def assert_mirrored(trials: Sequence[TrialRecord]) -> None:
    """By the times at which they really ran: ABBA, and none before the one in front of it had ended."""
    assert {trial.status for trial in trials} == {"ok"}
    environments = [trial.environment for trial in trials]
    a, b = environments[:2]
    assert a != b
    assert environments == [a, b, b, a, a, b, b, a]
    assert [trial.iteration for trial in trials] == [1, 1, 2, 2, 3, 3, 4, 4]
    for one, following in pairwise(trials):
        assert following.started >= one.started + one.elapsed_s


def frozen_groups() -> list[str]:
    """Control groups of containers and of the host environment that are frozen now."""
    found = []
    for path in Path("/sys/fs/cgroup").rglob("freezer.state"):
        try:
            if path.read_text().strip() != "THAWED":
                found.append(str(path.parent))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    "names", [("docker", "podman"), pytest.param(("host", "docker"), marks=pytest.mark.long)], ids="-".join
)
def test_trials_alternate_and_nothing_is_left(
    names: tuple[str, ...], vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    campaign = tmp_path / "c"
    code, _, err = finish(vtax("run", str(write(tmp_path, alternating(names))), "-o", str(campaign)))
    assert code == 0, err
    assert Campaign.open(campaign).plan().interleave == "trial"
    trials = in_order(campaign)
    assert_mirrored(trials)
    pauses = [trial.pause for trial in trials if trial.pause]
    assert len(pauses) == 8
    assert max(pause.lasted_s for pause in pauses) > 1
    cells = Campaign.open(campaign).cells()
    assert {cell.pausing.rpartition(",")[0] for cell in cells} == {"the freezer of control groups"}
    assert left(places, campaign) == []
    assert not places.runtime.exists() or list(places.runtime.glob("*/")) == []


@pytest.mark.parametrize("names", [("docker", "podman"), ("host", "docker")], ids="-".join)
def test_after_kill_9_clean_removes_what_was_paused(
    names: tuple[str, ...], vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    """A frozen process does not end when it is killed, so an engine would wait for it."""
    before = set(frozen_groups())
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, alternating(names, 7))), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp/*stdout")
    time.sleep(1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    mine = labels_of(campaign)
    assert set(frozen_groups()) - before, "one of the clusters was paused"
    code, out, err = finish(vtax("clean", "--check"))
    assert code == 5, out + err
    for name, label in mine.items():
        assert any(label in line and f"{name} of {campaign}" in line for line in out.splitlines()), out
    began = time.monotonic()
    code, out, err = finish(vtax("clean"), 60)
    assert code == 0, out + err
    assert time.monotonic() - began < 30
    assert left(places, campaign) == []
    assert not set(frozen_groups()) - before
    assert running("--time=7 ") == []
    code, _, err = finish(vtax("run", "--resume", str(campaign)))
    assert code == 0, err
    assert len(in_order(campaign)) == 8
    assert left(places, campaign) == []


@pytest.mark.slow
def test_virtual_machines_are_paused_and_their_clocks_set(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """In software emulation where there is no KVM. Killed in the end, with the machines paused."""
    campaign = tmp_path / "c"
    text = alternating(("docker", "qemu"), 3).replace('provider = "qemu"\n', QEMU)
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*docker/*.4/record.json", 400)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    trials = [trial for trial in in_order(campaign) if trial.environment == "qemu"]
    assert {trial.status for trial in trials} == {"ok"}
    longest = max((trial.pause for trial in trials if trial.pause), key=lambda pause: pause.lasted_s)
    assert longest.lasted_s > 3
    assert set(longest.clock_behind_s) == {"master", "worker1"}
    assert min(longest.clock_behind_s.values()) > longest.lasted_s - 1.5, "its time stood still"
    for trial in trials:
        for counted in trial.counters.values():
            assert abs(counted["clock_offset_s"]) < 2, "and was set afterwards"
    code, out, err = finish(vtax("clean"), 60)
    assert code == 0, out + err
    assert left(places, campaign) == []
    for label in labels_of(campaign).values():
        assert not running(f"vtax-{label}-")
