"""stress-ng as other people's logs have it: times in front, scientific notation, runs that ended early."""

from __future__ import annotations

from builders.logs import LOGS, readings, text_of
from builders.recorded import DATA

FOLDER = DATA / "import" / "stress-ng-0.19.02--trixie-forms"


def test_times_in_front_of_each_line() -> None:
    (reading,) = readings(text_of(FOLDER / "timestamp.txt"))
    assert [value.value for value in reading.values] == [255, 242.67, 1655.45]
    assert reading.refusals == []


def test_scientific_notation_is_refused_for_what_it_is() -> None:
    (reading,) = readings(text_of(FOLDER / "scientific.txt"))
    assert reading.values == []
    (refusal,) = reading.refusals
    assert (refusal.line, "--sn" in refusal.reason) == (5, True)


def test_a_run_that_ended_early_is_not_averaged_with_whole_ones() -> None:
    """stress-ng calls an interrupted run successful; 0.96 s of 20 s ran here."""
    (reading,) = readings(text_of(FOLDER / "interrupted.txt"))
    assert {value.labels["run"] for value in reading.values} == {"ended early"}
    for name in ("stress-ng 0.12", "stress-ng 0.15", "stress-ng 0.19"):
        (whole,) = readings(text_of(LOGS[name]))
        assert all("run" not in value.labels for value in whole.values)
