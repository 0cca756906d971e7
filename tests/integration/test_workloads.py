"""Workloads by name on the host and in containers: what a study reports is what the programs printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vtax.model.measurement import Measurement
from vtax.model.trial import Status, TrialRecord
from vtax.paths import Paths
from vtax.pipeline import measurements
from vtax.store import Campaign

from .conftest import Vtax, finish, study

pytestmark = pytest.mark.integration
ENVIRONMENTS = ("host", "docker")
ENTRIES = """
[[benchmarks]]
workload = "fio-randread-4k"
values = { depth = 4, size = "8m" }
run = { seconds = 1 }

[[benchmarks]]
workload = "syscalls"
run = { seconds = 0.3 }

[[benchmarks]]
workload = "openssl-speed"
run = { seconds = 1 }
"""


def printed(campaign: Campaign, trial: TrialRecord) -> str:
    """What the measured command printed, as it is on the disk."""
    step = next(step for step in reversed(trial.steps) if step.outputs)
    return (campaign.directory / "trials" / trial.id / step.stdout).read_text()


def test_three_workloads_in_two_environments(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    text = study(ENVIRONMENTS, ENTRIES).replace("workers = 2", "workers = 1")
    path = tmp_path / "three.toml"
    path.write_text(text)
    code, _, err = finish(vtax("run", str(path), "-o", "campaign"))
    assert code == 0, err
    campaign = Campaign.open(tmp_path / "campaign")
    trials = {(trial.environment, trial.label): trial for trial in campaign.trials()}
    labels = ("fio-randread-4k", "syscalls", "openssl-speed")
    assert set(trials) == {(environment, label) for environment in ENVIRONMENTS for label in labels}
    assert {trial.status for trial in trials.values()} == {Status.OK}
    found, _ = measurements(tmp_path / "campaign")
    for trial in trials.values():
        mine = [one for one in found if one.trial == trial.id]
        CHECKS[trial.label](printed(campaign, trial), mine)


def value(several: list[Measurement], metric: str) -> float:
    (one,) = [one for one in several if one.metric == metric]
    return one.value


def fio(text: str, found: list[Measurement]) -> None:
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    assert job["job options"]["direct"] == "1"
    assert value(found, "read_iops") == job["read"]["iops"]
    assert value(found, "read_latency_p99") == job["read"]["clat_ns"]["percentile"]["99.000000"] / 1e9


def syscalls(text: str, found: list[Measurement]) -> None:
    paths = json.loads(text)["paths"]
    assert set(paths) == {"getpid", "read", "mmap", "page_fault", "pipe_switch", "futex_switch", "fork_exec"}
    for name, path in paths.items():
        assert value(found, name) == path["median_ns"] / 1e9


def openssl(text: str, found: list[Measurement]) -> None:
    rate = re.search(r"^\+F:\d+:AES-256-GCM:([\d.]+)$", text, re.MULTILINE)
    assert rate is not None
    assert value(found, "throughput") == float(rate[1])


CHECKS = {"fio-randread-4k": fio, "syscalls": syscalls, "openssl-speed": openssl}
