"""What a campaign that somebody else made cannot do to its reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.small import PRINTED, new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax.errors import DamagedError, UsageError
from vtax.model.names import is_campaign_id
from vtax.providers.base import UNKNOWN, Site, elsewhere
from vtax.running import provision
from vtax.store import Campaign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign whose trials all ran."""
    providers = {name: FakeProvider(name, tmp_path / "run") for name in ("host", "box")}
    made = new_campaign(tmp_path / "received", providers, rounds=1, iterations=1)
    store(made, dict.fromkeys(planned(made.plan()), PRINTED))
    return made


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """Rewrite a file of JSON."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


# --- names ---------------------------------------------------------------------------------------------------------

OUTSIDE = ["", ".", "..", "/etc", "../../..", "/root/.ssh", "c1c1c1c1/..", "c1c1c1c1\n", "C1C1C1C1", "-c1c1c1c", "up-"]


@pytest.mark.parametrize("label", [*OUTSIDE, 7, None, ["c1c1c1c1"]])
def test_the_id_of_a_campaign_is_no_path(campaign: Campaign, label: object) -> None:
    changed(campaign.directory / "campaign.json", lambda about: about.update(id=label))
    with pytest.raises(DamagedError, match="its id is not one that vtax gives"):
        Campaign.open(campaign.directory).about()


@pytest.mark.parametrize("label", OUTSIDE)
def test_only_run_time_directories_are_removed(tmp_path: Path, label: str) -> None:
    assert not is_campaign_id(label)
    victim = tmp_path / "victim"
    (victim / "keys").mkdir(parents=True)
    (victim / "keys" / "user").touch()
    campaign: Any = Site("c1c1c1c1", victim / "keys", None, victim / "keys")  # type: ignore[arg-type]
    for remove in (lambda: provision.remove_campaign(victim), lambda: provision.remove_site(campaign)):
        with pytest.raises(UsageError, match="is not the run-time directory of a campaign"):
            remove()
    assert (victim / "keys" / "user").exists()


@pytest.mark.parametrize("label", OUTSIDE)
def test_a_label_that_vtax_does_not_give_belongs_to_nobody(tmp_path: Path, label: str) -> None:
    assert elsewhere(tmp_path, label, None) == UNKNOWN
    assert elsewhere(tmp_path, label, tmp_path / "c1c1c1c1") == UNKNOWN


PLACES: dict[str, Callable[[Any, str], None]] = {
    "the id of a trial": lambda plan, name: plan["cells"][0]["trials"][0].update(id=name),
    "the id of a cell": lambda plan, name: plan["cells"][0].update(id=name),
    "the environment of a cell": lambda plan, name: plan["cells"][0].update(environment=name),
    "an environment": lambda plan, name: plan["environments"][0].update(name=name),
    "an environment of the study": lambda plan, name: plan["study"]["environments"][0].update(name=name),
    "a node": lambda plan, name: plan["shape"]["nodes"][0].update(name=name),
    "work": lambda plan, name: plan["work"][0].update(id=name),
    "the shared file system": lambda plan, name: plan["study"].update(shared_path=name),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["..", "../../etc", "/etc/ssh", ".hidden", "a/../../b", "x\n", "-rf", "x\x1b[2J", ""])
def test_no_name_in_a_plan_is_a_path(campaign: Campaign, place: str, name: str) -> None:
    changed(campaign.directory / "plan.json", lambda plan: PLACES[place](plan, name))
    with pytest.raises(DamagedError, match="should match pattern"):
        campaign.plan()
