"""Trials that alternate between environments: their order, who is paused meanwhile, and what happens on bad days."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from builders.small import IMAGE, PRINTED, anew, new_campaign, planned
from fakes.cluster import FakeProvider, Reply, Script, telling
from vtax.errors import PauseError, ProvisionError, TrialsFailed
from vtax.evaluation.evaluate import evaluate
from vtax.events import CellFinished, Event, Notice, TrialFinished, TrialStarted
from vtax.model.trial import Status
from vtax.running.campaign import execute
from vtax.running.sites import label_of

WELL = telling(sysbench=PRINTED)


@dataclass
class Turns:
    """A campaign whose trials alternate, on fake clusters. Every command on a node is checked: its cluster runs, and
    all others are paused."""

    top: Path
    names: tuple[str, ...]
    script: Script
    rounds: int
    iterations: int
    events: list[Event] = field(default_factory=list)
    providers: dict[str, FakeProvider] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            script = self._watched(name, self.script if name == "box" else WELL)
            self.providers[name] = FakeProvider(name, self.top / "run", separate_nodes=name != "host", script=script)
        self.campaign = new_campaign(
            self.top / "campaign",
            self.providers,
            rounds=self.rounds,
            iterations=self.iterations,
            interleave="trial",
        )

    def _watched(self, name: str, script: Script) -> Script:
        def answer(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
            assert self.running() <= {name}, f"{argv} ran in {name} next to another cluster"
            assert label_of("c1c1c1c1", name) not in self.providers[name].paused, (
                f"{argv} ran in {name}, which is paused"
            )
            return script(node, argv, stdin)

        return answer

    def running(self) -> set[str]:
        """The environments whose cluster exists and is not paused."""
        return {name for name, one in self.providers.items() if set(one.live) - one.paused}

    def run(self) -> None:
        execute(self.campaign, self.providers, IMAGE, self.top / "run", self.events.append)

    def started(self) -> list[str]:
        return [event.trial for event in self.events if isinstance(event, TrialStarted)]

    def short(self) -> str:
        """The environments of the trials that ran, in order, by their first letters; a space between rounds."""
        ran: dict[str, str] = {}
        for name in self.started():
            number, _, environment = name.partition("/")[0].partition("-")
            ran[number] = ran.get(number, "") + environment[0]
        return " ".join(ran.values())

    def statuses(self, environment: str) -> list[Status]:
        found = [record for record in self.campaign.trials(texts=False) if record.environment == environment]
        return [record.status for record in sorted(found, key=lambda one: (one.round, one.iteration))]

    def cells(self, environment: str) -> list[tuple[int, Status, str]]:
        found = [cell for cell in self.campaign.cells() if cell.environment == environment]
        return [(cell.instance, cell.status, cell.failure) for cell in found]

    def assert_nothing_is_left(self) -> None:
        for provider in self.providers.values():
            assert provider.leftovers() == []
            assert provider.paused == set()
        assert list((self.top / "run").iterdir()) == []


Begin = Callable[..., Turns]


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    def make(
        script: Script = WELL, names: tuple[str, ...] = ("host", "box"), rounds: int = 1, iterations: int = 4
    ) -> Turns:
        return Turns(tmp_path, names, script, rounds, iterations)

    return make


# --- all is well ---------------------------------------------------------------------------------------------------


def test_trials_alternate_in_mirrored_order_and_nothing_runs_side_by_side(begin: Begin) -> None:
    one = begin(rounds=2)
    one.run()
    assert one.started() == planned(one.campaign.plan())
    assert sorted(one.short().split()) == ["bhhbbhhb", "hbbhhbbh"], "each is first in half of the rounds"
    assert [record.id for record in one.campaign.trials()] == one.started()
    assert {provider.created for provider in one.providers.values()} == {2}, "a fresh cluster for every cell"
    one.assert_nothing_is_left()


def test_all_clusters_of_a_round_exist_at_once_under_labels_of_their_own(begin: Begin) -> None:
    alive: list[set[str]] = []

    def note(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "sysbench":
            alive.append({label for provider in one.providers.values() for label in provider.live})
        return WELL(node, argv, stdin)

    one: Turns = begin(note, names=("host", "box", "crate"))
    one.run()
    labels = {label_of("c1c1c1c1", name) for name in one.names}
    assert len(labels) == 3
    assert all(re.fullmatch("[0-9a-f]{8}", label) for label in labels)
    assert alive == [labels] * 4


def test_every_trial_ends_a_recorded_pause(begin: Begin) -> None:
    one = begin()
    one.run()
    for record in one.campaign.trials(texts=False):
        assert record.pause is not None
        assert record.pause.lasted_s >= 0
        assert record.pause.clock_behind_s == {}, "these nodes have the clock of the machine"
    cells = {cell.environment: cell for cell in one.campaign.cells()}
    first, second = (cell.environment for cell in one.campaign.plan().cells)
    assert (cells[first].paused, cells[second].paused) == ((), (first,))
    assert {cell.pausing for cell in cells.values()} == {"a fake pause"}
    assert {cell.checks[-1] for cell in cells.values()} == {"paused between its trials by a fake pause"}
    assert {cell.not_interleaved for cell in cells.values()} == {""}


def test_the_progress_counts_down_to_zero(begin: Begin) -> None:
    one = begin(names=("host", "box", "crate"))
    one.run()
    left = [event.remaining_s for event in one.events if isinstance(event, TrialFinished)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert [event.status for event in one.events if isinstance(event, CellFinished)] == ["ok"] * 3


def test_whole_cells_are_never_paused(begin: Begin) -> None:
    one = begin()
    one.campaign.save("plan.json", one.campaign.plan().model_copy(update={"interleave": "cell"}))
    one.run()
    assert one.short() in ("hhhhbbbb", "bbbbhhhh")
    assert {provider.pauses for provider in one.providers.values()} == {0}
    assert {record.pause for record in one.campaign.trials(texts=False)} == {None}
    assert {cell.pausing for cell in one.campaign.cells()} == {""}


# --- clusters that are lost ----------------------------------------------------------------------------------------


class Fragile:
    """A cluster of which worker1 goes silent in the n-th run of sysbench (from 1), until there is a new one."""

    def __init__(self, *dies: int) -> None:
        self.dies, self.runs, self.dead = dies, 0, False

    def renew(self, number: int) -> None:
        self.dead = False

    def __call__(self, node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "sysbench":
            self.runs += 1
            self.dead = self.runs in self.dies
        return (255, "", "connection reset\n") if self.dead and node == "worker1" else WELL(node, argv, stdin)


def test_a_lost_cluster_is_replaced_while_the_others_stay_paused(begin: Begin) -> None:
    script = Fragile(2)
    one = begin(script)
    one.providers["box"].before_create = script.renew
    with pytest.raises(TrialsFailed, match="1 of 8 trials failed"):
        one.run()
    assert one.started() == planned(one.campaign.plan()), "the order stays as planned"
    assert one.statuses("box") == [Status.OK, Status.FAILED, Status.OK, Status.OK]
    assert one.statuses("host") == [Status.OK] * 4
    lost = next(name for name in one.started() if name.endswith("-box/sysbench-cpu.worker1.2"))
    assert one.cells("box") == [(1, Status.FAILED, f"worker1 no longer answered after {lost}"), (2, Status.OK, "")]
    assert one.cells("host") == [(1, Status.OK, "")]
    second = next(cell for cell in one.campaign.cells() if (cell.environment, cell.instance) == ("box", 2))
    assert (second.paused, second.pausing) == (("host",), "a fake pause")
    one.assert_nothing_is_left()


def test_where_no_second_cluster_can_be_made_the_rest_is_not_run(begin: Begin) -> None:
    def refuse(number: int) -> None:
        script.dead = False
        if number > 1:
            raise ProvisionError("the daemon went away")

    script = Fragile(2)
    one = begin(script)
    one.providers["box"].before_create = refuse
    with pytest.raises(TrialsFailed, match="3 of 8 trials failed"):
        one.run()
    assert one.statuses("box") == [Status.OK, Status.FAILED, Status.NOT_RUN, Status.NOT_RUN]
    assert one.statuses("host") == [Status.OK] * 4
    assert [status for _, status, _ in one.cells("box")] == [Status.FAILED] * 2
    records = one.campaign.trials(texts=False)
    assert [record.id for record in records] == planned(one.campaign.plan()), "skipped when their turn came"
    assert {r.failure for r in records if r.status is Status.NOT_RUN} == {"no cluster: the daemon went away"}
    one.assert_nothing_is_left()


def test_a_cluster_that_never_comes_up_costs_its_cell_only(begin: Begin) -> None:
    one = begin(names=("host", "box", "crate"))
    one.providers["box"].before_create = raising(ProvisionError("it rains"))
    with pytest.raises(TrialsFailed, match="4 of 12 trials failed"):
        one.run()
    assert one.statuses("box") == [Status.NOT_RUN] * 4
    assert one.statuses("host") == one.statuses("crate") == [Status.OK] * 4
    one.assert_nothing_is_left()


# --- pauses that fail ----------------------------------------------------------------------------------------------


def raising(error: Exception, *numbers: int) -> Callable[[int], None]:
    """Raises in these calls; without numbers in all."""

    def act(number: int) -> None:
        if not numbers or number in numbers:
            raise error

    return act


def test_where_nothing_pauses_a_cluster_whole_cells_run_one_after_the_other(begin: Begin) -> None:
    one = begin(rounds=2)
    one.providers["box"].before_pause = raising(PauseError("no freezer, and the engine refuses"))
    one.run()
    plan = one.campaign.plan()
    assert one.started() == [trial.id for cell in plan.cells for trial in cell.trials]
    why = "the cluster of box cannot be paused: no freezer, and the engine refuses"
    (notice,) = [event.message for event in one.events if isinstance(event, Notice)]
    assert (
        notice
        == f"trials do not alternate between environments, which are measured one after the other from now on: {why}"
    )
    records = one.campaign.cells()
    assert {cell.not_interleaved for cell in records} == {why}
    assert {(cell.pausing, cell.paused, cell.instance) for cell in records} == {("", (), 1)}
    assert one.providers["box"].pauses == 1, "it is not tried again"
    assert {found.interleave for found in evaluate(one.campaign).analysis.comparisons} == {"cell"}
    one.assert_nothing_is_left()


def test_one_round_of_whole_cells_makes_all_of_them_compared_as_such(begin: Begin) -> None:
    one = begin(script=anew(WELL), rounds=3)
    one.providers["box"].before_pause = raising(PauseError("no freezer"), 6)  # the first pause of the second round
    one.run()
    assert [sorted({cell.not_interleaved for cell in one.campaign.cells() if cell.round == n}) for n in (1, 2, 3)] == [
        [""],
        ["the cluster of box cannot be paused: no freezer"],
        ["the cluster of box cannot be paused: no freezer"],
    ]
    found = evaluate(one.campaign)
    assert {each.interleave for each in found.analysis.comparisons} == {"cell"}
    assert {each.interleave for each in evaluate(one.campaign, until=1).analysis.comparisons} == {"trial"}
    (said,) = [each.message for each in found.analysis.findings if each.id == "R02"]
    assert "in 2 of 3 rounds" in said
    assert "whole cells are compared in all rounds" in said


def test_a_slower_pause_than_usual_is_reported_once_and_in_every_record(begin: Begin) -> None:
    one = begin(rounds=2)
    one.providers["box"].slow_pause = "only root may freeze control groups"
    one.run()
    how = "a slow pause (only root may freeze control groups)"
    assert [event.message for event in one.events if isinstance(event, Notice)] == [
        f"the clusters of box are paused by {how}, which takes longer than usual"
    ]
    assert [cell.pausing for cell in one.campaign.cells() if cell.environment == "box"] == [how, how]


def test_a_slower_pause_from_the_middle_of_a_round_on_is_recorded_too(begin: Begin) -> None:
    one = begin()
    box = one.providers["box"]

    def fall_back(number: int) -> None:
        box.slow_pause = "a process did not stop" if number >= 3 else ""

    box.before_pause = fall_back
    one.run()
    (cell,) = (cell for cell in one.campaign.cells() if cell.environment == "box")
    assert cell.pausing == "a slow pause (a process did not stop)"
    assert cell.checks[-2:] == (
        "paused between its trials by a fake pause",
        f"paused between its trials by {cell.pausing}",
    )
    assert [type(event) for event in one.events].count(Notice) == 1


def test_a_provider_without_pauses_gets_whole_cells(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    create = FakeProvider.create
    monkeypatch.setattr(FakeProvider, "create", lambda *words: replace(create(*words), pausing=None))
    one = begin()
    one.run()
    assert one.short() in ("hhhhbbbb", "bbbbhhhh")
    assert {cell.not_interleaved.partition(": ")[2] for cell in one.campaign.cells()} == {
        "its provider cannot pause clusters"
    }


def test_a_cluster_that_cannot_be_paused_after_a_trial_is_replaced(begin: Begin) -> None:
    """It would run next to the others."""
    one = begin()
    one.providers["box"].before_pause = raising(PauseError("D state"), 3)  # once before the first trial
    one.run()
    assert one.statuses("box") == [Status.OK] * 4
    (first, status, why), second = one.cells("box")
    assert (first, status, second) == (1, Status.FAILED, (2, Status.OK, ""))
    assert re.fullmatch(r"its nodes could not be paused after r001-box/\S+\.2: D state", why)
    one.assert_nothing_is_left()


def test_a_node_that_does_not_resume_costs_its_cluster_and_no_trial(begin: Begin) -> None:
    one = begin()
    one.providers["box"].before_resume = raising(PauseError("worker1 does not answer after a pause"), 2)
    one.run()
    assert one.started() == planned(one.campaign.plan())
    assert one.statuses("box") == [Status.OK] * 4
    why = "its nodes did not resume: worker1 does not answer after a pause"
    assert one.cells("box") == [(1, Status.FAILED, why), (2, Status.OK, "")]
    one.assert_nothing_is_left()


def test_a_cell_whose_nodes_never_resume_is_a_recorded_failure_of_that_cell_alone(begin: Begin) -> None:
    one = begin()
    one.providers["box"].before_resume = raising(PauseError("stuck"))
    with pytest.raises(TrialsFailed, match=r"[23] of 8 trials failed"):
        one.run()
    assert one.statuses("host") == [Status.OK] * 4
    assert Status.NOT_RUN in one.statuses("box")
    assert [failure for _, _, failure in one.cells("box")] == ["its nodes did not resume: stuck"] * 2
    one.assert_nothing_is_left()


# --- interruptions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, 9))
def test_an_interrupted_round_leaves_nothing_and_is_completed_on_new_clusters(begin: Begin, cut: int) -> None:
    runs: list[str] = []

    def interrupting(script: Script) -> Script:
        def answer(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
            if argv[0] == "sysbench":
                runs.append(node)
                if len(runs) == cut:
                    raise KeyboardInterrupt
            return script(node, argv, stdin)

        return answer

    one = begin()
    for provider in one.providers.values():
        assert provider.script is not None
        provider.script = interrupting(anew(provider.script))
    with pytest.raises(KeyboardInterrupt):
        one.run()
    one.assert_nothing_is_left()
    order = planned(one.campaign.plan())
    done = [record.id for record in one.campaign.trials(texts=False)]
    assert done == order[: cut - 1]
    one.events.clear()
    one.run()
    assert one.started() == order[cut - 1 :], "pairs stay pairs, by the number of their iteration"
    assert [record.id for record in one.campaign.trials(texts=False)] == order
    again = {name.partition("/")[0] for name in order[cut - 1 :]}
    counts = {name: len(one.cells(name)) for name in one.names}
    assert counts == {name: 1 + (f"r001-{name}" in again) for name in one.names}
    one.assert_nothing_is_left()


def test_an_interrupt_while_a_later_cluster_is_made(begin: Begin) -> None:
    one = begin()
    for provider in one.providers.values():
        provider.before_create = raising_second(one)
    with pytest.raises(KeyboardInterrupt):
        one.run()
    assert one.started() == []
    one.assert_nothing_is_left()


def raising_second(one: Turns) -> Callable[[int], None]:
    def act(number: int) -> None:
        if any(provider.live for provider in one.providers.values()):
            raise KeyboardInterrupt

    return act


def test_each_cluster_is_destroyed_though_another_cannot_be(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    one = begin(names=("host", "box", "crate"))
    destroy = one.providers["box"].destroy

    def refuse(label: str) -> None:
        destroy(label)
        raise ProvisionError("the daemon hangs")

    monkeypatch.setattr(one.providers["box"], "destroy", refuse)
    one.run()
    assert one.providers["host"].live == one.providers["crate"].live == {}
    assert [event.message for event in one.events if isinstance(event, Notice)] == [
        "the cluster of r001-box could not be removed: the daemon hangs"
    ]
