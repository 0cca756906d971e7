"""Environments that take part in less, and entries that are exploratory: from the plan to the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.small import FACTS, IMAGE, MACHINE, PRINTED, anew, study
from fakes.cluster import FakeProvider, telling
from vtax.analysis.records import Comparison, settled
from vtax.evaluation.evaluate import Evaluation, evaluate
from vtax.model.finding import Outcome
from vtax.model.study import Selection
from vtax.planning.plan import make_plan
from vtax.running.campaign import execute
from vtax.store import Campaign

ROUNDS = 8


def ran(directory: Path, entry: Mapping[str, Any] | None = None, guest: int = 2) -> Campaign:
    """Eight rounds on two environments, with looks at six and eight; a third has `guest` rounds, planned so."""
    script = anew(telling(sysbench=PRINTED))
    providers = {name: FakeProvider(name, directory / "run", script=script) for name in ("host", "box", "guest")}
    whole = study(tuple(providers), rounds=ROUNDS)
    specs = tuple(
        spec.model_copy(update={"selection": Selection(rounds=guest)}) if spec.name == "guest" else spec
        for spec in whole.environments
    )
    benchmarks = tuple(spec.model_copy(update=entry or {}) for spec in whole.benchmarks)
    wanted = whole.model_copy(update={"environments": specs, "looks": (6, ROUNDS), "benchmarks": benchmarks})
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    campaign = Campaign.create(directory / "c", b"", make_plan(wanted, MACHINE, providers), about)
    execute(campaign, providers, IMAGE, directory / "run", lambda event: None)
    return campaign


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return ran(tmp_path_factory.mktemp("selected"))


def of(found: Evaluation, environment: str) -> Comparison:
    (one,) = [c for c in found.analysis.comparisons if c.environment == environment and c.metric == "events_rate"]
    return one


def test_rounds_in_which_an_environment_has_no_part_are_not_lost(campaign: Campaign) -> None:
    found = evaluate(campaign)
    assert found.analysis.rounds_complete == ROUNDS
    assert (of(found, "guest").n, of(found, "guest").dropped) == (2, 0)
    assert (of(found, "box").n, of(found, "box").dropped) == (ROUNDS, 0)
    rows = {row.id: row for row in found.audit.rows}
    for name in ("R01", "R02", "R03", "R07"):
        assert rows[name].outcome is not Outcome.FAIL, rows[name].findings


def test_a_lost_round_of_such_an_environment_is_counted(tmp_path: Path) -> None:
    made = ran(tmp_path)
    lost = next(trial for trial in made.trials(texts=False) if trial.environment == "guest" and trial.round == 2)
    for path in (made.directory / "trials").glob(f"{lost.cell}/*"):
        (path / "record.json").unlink()
    found = evaluate(made)
    assert (of(found, "guest").n, of(found, "guest").dropped) == (1, 1)
    assert {row.id for row in found.audit.rows if row.outcome is Outcome.FAIL} >= {"R07"}


def test_an_environment_that_is_over_keeps_no_campaign_open(campaign: Campaign) -> None:
    found = evaluate(campaign, until=6).analysis
    over = {one.environment: one.over for one in found.comparisons}
    assert over == {"box": False, "guest": True}
    decided = {"box": "equivalent", "guest": "data only"}
    made = tuple(one.model_copy(update={"verdict": decided[one.environment]}) for one in found.comparisons)
    assert settled(found.model_copy(update={"comparisons": made}))
    waiting = tuple(one.model_copy(update={"over": False}) for one in made)
    assert not settled(found.model_copy(update={"comparisons": waiting}))


def test_an_environment_with_enough_rounds_of_its_own_has_a_verdict(tmp_path: Path) -> None:
    found = evaluate(ran(tmp_path, guest=6))
    assert (of(found, "guest").n, of(found, "guest").dropped) == (6, 0)
    assert of(found, "guest").low is not None
    assert "R01" not in {row.id for row in found.audit.rows if row.outcome is Outcome.FAIL}


@pytest.mark.parametrize("exploratory", [True, ("events_rate",)])
def test_exploratory_metrics_are_not_primary(
    exploratory: bool | tuple[str, ...], tmp_path: Path, campaign: Campaign
) -> None:
    explored, usual = evaluate(ran(tmp_path, {"exploratory": exploratory})), evaluate(campaign)
    assert of(usual, "box").primary
    assert not of(explored, "box").primary
    assert not any(one.primary for one in explored.measurements)
    assert explored.analysis.family == 0
    assert usual.analysis.family > 0
    assert of(explored, "box").low is not None
    assert of(explored, "box").sentence.endswith("(exploratory)")
