"""A campaign with an own command, from its study to its analysis, on fake clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.small import FACTS, IMAGE, MACHINE
from fakes.cluster import FakeProvider, Reply
from vtax.errors import TrialsFailed
from vtax.evaluation.evaluate import evaluate
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import Status
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.running.campaign import execute
from vtax.store import Campaign

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
        if argv == ("cat", "usage.json"):
            return 0, json.dumps(USAGE) + "\n", ""
        return (0, said, "") if argv[-2:] == ("work", "2") else None

    return answer


def campaign(top: Path, said: str) -> tuple[Campaign, FakeProvider]:
    providers = {
        "host": FakeProvider("host", top / "run", separate_nodes=False, script=script("speed: 40.5 1/s\n")),  # type: ignore[arg-type]
        "box": FakeProvider("box", top / "run", script=script(said)),  # type: ignore[arg-type]
    }
    specs = tuple(EnvironmentSpec(name=name, provider=name) for name in providers)
    plan = make_plan(parse(STUDY, "own").model_copy(update={"environments": specs}), MACHINE, providers)
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    made = Campaign.create(top / "campaign", b"", plan, about)
    execute(made, providers, IMAGE, top / "run", lambda _: None)
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
