"""Damaged logs give the numbers of the whole ones, or fewer and a reason: never another number."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.logs import LOGS, PAIRS, Taken, mixed, readings, refused, taken, text_of, value_lines

EXAMPLES = int(os.environ.get("VTAX_EXAMPLES", "15"))
MUTATIONS = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TOO_SHORT = re.compile(r" {9}.{3,20}: +0\.00$")  # a latency of sysbench that is absent, and with another digit a value
DIGIT = re.compile(r"\d")
names = pytest.mark.parametrize("name", sorted(LOGS))


def unnamed(value: Taken) -> Taken:
    """A value without the names of its machines, which stand on other lines and may lose a digit themselves."""
    return value._replace(labels=tuple(label for label in value.labels if label[0] not in ("client", "server")))


def known(text: str) -> list[Taken]:
    """What a text proves, whole or without the summary that an aborted run of hpcc does not have."""
    body, summary, _ = text.partition("Begin of Summary section.")
    return taken(text) + (taken(body) if summary else [])


def judged(clean: str, damaged: str) -> None:
    """Every value of the damaged text is one of the clean text, or something was refused and nothing is new."""
    before, after = known(clean), taken(damaged)
    fewer = len(after) < len(taken(clean))
    new = [value for value in after if value not in before]
    assert not new, f"{new[:3]} is not in the clean text"
    assert not fewer or refused(damaged) or not readings(damaged), "values are missing without a reason"


@names
@MUTATIONS
@given(data=st.data())
def test_a_log_that_is_cut_off(name: str, data: st.DataObject) -> None:
    text = text_of(LOGS[name])
    end = data.draw(st.integers(0, len(text)))
    cut_off = text[:end]
    new = [value for value in taken(cut_off) if value not in known(text)]
    assert not new, f"cut at {end}: {new[:3]}"


@names
@MUTATIONS
@given(data=st.data())
def test_lines_that_are_missing(name: str, data: st.DataObject) -> None:
    lines = text_of(LOGS[name]).split("\n")
    start = data.draw(st.integers(0, len(lines) - 1))
    count = data.draw(st.integers(1, 12))
    after = taken("\n".join(lines[:start] + lines[start + count :]))
    new = [value for value in after if value not in known("\n".join(lines))]
    assert not new, f"without lines {start + 1} to {start + count}: {new[:3]}"


@names
@MUTATIONS
@given(data=st.data())
def test_lines_that_stand_twice(name: str, data: st.DataObject) -> None:
    lines = text_of(LOGS[name]).split("\n")
    start = data.draw(st.integers(0, len(lines) - 1))
    count = data.draw(st.integers(1, 12))
    again = data.draw(st.integers(start, len(lines)))
    damaged = lines[:again] + lines[start : start + count] + lines[again:]
    judged("\n".join(lines), "\n".join(damaged))


@names
@MUTATIONS
@given(data=st.data())
def test_lines_that_changed_places(name: str, data: st.DataObject) -> None:
    lines = text_of(LOGS[name]).split("\n")
    one, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    damaged = list(lines)
    damaged[one], damaged[other] = damaged[other], damaged[one]
    before, after = known("\n".join(lines)), taken("\n".join(damaged))
    new = [value for value in after if value not in before]
    assert not new, f"lines {one + 1} and {other + 1}: {new[:3]}"


@names
@MUTATIONS
@given(data=st.data())
def test_digits_that_flipped_outside_the_values(name: str, data: st.DataObject) -> None:
    text = text_of(LOGS[name])
    lines = text.split("\n")
    if "json" in name:
        return  # one document is one value's place; its numbers are checked against each other elsewhere
    taken_lines = value_lines(text) | {place for place, line in enumerate(lines) if TOO_SHORT.match(line)}
    free = [place for place in range(len(lines)) if place not in taken_lines and DIGIT.search(lines[place])]
    place = data.draw(st.sampled_from(free))
    digits = [found.start() for found in DIGIT.finditer(lines[place])]
    at = data.draw(st.sampled_from(digits))
    digit = data.draw(st.sampled_from("0123456789"))
    damaged = list(lines)
    damaged[place] = lines[place][:at] + digit + lines[place][at + 1 :]
    before = {unnamed(value) for value in known(text)}
    new = [value for value in taken("\n".join(damaged)) if unnamed(value) not in before]
    assert not new or refused("\n".join(damaged)), f"line {place + 1} became {damaged[place]!r}: {new[:3]}"


@pytest.mark.parametrize("name", sorted(PAIRS))
@MUTATIONS
@given(data=st.data())
def test_ranks_that_are_mixed_line_by_line(name: str, data: st.DataObject) -> None:
    """However the lines fall, the run has the values of both ranks, and their sum."""
    one, other = (text_of(path).rstrip("\n").split("\n") for path in PAIRS[name])
    turns = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    alone = [value for lines in (one, other) for value in taken("\n".join(lines))]
    found = taken("\n".join(mixed(one, other, turns)))
    rates = {(value.metric, value.value) for value in alone if value.metric in ("events_rate", "bogo_ops_rate_real")}
    single = {(value.metric, value.value) for value in found}
    if len(readings("\n".join(mixed(one, other, turns)))) == 1:
        assert rates <= single
        metric = next(iter(rates))[0]
        total = sum(value for _, value in rates)
        assert any(name == metric and value == pytest.approx(total, rel=1e-12) for name, value in single)
    else:  # the first rank had ended before the second one began: two runs
        assert rates <= single
