"""What a campaign notes of its clusters: when a node was there, what it takes, how long its end takes; or nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.small import FACTS, IMAGE, MACHINE, PRINTED
from fakes.cluster import FakeProvider, telling
from vtax.errors import ProvisionError, StudyError, TrialsFailed
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec, Study
from vtax.model.trial import Status, TrialRecord
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.providers.base import Cluster, Creation, Site
from vtax.running import startup
from vtax.running.campaign import execute
from vtax.store import Campaign
from vtax.tools.trials import measurements_of, read_trial

TEXT = """\
name = "small"
seed = 3
rounds = 1
baseline = "box"
[environments.box]
provider = "host"
[nodes]
cpus = 2
memory = "2 GiB"
[[benchmarks]]
name = "startup"
"""
SYSBENCH = '[[benchmarks]]\nname = "sysbench-cpu"\nnodes = ["worker1"]\ntime_s = 1\nthreads = 1\niterations = 2\n'


class Observed(FakeProvider):
    """Nodes that are ordered at 100 s, print at 100.25 s and answer at 100.5 s; the second worker was not seen."""

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        cluster = super().create(spec, shape, shared_path, site)
        seen = [node.name for node in shape.nodes[:2]]
        return replace(cluster, creations={name: Creation(100.0, 100.25, 100.5, 7) for name in seen})


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)
    monkeypatch.setattr(startup, "tree", lambda root: (root,))
    monkeypatch.setattr(startup, "pss_bytes", lambda pids: 1000 * sum(pids))


def study_of(text: str) -> Study:
    fake = (EnvironmentSpec(name="box", provider="box"),)
    return parse(text, "small.toml").model_copy(update={"environments": fake})


def run(top: Path, provider: FakeProvider, more: str = "") -> Campaign:
    plan = make_plan(study_of(TEXT + more), MACHINE, {"box": provider})
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    campaign = Campaign.create(top / "campaign", TEXT.encode(), plan, about)
    execute(campaign, {"box": provider}, IMAGE, top / "run", lambda event: None)
    return campaign


def noted(campaign: Campaign) -> TrialRecord:
    (record,) = [one for one in campaign.trials() if one.benchmark == "startup"]
    return record


def values(record: TrialRecord) -> dict[tuple[str, str], float]:
    return {(one.metric, one.labels.get("node", "")): one.value for one in measurements_of(record, read_trial(record))}


def test_the_times_of_every_node_that_was_seen_and_the_end_of_the_cluster(tmp_path: Path) -> None:
    record = noted(run(tmp_path, Observed("box", tmp_path / "run")))
    found = values(record)
    destroyed = found.pop(("destroy", ""))
    assert found == {
        (metric, node): value
        for node in ("master", "worker1")
        for metric, value in (("first_process", 0.25), ("ssh_ready", 0.5), ("idle_memory", 7000))
    }
    assert 0 < destroyed < 60
    assert (record.status, record.scope, record.steps[0].argv) == (Status.OK, Scope.PROVISIONING, ())
    assert "cpu_ticks" in record.host_counters


def test_what_a_provider_cannot_observe_is_absent(tmp_path: Path) -> None:
    record = noted(run(tmp_path, FakeProvider("box", tmp_path / "run")))
    assert [metric for metric, _ in values(record)] == ["destroy"]
    assert json.loads(record.output())["nodes"] == {"master": {}, "worker1": {}, "worker2": {}}


def test_it_is_written_after_the_cluster_is_gone_and_after_all_other_trials(tmp_path: Path) -> None:
    provider = Observed("box", tmp_path / "run", script=telling(sysbench=PRINTED))
    alive: list[int] = []
    write = startup.write

    def spied(*args: Any) -> TrialRecord:
        alive.append(len(provider.live))
        assert len(list((tmp_path / "campaign" / "trials" / "r001-box").glob("sysbench*"))) == 2
        return write(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup, "write", spied)
        campaign = run(tmp_path, provider, SYSBENCH)
    assert alive == [0]
    assert provider.created == 1
    assert len(campaign.trials()) == 3


def test_a_failed_creation_gives_no_numbers(tmp_path: Path) -> None:
    def fails(number: int) -> None:
        raise ProvisionError("no room")

    with pytest.raises(TrialsFailed):
        run(tmp_path, Observed("box", tmp_path / "run", before_create=fails))
    record = noted(Campaign.open(tmp_path / "campaign"))
    assert record.status is Status.NOT_RUN
    assert "no room" in record.failure
    assert values(record) == {}


def test_a_cluster_that_cannot_be_destroyed_gives_no_numbers(tmp_path: Path) -> None:
    class Stuck(Observed):
        def destroy(self, campaign: str) -> None:
            super().destroy(campaign)
            raise ProvisionError("busy")

    with pytest.raises(TrialsFailed):
        run(tmp_path, Stuck("box", tmp_path / "run"))
    assert noted(Campaign.open(tmp_path / "campaign")).status is Status.NOT_RUN


def test_it_is_planned_once_in_every_cell_without_a_command(tmp_path: Path) -> None:
    plan = make_plan(study_of(TEXT + SYSBENCH), MACHINE, {"box": FakeProvider("box", tmp_path)})
    (work,) = [one for one in plan.work if one.benchmark == "startup"]
    assert (work.provisioning, work.steps, work.estimate_s, work.id) == (True, (), 0.0, "startup.provisioning")
    assert [sum(trial.work == work.id for trial in cell.trials) for cell in plan.cells] == [1] * len(plan.cells)
    assert not any(other.provisioning for other in plan.work if other is not work)


@pytest.mark.parametrize("line", ["iterations = 2", "warmup = 1", 'nodes = ["worker1"]'])
def test_keys_of_runs_have_no_meaning_for_it(line: str) -> None:
    with pytest.raises(StudyError, match="it is noted of every cluster once, and runs nothing"):
        parse(f"{TEXT}{line}\n", "small.toml")


def test_every_cluster_is_noted_where_trials_alternate(tmp_path: Path) -> None:
    """All clusters of a round exist at once; each is noted when it is gone, and its trials still alternate."""
    names = ("box", "crate")
    providers = {name: Observed(name, tmp_path / "run", script=telling(sysbench=PRINTED)) for name in names}
    specs = tuple(EnvironmentSpec(name=name, provider=name) for name in names)
    study = study_of(TEXT + SYSBENCH).model_copy(update={"environments": specs, "interleave": "trial"})
    plan = make_plan(study, MACHINE, providers)
    assert plan.interleave == "trial"
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    campaign = Campaign.create(tmp_path / "campaign", TEXT.encode(), plan, about)
    execute(campaign, providers, IMAGE, tmp_path / "run", lambda event: None)
    records = [one for one in campaign.trials() if one.benchmark == "startup"]
    assert sorted(one.environment for one in records) == ["box", "crate"]
    assert all(one.status is Status.OK for one in records)
    assert all(values(one)["ssh_ready", "worker1"] == 0.5 for one in records)
    assert [provider.created for provider in providers.values()] == [1, 1]
    assert len(campaign.trials()) == 6
