"""Numbers that cannot be are refused with the file and the line that they came from."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from builders.recorded import DATA, case_id, cases, load, parse, values, with_text
from vtax.errors import ParseError
from vtax.model.metric import Kind, Metric
from vtax.model.trial import TrialRecord
from vtax.tools.documents import Document
from vtax.tools.reading import LONGEST_NEAR, Output, Reading, Value, lines_of, near_miss
from vtax.tools.trials import as_read, read_trial

RECORD = load(DATA / "sysbench-cpu" / "1.0.20--trixie-node")


def with_speed(word: str) -> TrialRecord:
    name, text = next((n, t) for n, t in RECORD.texts.items() if "events per second" in t)
    lines = [
        line if "events per second" not in line else f"    events per second:   {word}" for line in text.splitlines()
    ]
    return RECORD.model_copy(update={"texts": {**RECORD.texts, name: "\n".join(lines) + "\n"}})


@pytest.mark.parametrize("word", ["0.00", "nan", "inf", "-5.00"])
def test_a_rate_that_cannot_be_is_refused_with_its_file_and_line(word: str) -> None:
    name, text = next((n, t) for n, t in RECORD.texts.items() if "events per second" in t)
    line = text[: text.index("events per second")].count("\n") + 1
    with pytest.raises(ParseError, match=rf"^trials/{RECORD.id}/{name}:{line}: ") as caught:
        parse(with_speed(word))
    assert f"up to line {line}:" in caught.value.detail
    assert caught.value.detail.endswith(f"    events per second:   {word}")


WORDS = ("nan", "inf", "-1.5", "1e999", "0.00")
DIGITS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\d.])")
PLACES = 12  # in each file


@pytest.mark.parametrize("folder", cases(), ids=case_id)
def test_a_number_that_cannot_be_is_refused_with_its_own_line_wherever_it_stands(folder: Path) -> None:
    """Or it is no number that is used. What is zero may be a result: absent, or a count."""
    record = load(folder)
    whole = values(parse(record))
    for name, text in record.texts.items():
        places = list(DIGITS.finditer(text))
        for place in places[:: max(1, len(places) // PLACES)]:
            line = text.count("\n", 0, place.start()) + 1
            for word in WORDS:
                damaged = with_text(record, name, text[: place.start()] + word + text[place.end() :])
                try:
                    found = values(parse(damaged))
                except ParseError as error:
                    assert error.message.startswith(f"trials/{record.id}/{name}:{line}: "), (word, place, error.message)
                else:
                    assert word == "0.00" or found == whole, (word, place)


@pytest.mark.parametrize("folder", cases(), ids=case_id)
def test_a_cut_output_is_refused_with_its_file_and_no_line_that_is_whole(folder: Path) -> None:
    """The line that is told is the last one, or one from which on the output is not what the tool prints."""
    record = load(folder)
    for name, text in record.texts.items():
        for end in range(1, len(text), max(1, len(text) // PLACES)):
            cut = text[:end]
            try:
                parse(with_text(record, name, cut))
            except ParseError as error:
                told = re.match(rf"trials/{record.id}/{name}(?::(\d+))?: ", error.message)
                assert told, error.message
                assert told[1] is None or int(told[1]) == cut.rstrip("\n").count("\n") + 1, (end, error.message)


PATTERNS = (re.compile(r"^rate +(\d{1,9}\.\d) of (\d{1,9})$"), re.compile(r"^sum +(\d+(?:\.\d+)?)$"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a 1\nrate 1.5 of nan\nsum 2\n", 2),
        ("a 1\nrate 1.5 of 2\nsum -2\n", 3),
        ("a 1\nrate nan of nan\nsum 2\n", 2),
        ("a 1\nrate 1e999 of 2\nsum 2\n", 2),
        ("a 1\nrate 1.5 of 2\nsum 2\n", 0),  # nothing is wrong
        ("a 1\nrate nan of 2\nsum inf\n", 0),  # one or the other
        ("a nan\nb inf\n", 0),  # nothing is like it
        ("a 1\nrate 1.", 0),  # cut
        ("", 0),
    ],
)
def test_the_line_of_a_word_that_is_not_a_number_is_found_where_it_is_sure(text: str, line: int) -> None:
    assert near_miss(lines_of(text), *PATTERNS) == line


LATENCY = re.compile(r"latency (\d+\.\d+) us|(\d+\.\d+) us of latency")


def test_a_long_line_is_no_near_miss() -> None:
    """To look for something like a number takes the square of a line's length."""
    near = "latency nan us"
    assert near_miss(lines_of(near), LATENCY) == 1
    assert near_miss(lines_of(near + " " * LONGEST_NEAR), LATENCY) == 0
    hostile = "".join("1" * 16_000 + "\n" for _ in range(200))
    began = time.process_time()
    assert near_miss(lines_of(hostile), LATENCY) == 0
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 3),
        (("b", "a"), 5),
        (("c", 1, "a"), 7),
        (("c", 0), 7),
        (("d",), 8),
        (("e", 0), 0),  # nothing is there
    ],
)
def test_a_value_of_json_is_found_by_its_path(path: tuple[str | int, ...], line: int) -> None:
    text = '{"a": 1,\n "b": {"x": "}\\"",\n  "a": -2.5},\n "c":\n [{}, {"a": 7}],\n "d": 8, "e": []}'
    lines = [one._replace(number=one.number + 2) for one in lines_of(text)]
    assert Document(lines).line(*path) == line


class Fake:
    """A benchmark whose reader finds one speed on one line, or raises."""

    def __init__(self, value: float = 1.0, line: int = 1, error: Exception | None = None, ended: bool = True) -> None:
        self.value, self.line, self.error, self.ended = value, line, error, ended

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        if self.error:
            raise self.error
        speed = Metric(name="speed", unit="op/s", kind=Kind.RATE_FIXED_WORK)
        reading = Reading(record.benchmark, values=[Value(speed, self.value, self.line)], ended=self.ended)
        return (Output(record.steps[-1].stdout, reading),)


def fake(monkeypatch: pytest.MonkeyPatch, benchmark: Fake) -> None:
    monkeypatch.setattr("vtax.tools.trials.benchmarks", lambda: {RECORD.benchmark: benchmark})


def test_an_error_of_a_reader_that_names_no_trial_gets_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, Fake(error=ParseError("no result", detail="it ends here", remedy="run it again")))
    with pytest.raises(ParseError) as caught:
        parse(RECORD)
    assert str(caught.value) == f"trials/{RECORD.id}: no result\n  it ends here\n  next: run it again"


def test_a_reader_with_a_bug_fails_its_trial_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, Fake(error=ValueError("int('4-')")))
    reading = read_trial(RECORD)
    assert reading.values == ()
    judged = as_read(RECORD, reading)
    assert judged.failure == "the reader of sysbench-cpu failed: ValueError: int('4-')"


@pytest.mark.parametrize("word", ["0", "-5", "nan", "inf", "-inf"])
def test_what_a_reader_lets_through_is_refused_with_file_and_line(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    name = RECORD.steps[-1].stdout
    record = with_text(RECORD, name, f"a 1\nb 2\nspeed {word} op/s\n")
    fake(monkeypatch, Fake(float(word), 3))
    with pytest.raises(ParseError, match=rf"^trials/{RECORD.id}/{name}:3: speed is {word} op/s") as caught:
        parse(record)
    assert caught.value.detail == f"up to line 3:\na 1\nb 2\nspeed {word} op/s"
    reading = read_trial(record)
    assert reading.values == ()
    judged = as_read(record, reading)
    assert f"{name}:3" in judged.failure


def test_a_value_from_several_lines_is_refused_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    name = RECORD.steps[-1].stdout
    fake(monkeypatch, Fake(0.0, 0))
    with pytest.raises(ParseError, match=rf"^trials/{RECORD.id}/{name}: speed is 0 op/s"):
        parse(with_text(RECORD, name, "errors 0\nspeed 0 op/s\n"))


def test_an_output_without_its_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    name = RECORD.steps[-1].stdout
    fake(monkeypatch, Fake(ended=False))
    with pytest.raises(ParseError, match=rf"^trials/{RECORD.id}/{name}: the tool's last line is missing"):
        parse(with_text(RECORD, name, "speed 1 op/s\n"))
