"""A campaign from its first cell to its last: what runs, what is kept, and what is left when it goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vtax.store.campaign
from builders.small import FACTS, IMAGE, PRINTED, new_campaign, planned
from fakes.cluster import FakeProvider, Reply, Script, ran, telling
from vtax.errors import ProvisionError, StoreError, TrialsFailed, UsageError
from vtax.events import (
    CampaignStarted,
    CellFinished,
    CellStarted,
    ClusterReady,
    Event,
    LookTaken,
    TrialFinished,
    TrialStarted,
    ignore,
)
from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.pipeline import measurements, resume
from vtax.providers.base import Cluster
from vtax.running.campaign import execute
from vtax.running.sites import label_of, origin_of
from vtax.store import Campaign, is_alive

WELL = telling(sysbench=PRINTED)


@dataclass
class Life:
    """A campaign on fake clusters, and all that it says."""

    top: Path
    providers: Mapping[str, FakeProvider]
    campaign: Campaign
    events: list[Event] = field(default_factory=list)

    def run(self, listener: Callable[[Event], None] | None = None) -> None:
        execute(self.campaign, self.providers, IMAGE, self.top / "run", listener or self.events.append)

    @property
    def ids(self) -> list[str]:
        return planned(self.campaign.plan())

    def kept(self) -> dict[str, bytes]:
        """Every file of every trial."""
        top = self.campaign.directory / "trials"
        return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}

    def recorded(self) -> set[str]:
        return {name.removesuffix("/record.json") for name in self.kept() if name.endswith("/record.json")}

    def statuses(self, environment: str) -> list[Status]:
        """Of an environment's trials, in the order of the plan."""
        found = {record.id: record.status for record in self.campaign.trials(texts=False)}
        return [found[name] for name in self.ids if f"-{environment}/" in name]

    def cells(self, environment: str) -> list[tuple[int, Status, str]]:
        found = (cell for cell in self.campaign.cells() if cell.environment == environment)
        return [(cell.instance, cell.status, cell.failure) for cell in found]

    def started(self) -> list[str]:
        return [event.trial for event in self.events if isinstance(event, TrialStarted)]

    def assert_nothing_is_left(self) -> None:
        for provider in self.providers.values():
            assert provider.leftovers() == []
        assert list((self.top / "run").iterdir()) == []  # the keys were there


Begin = Callable[..., Life]


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake clusters need no rest in which to see what else the machine does."""
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    return lambda *scripts, **sizes: life(tmp_path, *scripts, **sizes)


def life(
    top: Path,
    script: Script | None = WELL,
    *,
    before_create: Callable[[int], None] | None = None,
    rounds: int = 2,
    iterations: int = 2,
) -> Life:
    """Environments "host", where all is well, and "box", which `script` and `before_create` are about."""
    providers = {
        "host": FakeProvider("host", top / "run", separate_nodes=False, script=WELL),
        "box": FakeProvider("box", top / "run", script=script, before_create=before_create),
    }
    return Life(top, providers, new_campaign(top / "campaign", providers, rounds=rounds, iterations=iterations))


class Counted:
    """sysbench works, but its n-th runs (from 1) do what `instead` says."""

    def __init__(self, instead: Mapping[int, Callable[[], Reply]]) -> None:
        self.instead = instead
        self.runs = 0

    def __call__(self, node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] != "sysbench":
            return None
        self.runs += 1
        return self.instead.get(self.runs, lambda: (0, PRINTED, ""))()


def raising(error: BaseException) -> Callable[[], Reply]:
    def fail() -> Reply:
        raise error

    return fail


# --- all is well ---------------------------------------------------------------------------------------------------


def test_everything_runs_in_the_order_of_the_plan(begin: Begin) -> None:
    one = begin()
    one.run()
    assert len(one.ids) == 2 * 2 * 2
    assert one.started() == one.ids
    assert [record.id for record in one.campaign.trials()] == one.ids  # these are sorted by their time
    assert {record.status for record in one.campaign.trials()} == {Status.OK}
    assert [cell.cell for cell in one.campaign.cells()] == [cell.id for cell in one.campaign.plan().cells]
    one.assert_nothing_is_left()


def test_every_file_names_the_plan_that_it_belongs_to(begin: Begin) -> None:
    """Trials that did not run too: it is what tells a plan that was changed and sealed again."""
    life = begin(before_create=no_cluster)
    with pytest.raises(TrialsFailed):
        life.run()
    sha256 = life.campaign.plan().sha256
    records = life.campaign.trials(texts=False)
    assert {record.status for record in records} == {Status.OK, Status.NOT_RUN}
    assert {record.plan_sha256 for record in records} == {sha256}
    assert life.campaign.about()["plan_sha256"] == sha256
    assert life.campaign.seal(records).frozen == "yes"


def no_cluster(_number: int) -> None:
    raise ProvisionError("it rains")


def test_every_cell_has_a_fresh_cluster_and_only_one_is_up(begin: Begin) -> None:
    up: list[int] = []

    def count(number: int) -> None:
        up.append(sum(len(provider.live) for provider in one.providers.values()))

    one: Life = begin(before_create=count)
    one.run()
    assert up == [0, 0]
    assert [(provider.created, provider.destroyed) for provider in one.providers.values()] == [(2, 2), (2, 2)]


def test_what_clusters_start_from_is_made_before_the_first_of_them(begin: Begin) -> None:
    made: list[list[str]] = []

    def note(_number: int) -> None:
        made.append(list(one.providers["box"].prepared))

    one: Life = begin(before_create=note)
    one.run()
    assert made == [["box"], ["box"]]
    assert one.providers["host"].prepared == ["host"]
    one.run()
    assert one.providers["box"].prepared == ["box"], "nothing is left to run, so nothing is made"


def test_what_cannot_be_made_before_is_left_to_the_first_cluster(begin: Begin) -> None:
    one = begin()
    one.providers["box"].broken_preparation = "the disk is full"
    one.run()
    assert one.recorded() == set(one.ids)


def test_the_record_of_a_cell_says_how_its_cluster_came_to_be(begin: Begin) -> None:
    one = begin(rounds=1)
    one.run()
    cell = next(cell for cell in one.campaign.cells() if cell.environment == "box")
    assert cell.commands == (
        ("box", "create", "CAMPAIGN", "master"),
        ("box", "create", "CAMPAIGN", "worker1"),
        ("box", "create", "CAMPAIGN", "worker2"),
    )
    assert [facts.node for facts in cell.facts] == ["master", "worker1", "worker2"]
    assert "names and SSH between all 6 pairs of nodes" in cell.checks
    assert (cell.instance, cell.status, cell.failure) == (1, Status.OK, "")
    assert cell.provision_s >= 0
    assert cell.host_facts["kernel"]


def test_events_come_in_order(begin: Begin) -> None:
    one = begin(rounds=1)
    one.run()
    cell = [CellStarted, ClusterReady, *[TrialStarted, TrialFinished] * 2, CellFinished]
    assert [type(event) for event in one.events] == [CampaignStarted, *cell, *cell, LookTaken]
    first = one.events[0]
    assert isinstance(first, CampaignStarted)
    assert (first.rounds, first.cells, first.trials, first.done_trials) == (1, 2, 4, 0)
    assert first.estimate_s == pytest.approx(one.campaign.plan().estimate_s, abs=0.1)
    finished = [event for event in one.events if isinstance(event, TrialFinished)]
    assert [(event.trial, event.status, event.failure) for event in finished] == [(name, "ok", "") for name in one.ids]
    remaining = [first.estimate_s, *(event.remaining_s for event in finished)]
    assert remaining == sorted(remaining, reverse=True)
    assert remaining[-1] == 0
    assert [event.status for event in one.events if isinstance(event, CellFinished)] == ["ok", "ok"]


def test_a_campaign_is_known_to_be_alive_while_it_runs(begin: Begin, tmp_path: Path) -> None:
    """By the directory of each environment's label, which says whose it is."""
    seen: list[tuple[bool, bool, str]] = []

    def look(number: int) -> None:
        for place in (tmp_path / "run").iterdir():
            private = place.stat().st_mode & 0o077 == 0
            seen.append((is_alive(place), private, origin_of(tmp_path / "run", place.name)))

    one = begin(before_create=look, rounds=1)
    one.run()
    directory = one.campaign.directory.resolve()
    assert sorted(seen) == [(True, True, f"box of {directory}"), (True, True, f"host of {directory}")]
    assert not is_alive(tmp_path / "run" / label_of("c1c1c1c1", "box"))
    assert origin_of(tmp_path / "run", label_of("c1c1c1c1", "box")) == ""


def test_it_waits_until_a_cluster_has_settled(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("vtax.running.cell.time.sleep", slept.append)
    one = begin(rounds=1)
    plan = one.campaign.plan()
    settled = plan.model_copy(update={"study": plan.study.model_copy(update={"settle_s": 5.0})})
    one.campaign.save("plan.json", settled)
    one.run()
    assert slept == [5.0, 5.0]


# --- to go on ------------------------------------------------------------------------------------------------------


def test_a_complete_campaign_has_nothing_more_to_run(begin: Begin) -> None:
    one = begin(rounds=1)
    one.run()
    before, made = one.kept(), one.providers["box"].created
    one.events.clear()
    one.run()
    assert one.kept() == before
    assert one.providers["box"].created == made
    (event,) = one.events
    assert isinstance(event, CampaignStarted)
    assert (event.cells, event.trials, event.done_trials, event.estimate_s) == (0, 0, 4, 0)


def test_an_interrupt_keeps_what_is_done_and_resuming_runs_the_rest(begin: Begin) -> None:
    one = begin(Counted({2: raising(KeyboardInterrupt())}))
    with pytest.raises(KeyboardInterrupt):
        one.run()
    one.assert_nothing_is_left()
    assert [each.created for each in one.providers.values()] == [each.destroyed for each in one.providers.values()]
    cut = one.started().index(one.started()[-1])
    done, before = one.recorded(), one.kept()
    assert done == set(one.ids[:cut])
    one.events.clear()
    one.run()
    assert one.started() == one.ids[cut:]
    assert one.recorded() == set(one.ids)
    assert {name: one.kept()[name] for name in before} == before
    interrupted = one.ids[cut].partition("/")[0]
    assert [cell.instance for cell in one.campaign.cells() if cell.cell == interrupted] == [1, 2]
    first = one.events[0]
    assert isinstance(first, CampaignStarted)
    assert (first.trials, first.done_trials) == (len(one.ids) - cut, cut)


def test_an_interrupt_while_a_cluster_is_made(begin: Begin) -> None:
    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    one = begin(before_create=interrupt, rounds=1)
    with pytest.raises(KeyboardInterrupt):
        one.run()
    one.assert_nothing_is_left()
    assert one.cells("box") == []


def test_a_trial_that_was_not_run_is_not_tried_again(begin: Begin) -> None:
    """Its cluster was lost, which is a result; a second chance would hide it."""
    one = begin(before_create=raising_provision, rounds=1)
    with pytest.raises(TrialsFailed):
        one.run()
    before = one.kept()
    one.providers["box"].before_create = None
    with pytest.raises(TrialsFailed):
        one.run()
    assert one.kept() == before


@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(1, 8), max_size=3))
def test_however_often_it_is_interrupted_every_trial_runs_once(
    cuts: Sequence[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Interrupted in the n-th trial of each process, then run to its end."""
    one = life(tmp_path_factory.mktemp("campaign"))
    before: dict[str, bytes] = {}
    for cut in (*cuts, 0):
        script = Counted({cut: raising(KeyboardInterrupt())})
        for provider in one.providers.values():
            provider.script = script
        left = len(one.ids) - len(one.recorded())
        if 0 < cut <= left:
            with pytest.raises(KeyboardInterrupt):
                one.run()
            assert len(one.recorded()) == len(one.ids) - left + cut - 1
        else:
            one.run()
        now = one.kept()
        assert {name: now[name] for name in before} == before
        before = now
        one.assert_nothing_is_left()
    assert [record.id for record in one.campaign.trials()] == one.ids
    assert one.recorded() == set(one.ids)


def test_two_processes_do_not_run_one_campaign(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    one = begin()
    monkeypatch.setattr("vtax.planning.preparation.host_facts", lambda: FACTS)
    monkeypatch.setattr("vtax.planning.preparation.provider", lambda name, runtime: one.providers[name])
    monkeypatch.setattr("vtax.pipeline.cached_image", lambda *words: IMAGE)
    paths = Paths(one.top / "cache", one.top)
    with one.campaign.exclusive(), pytest.raises(UsageError, match="is being run by another process"):
        resume(one.campaign.directory, paths, ignore)
    assert one.recorded() == set()
    assert [each.created for each in one.providers.values()] == [0, 0]
    resume(one.campaign.directory, paths, ignore)
    assert one.recorded() == set(one.ids)


# --- errors that end it --------------------------------------------------------------------------------------------


def test_a_defect_of_ours_leaves_nothing_behind(begin: Begin) -> None:
    one = begin(Counted({2: raising(ZeroDivisionError())}), rounds=1)
    with pytest.raises(ZeroDivisionError):
        one.run()
    one.assert_nothing_is_left()
    assert one.providers["box"].destroyed == 1
    assert one.recorded() == set(one.started()[:-1])


def test_a_listener_that_fails_leaves_nothing_behind(begin: Begin) -> None:
    one = begin(rounds=1)

    def listener(event: Event) -> None:
        if isinstance(event, ClusterReady):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        one.run(listener)
    one.assert_nothing_is_left()


def test_a_full_disk_ends_the_campaign(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    one = begin()

    def listener(event: Event) -> None:
        if isinstance(event, TrialStarted) and event.trial == one.ids[2]:
            monkeypatch.setattr(vtax.store.campaign, "FREE_BYTES", 2**80)

    with pytest.raises(StoreError, match="cannot be written") as caught:
        one.run(listener)
    assert caught.value.exit_code == 3
    one.assert_nothing_is_left()
    assert [each.created for each in one.providers.values()] == [each.destroyed for each in one.providers.values()]
    assert one.recorded() == set(one.ids[:2])
    monkeypatch.undo()
    one.run()
    assert one.recorded() == set(one.ids)


def test_a_store_error_while_a_cluster_is_made_ends_the_campaign(begin: Begin) -> None:
    def fail(number: int) -> None:
        raise StoreError("the control socket's path is too long")

    one = begin(before_create=fail)
    with pytest.raises(StoreError, match="too long"):
        one.run()
    one.assert_nothing_is_left()


# --- trials that fail ----------------------------------------------------------------------------------------------


def test_a_trial_that_fails_is_kept_and_the_rest_goes_on(begin: Begin) -> None:
    one = begin(Counted({1: lambda: (1, "", "FATAL: cannot open file\n")}), rounds=1)
    with pytest.raises(TrialsFailed, match="1 of 4 trials failed") as caught:
        one.run()
    assert caught.value.exit_code == 4
    assert one.statuses("box") == [Status.FAILED, Status.OK]
    assert one.statuses("host") == [Status.OK, Status.OK]
    assert one.cells("box") == [(1, Status.OK, "")]  # its nodes still answered, so the cluster stayed
    failed = next(name for name in one.ids if "box" in name)
    assert caught.value.detail == f"{failed}: failed: sysbench on worker1 ended with exit code 1"
    assert str(one.campaign.directory / "trials") in caught.value.remedy
    one.assert_nothing_is_left()


def test_a_tool_that_prints_rubbish(begin: Begin) -> None:
    """It ended with exit code 0, so only its parser knows; the record stays as it was written."""
    one = begin(telling(sysbench="core dumped\n"), rounds=1)
    with pytest.raises(TrialsFailed, match="2 of 4 trials failed") as caught:
        one.run()
    assert caught.value.exit_code == 4
    assert one.statuses("box") == [Status.OK, Status.OK]
    found, judged = measurements(one.campaign.directory)
    assert {item.environment for item in found} == {"host"}
    bad = [record for record in judged if record.status is Status.FAILED]
    assert {record.environment for record in bad} == {"box"}
    for record in bad:
        source = f"trials/{record.id}/{record.steps[-1].stdout}"
        assert record.failure.startswith(f"{source}: ")
        assert "core dumped" in record.failure
        assert f"{record.id}: failed: {source}: " in caught.value.detail


def test_of_many_failures_the_first_are_told(begin: Begin) -> None:
    one = begin(telling(sysbench=""), rounds=1, iterations=30)
    with pytest.raises(TrialsFailed, match="30 of 60 trials failed") as caught:
        one.run()
    assert len(caught.value.detail.splitlines()) == 20


# --- clusters that fail --------------------------------------------------------------------------------------------


class Fragile:
    """A cluster of which worker1 goes silent in the n-th runs of sysbench (from 1), until there is a new one."""

    def __init__(self, *dies: int) -> None:
        self.dies = dies
        self.runs = 0
        self.dead = False

    def renew(self, number: int) -> None:
        self.dead = False

    def __call__(self, node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "sysbench":
            self.runs += 1
            self.dead = self.runs in self.dies
        if self.dead and node == "worker1":
            return 255, "", "ssh: connection reset\n"
        return (0, PRINTED, "") if argv[0] == "sysbench" else None


def test_a_node_that_dies_costs_its_trial_and_the_rest_has_another_cluster(begin: Begin) -> None:
    script = Fragile(2)
    one = begin(script, before_create=script.renew, rounds=1, iterations=4)
    with pytest.raises(TrialsFailed, match="1 of 8 trials failed"):
        one.run()
    assert one.statuses("box") == [Status.OK, Status.FAILED, Status.OK, Status.OK]
    lost = [name for name in one.ids if "box" in name][1]
    assert one.cells("box") == [(1, Status.FAILED, f"worker1 no longer answered after {lost}"), (2, Status.OK, "")]
    assert (one.providers["box"].created, one.providers["box"].destroyed) == (2, 2)
    assert one.started() == one.ids  # none was tried twice
    one.assert_nothing_is_left()


def test_a_cell_has_two_clusters_at_most(begin: Begin) -> None:
    script = Fragile(1, 3)
    one = begin(script, before_create=script.renew, rounds=2, iterations=4)
    with pytest.raises(TrialsFailed, match="3 of 16 trials failed"):
        one.run()
    first, second = [cell for cell in one.campaign.plan().cells if cell.environment == "box"]
    assert one.statuses("box")[:4] == [Status.FAILED, Status.OK, Status.FAILED, Status.NOT_RUN]
    assert one.statuses("box")[4:] == [Status.OK] * 4  # the next cell begins anew
    (skipped,) = (record for record in one.campaign.trials() if record.status is Status.NOT_RUN)
    why = f"worker1 no longer answered after {first.trials[2].id}"
    assert skipped.failure == f"no cluster: {why}"
    assert [(cell, failure) for cell, _, failure in one.cells("box")] == [
        (1, f"worker1 no longer answered after {first.trials[0].id}"),
        (2, why),
        (1, ""),
    ]
    said = {event.cell: (event.status, event.failure) for event in one.events if isinstance(event, CellFinished)}
    assert said[first.id] == ("failed", why)
    assert said[second.id] == ("ok", "")
    one.assert_nothing_is_left()


def test_a_node_that_dies_in_the_last_trial_needs_no_other_cluster(begin: Begin) -> None:
    script = Fragile(2)
    one = begin(script, before_create=script.renew, rounds=1, iterations=2)
    with pytest.raises(TrialsFailed):
        one.run()
    assert one.providers["box"].created == 1
    assert one.statuses("box") == [Status.OK, Status.FAILED]


def raising_provision(number: int) -> None:
    raise ProvisionError("the daemon went away", detail="EOF", remedy="start it")


def test_a_cluster_that_cannot_be_made_costs_its_cell_only(begin: Begin) -> None:
    one = begin(before_create=raising_provision)
    with pytest.raises(TrialsFailed, match="4 of 8 trials failed") as caught:
        one.run()
    assert caught.value.exit_code == 4
    assert one.statuses("host") == [Status.OK] * 4
    assert one.statuses("box") == [Status.NOT_RUN] * 4
    assert {status for _, status, _ in one.cells("box")} == {Status.FAILED}
    assert all("the daemon went away" in failure for _, _, failure in one.cells("box"))
    for record in one.campaign.trials():
        if record.status is Status.NOT_RUN:
            assert record.failure.startswith("no cluster: the daemon went away")
    assert ran(one.providers["box"].calls, "sysbench") == []
    remaining = [event.remaining_s for event in one.events if isinstance(event, TrialFinished)]
    assert min(remaining) >= 0
    assert remaining[-1] == 0
    one.assert_nothing_is_left()


def test_a_cluster_that_is_not_as_planned_costs_its_cell_only(begin: Begin) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (0, "", "") if "section packages" in stdin and node == "worker2" else WELL(node, argv, stdin)

    one = begin(script, rounds=1)
    with pytest.raises(TrialsFailed, match="2 of 4 trials failed"):
        one.run()
    assert one.statuses("box") == [Status.NOT_RUN] * 2
    failures = {failure for _, _, failure in one.cells("box")}
    assert all(re.search("is up, but not as planned\n(.*\n)*.*worker2: the CPUs", failure) for failure in failures)
    assert one.providers["box"].created == one.providers["box"].destroyed
    one.assert_nothing_is_left()


def test_a_cluster_that_comes_up_the_second_time_is_the_first_of_its_cell(begin: Begin) -> None:
    tries: list[int] = []

    def fail_once(number: int) -> None:
        tries.append(number)
        if len(tries) == 1:
            raise ProvisionError("an address was taken meanwhile")

    one = begin(before_create=fail_once, rounds=1)
    one.run()
    assert one.cells("box") == [(1, Status.OK, "")]


def test_the_consoles_of_machines_that_never_came_up_are_kept_whole(begin: Begin, tmp_path: Path) -> None:
    said = "".join(f"line {number}\n" for number in range(5000)) + "Kernel panic\n"

    def panics(number: int) -> None:
        for node in ("master", "worker1"):
            (place,) = (tmp_path / "run").glob("*/box")
            (place / node).mkdir()
            (place / node / "console.log").write_text(f"{node}\n{said}")
        raise ProvisionError("worker1 does not come up: Kernel panic")

    one = begin(before_create=panics, rounds=1)
    with pytest.raises(TrialsFailed, match="2 of 4 trials failed"):
        one.run()
    kept = {path.name: path.read_text() for path in (one.campaign.directory / "cells").glob("*.console.log")}
    assert kept == {
        f"r001-box.1.failed-{attempt}.{node}.console.log": f"{node}\n{said}"
        for attempt in (1, 2)
        for node in ("master", "worker1")
    }
    one.assert_nothing_is_left()


def test_what_only_the_provider_knows_stands_beside_what_nodes_say(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = FakeProvider.create

    def informed(self: FakeProvider, *words: Any) -> Cluster:
        cluster = create(self, *words)
        return replace(cluster, facts={node.name: {"vm_nic": "e1000"} for node in cluster.nodes})

    monkeypatch.setattr(FakeProvider, "create", informed)
    one = begin(rounds=1)
    one.run()
    for cell in one.campaign.cells():
        assert [facts.values["vm_nic"] for facts in cell.facts] == ["e1000"] * 3
        assert all(facts.values["cpus_allowed"] for facts in cell.facts)
