"""How quiet a machine is: what is measured, that the time limit is real, and that nothing is left behind."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest

from vtax.errors import UsageError
from vtax.events import Event, StageFinished, StageStarted
from vtax.running import noise


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short slots, and little memory."""
    for name, value in (("SLOT_S", 0.01), ("WARM_S", 0.01), ("PASS_VALUES", 2**12)):
        monkeypatch.setattr(noise, name, value)


def test_every_probe_has_pairs_of_slots_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((os, "fsync"), (gc, "collect")):  # a busy disk and a large heap would take all of this time
        monkeypatch.setattr(module, name, lambda *_: None)
    events: list[Event] = []
    cpus, collects = os.sched_getaffinity(0), gc.isenabled()
    began = time.monotonic()
    reading = noise.measure(tmp_path / "state", events.append, seconds=1.5)
    assert time.monotonic() - began < 15  # a limit of time, whatever the machine does meanwhile
    assert [probe.name for probe in reading.probes] == ["CPU", "memory", "disk"]
    sizes = {len(probe.rates) for probe in reading.probes}
    assert all(size % 2 == 0 for size in sizes)
    assert max(sizes) >= 2
    assert all(rate > 0 for probe in reading.probes for rate in probe.rates)
    assert reading.slot_s == 0.01
    assert reading.apart_s == pytest.approx(0.06)
    assert list((tmp_path / "state").iterdir()) == []
    assert (os.sched_getaffinity(0), gc.isenabled()) == (cpus, collects)
    assert isinstance(events[0], StageStarted)
    assert isinstance(events[-1], StageFinished)


def test_slots_that_end_after_the_limit_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def slow(number: int) -> None:
        time.sleep(0.3)
        fsync(number)

    monkeypatch.setattr(os, "fsync", slow)
    reading = noise.measure(tmp_path, lambda event: None, seconds=0.9)
    assert reading.elapsed_s < 3
    assert [probe.rates for probe in reading.probes if probe.name == "disk"] == [()]


def test_a_rate_is_of_one_operation_at_least() -> None:
    calls: list[int] = []
    assert noise.rate(lambda: calls.append(1), time.monotonic() - 1) > 0
    assert len(calls) == 1


def test_where_nothing_can_be_written_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file/state cannot be written"):
        noise.measure(tmp_path / "file" / "state", lambda event: None, seconds=0.1)


def test_shares_of_all_cpu_time() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    counted = {"cpu_ticks": 20.0 * ticks, "busy_ticks": 12.0 * ticks, "steal_ticks": 1.0 * ticks}
    assert noise.shares(counted, 9.0) == {"stolen": 0.05, "others": pytest.approx(0.1)}
    assert noise.shares(counted, 15.0)["others"] == 0.0
    assert noise.shares({}, 1.0) == {"stolen": None, "others": None}
