"""Another baseline than the planned one: an exploratory view, which replaces nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builders.small import IMAGE, PRINTED, anew, new_campaign
from fakes.cluster import FakeProvider, telling
from vtax import pipeline
from vtax.cli.app import app
from vtax.errors import UsageError
from vtax.evaluation.evaluate import evaluate
from vtax.running.campaign import execute
from vtax.store import Campaign

NAMES = ("host", "box", "jail")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    script = anew(telling(sysbench=PRINTED))
    providers = {name: FakeProvider(name, tmp_path / "run", script=script) for name in NAMES}
    made = new_campaign(tmp_path / "c", providers, rounds=2, iterations=1)
    execute(made, providers, IMAGE, tmp_path / "run", lambda event: None)
    return made


def test_all_environments_are_compared_with_another_one(campaign: Campaign) -> None:
    found = evaluate(campaign)
    other = found.against("jail")
    assert {one.baseline for one in found.analysis.comparisons} == {"host"}
    assert {(one.environment, one.baseline) for one in other.analysis.comparisons} == {
        ("host", "jail"),
        ("box", "jail"),
    }
    assert other.analysis.baseline == "jail"
    assert other.analysis.exploratory == "jail is not the planned baseline, which is host: exploratory"
    assert found.analysis.exploratory == ""
    assert other.analysis.levels == found.analysis.levels
    assert other.analysis.plan_sha256 == found.analysis.plan_sha256
    assert evaluate(campaign, baseline="jail").analysis == other.analysis
    assert found.against("host") is found


def test_an_unknown_environment_is_refused(campaign: Campaign) -> None:
    with pytest.raises(UsageError, match="there is no environment 'jial'"):
        evaluate(campaign).against("jial")
    with pytest.raises(UsageError, match="there is no environment 'jial'"):
        pipeline.study_of(campaign.directory, "jial")


def test_an_emulated_environment_is_refused(campaign: Campaign) -> None:
    """Everything compared with it would be "not comparable"."""
    found = evaluate(campaign)
    emulated = replace(found, analysis=found.analysis.model_copy(update={"emulated": ("jail",)}))
    with pytest.raises(UsageError, match="'jail' ran in software emulation") as refused:
        emulated.against("jail")
    assert refused.value.remedy == "choose from host, box"


def test_the_planned_analysis_stays(campaign: Campaign, tmp_path: Path) -> None:
    where = str(campaign.directory)
    assert CliRunner().invoke(app, ["analyse", where]).exit_code == 0
    planned = (campaign.directory / "analysis.json").read_bytes()
    copy = tmp_path / "other.json"
    done = CliRunner().invoke(app, ["analyse", where, "--baseline", "box", "-o", str(copy)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("box is not the planned baseline, which is host: exploratory")
    assert "against box" in done.output
    assert (campaign.directory / "analysis.json").read_bytes() == planned
    assert json.loads(copy.read_bytes())["baseline"] == "box"
    printed = CliRunner().invoke(app, ["analyse", where, "--baseline", "box", "--json"])
    assert json.loads(printed.output)["exploratory"].startswith("box is not")


def test_gates_are_about_the_baseline_that_is_given(campaign: Campaign) -> None:
    where = str(campaign.directory)
    gate = ["--fail-on", "sysbench-cpu.events_rate@host slower than 50%"]
    refused = CliRunner().invoke(app, ["analyse", where, *gate])
    assert isinstance(refused.exception, UsageError)
    assert CliRunner().invoke(app, ["analyse", where, "--baseline", "box", *gate]).exit_code == 0
