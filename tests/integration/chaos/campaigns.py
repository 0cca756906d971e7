"""Campaigns that chaos tests run, and when they are complete."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from vtax.analysis.order import planned_order
from vtax.store import READING, Campaign

from ..conftest import CPU, study
from .harness import TEMPORARY, Chaos

ENTRIES = (
    CPU.format(seconds=1) + "iterations = 2\n" + CPU.format(seconds=1).replace("time_s", 'label = "again"\ntime_s')
)
DERIVED = ("analysis.json", "audit.json")


def small(names: Sequence[str], entries: str = ENTRIES, rounds: int = 2) -> str:
    """A study of short trials on two nodes; virtual machines are small and may be emulated."""
    text = study(names, entries, rounds=rounds).replace("workers = 2", "workers = 1")
    if "qemu" in names:
        text = text.replace('provider = "qemu"\n', 'provider = "qemu"\nallow_emulation = true\n')
        text = text.replace('memory = "512 MiB"', 'memory = "384 MiB"')
    return text


def continued(one: Chaos, path: Path) -> tuple[str, ...]:
    """The command that goes on with the campaign, or begins it: also in a directory that has no plan yet."""
    if (one.campaign / "plan.json").exists():
        return "run", "--resume", str(one.campaign)
    return "run", str(path), "-o", str(one.campaign)


def complete(one: Chaos) -> None:
    """Every trial of the plan is there, and succeeded."""
    campaign = Campaign.open(one.campaign)
    plan = campaign.plan()
    wanted = [trial.id for trial in planned_order(plan, lambda _: plan.interleave == "trial")]
    missing = set(wanted) ^ {trial.id for trial in campaign.trials()}
    assert missing == set(), f"missing, or not in the plan: {missing}"
    failed = {trial.id: trial.failure for trial in campaign.trials(texts=False) if trial.status != "ok"}
    assert failed == {}, str(failed)


def reported(one: Chaos, kills: int) -> None:
    """The report, killed while it is written, is at last that of a copy in which it was never made."""
    copy = never_reported(one)
    for _ in range(kills):
        one.kill("report", str(one.campaign), within_s=2.5)
    one.finish("report", str(one.campaign))
    one.finish("report", str(copy))
    ours, theirs = derived(one.campaign), derived(copy)
    differing = [name for name, content in ours.items() if theirs[name] != content]
    assert differing == [], f"not as in {copy}: {differing}"
    hidden = [path.name for path in one.campaign.rglob(".*") if path.name != ".lock"]
    assert [name for name in hidden if TEMPORARY.fullmatch(name) is None] == []


def never_reported(one: Chaos) -> Path:
    """A copy of the campaign without anything that is made of its trials."""
    copy = one.top / "copy" / one.campaign.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(one.campaign, copy)
    for path in (*(copy / name for name in DERIVED), *copy.rglob(READING), *copy.rglob(".*.tmp")):
        path.unlink(missing_ok=True)
    shutil.rmtree(copy / "report", ignore_errors=True)
    return copy


def derived(campaign: Path) -> dict[str, bytes]:
    """What a report is made of, byte for byte, and its text."""
    found = {name: (campaign / name).read_bytes() for name in DERIVED}
    text = (campaign / "report" / "report.md").read_text()
    return {**found, "report": re.sub(r"\d{4}-\d\d-\d\d.*", "", text).encode()}
