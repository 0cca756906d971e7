"""vtax seal, compare and plan --from on the command line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from unit.test_cli import HOST_ONLY, Run, run
from vtax.model.plan import Plan
from vtax.store import Campaign

__all__ = ["run"]  # the fixture

ABOUT = {"id": "c1c1c1c1", "image": {"digest": "d" * 64, "recipe": "r", "versions": {}}, "host": {}}
WITH_FILES = (
    HOST_ONLY
    + """\
[[benchmarks]]
name = "command"
label = "mine"
files = [{ from = "work/tool.sh", executable = true }]
command = ["./tool.sh"]
[[benchmarks.metrics]]
name = "speed"
unit = "1/s"
kind = "rate, fixed work"
regex = 'speed (\\d+)'
"""
)


def test_seal_and_check(run: Run, campaign: Campaign) -> None:
    code, said, _ = run("seal", str(campaign.directory), "-o", "a.zip", "--json")
    assert code == 0
    made = json.loads(said)
    assert (made["file"], made["raw"], made["redacted"]) == ("a.zip", "whole", None)
    code, said, _ = run("seal", "--check", "a.zip")
    assert code == 0
    assert made["sha256"] in said
    assert "numbers           holds        " in said
    code, said, _ = run("seal", "--check", "a.zip", "--json")
    assert (code, json.loads(said)["holds"]) == (0, True)


def test_a_check_that_fails_ends_with_one_and_says_what_differs(run: Run, campaign: Campaign) -> None:
    run("seal", str(campaign.directory), "-o", "a.zip")
    with zipfile.ZipFile("a.zip", "a") as file:
        file.writestr("campaign/cells/more.json", b"{}")
    code, said, error = run("seal", "--check", "a.zip")
    assert code == 1
    assert "cells/more.json: it was not sealed" in said
    assert "not what it claims: files" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--check", "no.zip"), "is not a file of `vtax seal`"),
        (("--check", "mine", "-o", "x"), "--output has no meaning"),
        (("mine", "--raw", "some"), "--raw 'some' is unknown"),
        (("mine", "--signers", "x"), "--signers is about checking"),
        (("mine", "--sign", "no.key"), "no.key is not a key"),
        (("nowhere",), "nowhere does not exist"),
    ],
)
def test_wrong_options_are_refused(run: Run, campaign: Campaign, arguments: tuple[str, ...], message: str) -> None:
    code, _, error = run("seal", *arguments)
    assert (code, message in error) == (2, True)
    assert [path.name for path in Path().glob("*.zip")] == []


def test_a_sealed_campaign_is_compared_like_a_directory(run: Run, campaign: Campaign) -> None:
    run("seal", str(campaign.directory), "-o", "a.zip", "--raw", "hashes")
    code, said, error = run("compare", "a.zip", "mine", "--json")
    assert (code, error) == (0, "")
    found = json.loads(said)
    assert found["unlike"] == []
    assert {change["change"]["ratio"] for change in found["changes"] if change["primary"]} == {1.0}


def planned_here(run: Run, tmp_path: Path, text: str) -> Path:
    """A campaign of a study on this machine, of which nothing has run."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tool.sh").write_text("#!/bin/sh\necho speed 5\n")
    (tmp_path / "mine.toml").write_text(text)
    code, said, error = run("plan", "mine.toml", "--json")
    assert code == 0, error
    kept = [(tmp_path / "work" / "tool.sh").read_bytes()]
    Campaign.create(tmp_path / "theirs", text.encode(), Plan.model_validate_json(said), ABOUT, kept)
    return tmp_path / "theirs"


def test_the_same_study_is_planned_here(run: Run, tmp_path: Path) -> None:
    theirs = planned_here(run, tmp_path, WITH_FILES)
    code, said, error = run("plan", "--from", str(theirs), "--into", "again")
    assert code == 0, error
    assert "./tool.sh" in said  # commands of its author are always shown
    assert "there dddd" in said  # the root file system, which was not built here
    assert Path("again/study.toml").read_text() == WITH_FILES
    assert Path("again/work/tool.sh").read_text() == "#!/bin/sh\necho speed 5\n"
    code, said, _ = run("plan", "--from", str(theirs), "--json")
    again, before = json.loads(said), Campaign.open(theirs).plan()
    assert Plan.model_validate(again["plan"]).work == before.work
    assert "sha256 of the root file system" in [one["what"] for one in again["differences"]]


def test_what_cannot_be_the_same_is_listed(run: Run, tmp_path: Path) -> None:
    theirs = planned_here(run, tmp_path, HOST_ONLY)
    plan = json.loads((theirs / "plan.json").read_text())
    plan["shape"]["nodes"][0]["cpus"] = 64
    plan["vtax_version"] = "0.0.1"
    for work in plan["work"]:
        if work["label"] == "sysbench-cpu":
            work["params"]["threads"] = 64
    (theirs / "plan.json").write_text(json.dumps(plan))
    found = json.loads(run("plan", "--from", str(theirs), "--json")[1])["differences"]
    said = {one["what"]: (one["a"], one["b"]) for one in found}
    assert said["cpus of master"] == ("64", "1")
    assert said["version of vtax"][0] == "0.0.1"
    assert [one["a"] for one in found if one["what"].endswith(": threads")] == ["64"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is no study to plan"),
        (("quick", "--from", "theirs"), "takes neither a study nor --sample"),
        (("quick", "--into", "x"), "--output writes the study of --from"),
        (("--from", "theirs", "--into", "work"), "work is not an empty directory"),
    ],
)
def test_plan_refuses_what_it_cannot_do(run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    planned_here(run, tmp_path, HOST_ONLY)
    code, _, error = run("plan", *arguments)
    assert (code, message in error) == (2, True)
