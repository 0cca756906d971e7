"""Campaigns that end by themselves, on real environments: at a look, with a budget, and in the self-test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vtax.model.look import Decision
from vtax.paths import Paths
from vtax.store import Campaign

from .conftest import CPU, Vtax, finish, study

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_a_campaign_with_looks_budget_gates_and_junit(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """Three times the host, one of them the control arm. The margin is wide, so that everything is settled at the first
    look; the budget ends the first attempt before it."""
    text = study(("host",), CPU.format(seconds=1)).replace(
        "rounds = 1", "looks = [6, 10]\nmargin = 0.9\ncontrol = true"
    )
    text = text.replace("[nodes]", '[environments.twin]\nprovider = "host"\n[nodes]')
    (tmp_path / "study.toml").write_text(text)
    code, _, err = finish(vtax("run", "study.toml", "-o", "c", "--budget", "14 s"), 300)
    assert code == 0, err
    assert "so no verdict will be possible" in err
    log = Campaign.open(tmp_path / "c").look_log()
    assert log is not None
    assert log.looks[-1].decision is Decision.BUDGET
    assert 0 < log.looks[-1].rounds < 6
    gates = ("--fail-on", "sysbench-cpu.events_rate slower than 90%", "--fail-on", "inconclusive")
    code, _, err = finish(vtax("run", "--resume", "c", "--budget", "1 h", *gates, "--junit", "vtax.xml"), 300)
    log = Campaign.open(tmp_path / "c").look_log()
    assert log is not None
    assert (log.looks[-1].rounds, log.looks[-1].decision) == (6, Decision.SETTLED)
    assert 'tests="' in (tmp_path / "vtax.xml").read_text()
    analysis = json.loads((tmp_path / "c" / "analysis.json").read_text())
    assert (analysis["look"], analysis["rounds_complete"]) == (6, 6)
    assert analysis["control"] == "control"
    verdicts = {c["environment"]: c["verdict"] for c in analysis["comparisons"] if c["primary"]}
    if any(f["id"] == "C05" and f["severity"] == "blocker" for f in analysis["findings"]):
        assert code == 5, "this machine lost its CPUs to others meanwhile: nothing is resolved, and the gate says so"
        assert verdicts["twin"] == "not comparable"
        assert "of the CPU time was stolen" in err
    else:
        assert code == 0, err
        assert verdicts["twin"] in ("equivalent", "trivial")
    assert set(verdicts) == {"twin", "control"}
    assert analysis["resolution"] > 0


@pytest.mark.long
def test_a_known_handicap_is_found_and_the_same_again_is_not(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """Half of the CPU time, which other work on the machine does not hide; six rounds are enough for that."""
    words = ("selftest", "inject", "--percent", "50", "--seconds", "1", "--iterations", "1", "-o", "c", "--json")
    code, out, err = finish(vtax(*words), 600)
    assert code == 0, err
    found = json.loads(out)
    assert (found["detected"], found["quiet"]) == (True, True)
    assert found["slowed"]["high"] < 1
    assert found["control"]["low"] <= 1 <= found["control"]["high"]
