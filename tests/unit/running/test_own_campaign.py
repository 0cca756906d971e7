"""A campaign with an own command, from its study to its analysis, on fake clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.small import FACTS, IMAGE, MACHINE
from fakes.cluster import FakeProvider, Reply
from vtax.cli.progress import Lines
from vtax.errors import TrialsFailed
from vtax.evaluation.evaluate import evaluate
from vtax.events import Event, Listener, TrialFinished, ignore
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import Status
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.running.campaign import execute
from vtax.running.watch import Watcher
from vtax.store import Campaign
from vtax.transport.visit import FETCH

STUDY = """
name = "own"
rounds = 2
interleave = "cell"
baseline = "host"
[environments.host]
provider = "host"
[nodes]
cpus = 2
memory = "2 GiB"
[[benchmarks]]
name = "command"
label = "mine"
nodes = ["worker1"]
iterations = 2
setup = [["make-data"]]
[benchmarks.run]
command = ["work", "{cpus}"]
success = { refuse = "FATAL" }
[[benchmarks.metrics]]
name = "speed"
unit = "1/s"
kind = "rate, fixed work"
primary = true
regex = 'speed: ([0-9.]+) 1/s'
"""
USAGE = {
    "wall_s": 1.5,
    "user_s": 0.25,
    "system_s": 0.125,
    "max_rss_bytes": 4096,
    "minor_faults": 3,
    "major_faults": 1,
    "voluntary_switches": 2,
    "involuntary_switches": 0,
    "status": 0,
}


def script(said: str) -> object:
    def answer(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv == (*FETCH, "usage.json"):
            return 0, json.dumps(USAGE) + "\n", ""
        return (0, said, "") if argv[-2:] == ("work", "2") else None

    return answer


def campaign(top: Path, said: str, listener: Listener = ignore) -> tuple[Campaign, FakeProvider]:
    providers = {
        "host": FakeProvider("host", top / "run", separate_nodes=False, script=script("speed: 40.5 1/s\n")),  # type: ignore[arg-type]
        "box": FakeProvider("box", top / "run", script=script(said)),  # type: ignore[arg-type]
    }
    specs = tuple(EnvironmentSpec(name=name, provider=name) for name in providers)
    plan = make_plan(parse(STUDY, "own").model_copy(update={"environments": specs}), MACHINE, providers)
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    made = Campaign.create(top / "campaign", b"", plan, about)
    execute(made, providers, IMAGE, top / "run", listener)
    return made, providers["box"]


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)


def test_numbers_of_a_study_come_to_levels(tmp_path: Path) -> None:
    made, box = campaign(tmp_path, "speed: 27 1/s\n")
    found = evaluate(made)
    levels = {(one.environment, one.metric): one for one in found.analysis.levels if one.label == "mine"}
    assert levels["host", "speed"].median == 40.5
    assert levels["box", "speed"].median == 27.0
    assert (levels["box", "wall"].median, levels["box", "max_rss"].median) == (1.5, 4096.0)
    assert {one.metric for one in found.analysis.levels if one.label == "mine" and one.primary} == {"speed"}
    setups = [call for call in box.calls if call.argv[-1] == "make-data"]
    assert len(setups) == box.created == 2  # once for each cluster, and not for each of its two trials


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("speed: nan 1/s\n", "mine"),
        ("speed: 1 1/s\nspeed: 2 1/s\n", "speed"),
        ("", "speed"),
        ("speed: 3 1/s\nFATAL: lost\n", "its output matches 'FATAL', which `success.refuse` forbids"),
    ],
)
def test_what_is_no_number_fails_the_trial_with_its_reason(tmp_path: Path, said: str, why: str) -> None:
    with pytest.raises(TrialsFailed):
        campaign(tmp_path, said)
    found = evaluate(Campaign.open(tmp_path / "campaign"))
    bad = [trial for trial in found.trials if trial.environment == "box"]
    assert {trial.status for trial in bad} == {Status.FAILED}
    assert why in bad[0].failure


def test_progress_and_records_agree_on_a_trial_without_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command ended well, so only the reading of its output makes it a failed one: everyone says so."""
    events: list[Event] = []
    lines = Lines(live=False)

    def listener(event: Event) -> None:
        events.append(event)
        lines.hear(event)

    with pytest.raises(TrialsFailed, match="4 of 8 trials failed"):
        campaign(tmp_path, "speed: unknown\n", listener)
    finished = {one.trial: one for one in events if isinstance(one, TrialFinished)}
    failed = {name for name, one in finished.items() if one.status == Status.FAILED}
    made = Campaign.open(tmp_path / "campaign")
    assert failed == {trial.id for trial in evaluate(made).trials if trial.status is Status.FAILED}
    assert failed == set(Watcher(made.directory).snapshot().failed)
    assert failed == {name for name in finished if "-box/" in name}
    for name in failed:
        assert "speed: ([0-9.]+) 1/s matches nothing; most like it is line 1" in finished[name].failure
    said = [line for line in capsys.readouterr().err.splitlines() if "mine.worker1" in line]
    assert sum(": failed in " in line and "matches nothing" in line for line in said) == 4
    assert sum(": ok in " in line for line in said) == 4
