"""Readings are kept next to the records: made once, and again when the output or the reader is another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.small import IMAGE, PRINTED, new_campaign
from fakes.cluster import FakeProvider, telling
from vtax.evaluation import readings as module
from vtax.evaluation.evaluate import evaluate
from vtax.evaluation.readings import Readings
from vtax.model.reading import TrialReading
from vtax.model.trial import Status, TrialRecord
from vtax.running.campaign import execute
from vtax.store import READING, Campaign
from vtax.tools import trials


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    providers = {
        name: FakeProvider(name, tmp_path / "run", script=telling(sysbench=PRINTED)) for name in ("host", "box")
    }
    made = new_campaign(tmp_path / "c", providers, rounds=2, iterations=1)
    execute(made, providers, IMAGE, tmp_path / "run", lambda event: None)
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trials whose output is read."""
    seen: list[str] = []

    def spy(record: TrialRecord) -> TrialReading:
        seen.append(record.id)
        return trials.read_trial(record)

    monkeypatch.setattr(module, "read_trial", spy)
    return seen


def test_they_are_written_when_the_trial_is(campaign: Campaign, read: list[str]) -> None:
    records = campaign.trials(texts=False)
    for record in records:
        kept = json.loads((campaign.directory / "trials" / record.id / READING).read_text())
        assert kept["trial"] == record.id
        assert {value["metric"] for value in kept["values"]} >= {"events_rate"}
    found = evaluate(campaign)
    assert read == []
    assert len(found.measurements) == sum(len(reading.values) for reading in found.readings.values())


def test_changed_output_is_read_again(campaign: Campaign, read: list[str]) -> None:
    record = campaign.trials(texts=False)[0]
    path = campaign.directory / "trials" / record.id / record.steps[-1].stdout
    path.write_text("nothing\n")
    found = {one.record.id: one.record.status for one in Readings(campaign).all(campaign.trials(texts=False))}
    assert read == [record.id]
    assert found.pop(record.id) is Status.FAILED
    assert set(found.values()) == {Status.OK}


def test_another_reader_reads_again(campaign: Campaign, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "reader_of", lambda record: "another")
    count = len(campaign.trials(texts=False))
    assert len(evaluate(campaign).trials) == count == len(read)
    evaluate(campaign)
    assert len(read) == count


@pytest.mark.parametrize("content", [b"", b"{}", b'{"trial": "other"}', b"\xff"])
def test_a_damaged_reading_is_made_again(campaign: Campaign, read: list[str], content: bytes) -> None:
    record = campaign.trials(texts=False)[0]
    before = evaluate(campaign).analysis
    (campaign.directory / "trials" / record.id / READING).write_bytes(content)
    assert evaluate(campaign).analysis == before
    assert read == [record.id]


def test_who_only_looks_writes_nothing(campaign: Campaign, read: list[str]) -> None:
    for path in campaign.directory.rglob(READING):
        path.unlink()
    evaluate(campaign, readings=Readings(campaign, keep=False))
    assert len(read) == len(campaign.trials(texts=False))
    assert not list(campaign.directory.rglob(READING))
