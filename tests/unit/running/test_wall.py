"""The time in records never goes back, whatever happens to this machine's clock."""

from __future__ import annotations

import time

import pytest

from vtax.running.wall import Wall


def test_a_clock_that_is_set_does_not_change_what_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = Wall()
    began = wall()
    assert began == pytest.approx(time.time(), abs=1)
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    assert began <= wall() < began + 60
    assert wall.behind_s == 0


def test_a_resumed_campaign_goes_on_after_its_last_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    wall = Wall(after=4600.0)
    assert wall.behind_s == 3600
    assert 4600 <= wall() < 4660


def test_a_clock_that_is_ahead_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 9000.0)
    wall = Wall(after=4600.0)
    assert wall.behind_s == 0
    assert 9000 <= wall() < 9060
