"""Numbers that cannot be are refused with the file and the line that they came from."""

from __future__ import annotations

import pytest

from recorded import DATA, load
from vtax.errors import ParseError
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.trial import TrialRecord
from vtax.parse import measurements_of, parse_all

RECORD = load(DATA / "sysbench-cpu" / "1.0.20--trixie-node")
SPEED = "    events per second:   512.57"


def with_speed(word: str) -> TrialRecord:
    name, text = next((n, t) for n, t in RECORD.texts.items() if "events per second" in t)
    lines = [
        line if "events per second" not in line else f"    events per second:   {word}" for line in text.splitlines()
    ]
    return RECORD.model_copy(update={"texts": {**RECORD.texts, name: "\n".join(lines) + "\n"}})


@pytest.mark.parametrize("word", ["0.00", "nan", "inf", "-5.00"])
def test_a_rate_that_cannot_be_is_refused_with_its_file(word: str) -> None:
    with pytest.raises(ParseError, match=rf"trials/{RECORD.id}"):
        measurements_of(with_speed(word))


class Odd:
    """A benchmark whose parser believes all that it reads."""

    def __init__(self, value: float) -> None:
        self.value = value

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        return (Measurement.of(record, Metric(name="speed", unit="op/s", kind=Kind.RATE_FIXED_WORK), self.value),)


@pytest.mark.parametrize("word", ["0", "-5", "nan", "inf", "-inf"])
def test_what_a_parser_lets_through_is_refused_with_file_and_line(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    name = RECORD.steps[-1].stdout
    record = RECORD.model_copy(update={"texts": {**RECORD.texts, name: f"a 1\nb 2\nspeed {word} op/s\n"}})
    monkeypatch.setattr("vtax.parse.benchmarks", lambda: {RECORD.benchmark: Odd(float(word))})
    with pytest.raises(ParseError, match=rf"^trials/{RECORD.id}/{name}:3: "):
        measurements_of(record)
    found, (judged,) = parse_all([record])
    assert found == ()
    assert f"{name}:3" in judged.failure
