"""What a machine says of its part of a campaign: stored where it was asked for, and refused otherwise."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from builders.small import new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax.errors import VtaxError
from vtax.machines.channel import Message
from vtax.running.fleet import Fleet
from vtax.running.receiving import Receiver
from vtax.store import Campaign

SENT = b"a secret of the reader"


class Clock(SimpleNamespace):
    def remaining_s(self, look: object = None) -> float:
        return 0.0


def on_two_machines(place: Path) -> Campaign:
    providers = {name: FakeProvider(name, place.with_name("run")) for name in ("host", "box")}
    return new_campaign(place, providers, rounds=1, iterations=1, machines={"a": "lab@a", "b": "lab@b"})


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return on_two_machines(tmp_path / "c")


@pytest.fixture
def receiver(campaign: Campaign) -> Receiver:
    """That of machine a."""
    told: list[object] = []
    fleet = SimpleNamespace(
        plan=campaign.plan(),
        campaign=campaign,
        together=threading.Lock(),
        clock=Clock(),
        listener=told.append,
        agents={"a": SimpleNamespace(tell=told.append)},
        readings=SimpleNamespace(counted=told.append),
    )
    return Receiver(cast("Fleet", fleet), "a")


def trials_of(campaign: Campaign, machine: str) -> list[str]:
    return [trial.id for cell in campaign.plan().cells if cell.machine == machine for trial in cell.trials]


def sent(name: str, tmp_path: Path) -> tuple[dict[str, int], bytes]:
    """The files of a trial as a machine sends them."""
    theirs = on_two_machines(tmp_path / "theirs")
    store(theirs, dict.fromkeys(planned(theirs.plan()), "printed"))
    place = next(path.parent for path in (tmp_path / "theirs").rglob("record.json") if _id(path) == name)
    files = {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}
    return {one: len(content) for one, content in files.items()}, b"".join(files.values())


def _id(record: Path) -> str:
    return str(json.loads(record.read_bytes())["id"])


def files_below(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_trial_that_was_asked_for_is_stored_once(receiver: Receiver, campaign: Campaign, tmp_path: Path) -> None:
    name = trials_of(campaign, "a")[0]
    sizes, payload = sent(name, tmp_path)
    receiver.heard(Message({"trial": name, "files": sizes}, payload))
    assert campaign.has(name)
    with pytest.raises(ValueError, match="asked for"):
        receiver.heard(Message({"trial": name, "files": sizes}, payload))


def test_no_trial_of_another_machine(receiver: Receiver, campaign: Campaign, tmp_path: Path) -> None:
    theirs, own = trials_of(campaign, "b")[0], trials_of(campaign, "a")[0]
    sizes, payload = sent(theirs, tmp_path)
    for name in (theirs, own, "../../elsewhere", ""):  # its own with the record of another one, too
        with pytest.raises(ValueError, match=r"asked for|not its own"):
            receiver.heard(Message({"trial": name, "files": sizes}, payload))
        assert not campaign.has(theirs) and not campaign.has(own)


@pytest.mark.parametrize("name", ["../x", "/etc/x", ".lock", "a/b", "", "a\nb", "a\0b", ".."])
def test_no_file_elsewhere(receiver: Receiver, campaign: Campaign, tmp_path: Path, name: str) -> None:
    trial = trials_of(campaign, "a")[0]
    sizes, payload = sent(trial, tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(VtaxError, match="a machine sent a file called"):
        receiver.heard(Message({"trial": trial, "files": {name: 1, **sizes}}, b"x" + payload))
    assert not campaign.has(trial) and files_below(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["plan.json", "cells/../plan.json", "cells/other.log", "/etc/passwd", "report/index.html"]
)
def test_no_log_but_of_its_own_cells(receiver: Receiver, tmp_path: Path, name: str) -> None:
    before = {path: path.read_bytes() for path in files_below(tmp_path)}
    with pytest.raises(ValueError, match="not a file of this machine's cells"):
        receiver.heard(Message({"file": name}, SENT))
    assert {path: path.read_bytes() for path in files_below(tmp_path)} == before


def test_the_log_of_a_node_is_kept(receiver: Receiver, campaign: Campaign, tmp_path: Path) -> None:
    cell = next(cell.id for cell in campaign.plan().cells if cell.machine == "a")
    receiver.heard(Message({"file": f"cells/{cell}.worker1.log"}, SENT))
    assert (tmp_path / "c" / "cells" / f"{cell}.worker1.log").read_bytes() == SENT


NONSENSE: tuple[Mapping[str, Any], ...] = (
    {"cell": {"cell": "x"}},
    {"cell": []},
    {"event": "Event", "fields": {"trial": 1}},
    {"event": "__class__", "fields": {}},
    {"event": "os", "fields": {}},
    {"trial": "x"},
)


@pytest.mark.parametrize("content", NONSENSE, ids=repr)
def test_what_makes_no_sense_is_refused(receiver: Receiver, tmp_path: Path, content: Mapping[str, Any]) -> None:
    before = files_below(tmp_path)
    with pytest.raises((ValueError, KeyError, TypeError)):
        receiver.heard(Message(content))
    assert files_below(tmp_path) == before
