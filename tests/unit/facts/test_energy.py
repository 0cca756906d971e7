"""What RAPL counts, from trees of files made by hand; there need be no such counter on the machine that tests this."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from vtax.facts.energy import EnergyMeter, Zone, added_j, zones

RANGE = 262_143_328_850


def zone(powercap: Path, name: str, says: str, energy_uj: int, range_uj: int = RANGE) -> Path:
    place = powercap / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "name").write_text(f"{says}\n")
    (place / "energy_uj").write_text(f"{energy_uj}\n")
    (place / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return place


def test_nothing_counts_twice(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 10)
    zone(tmp_path, "intel-rapl:0:0", "core", 7)
    zone(tmp_path, "intel-rapl:0:1", "dram", 3)
    zone(tmp_path, "intel-rapl:1", "package-1", 20)
    zone(tmp_path, "intel-rapl:2", "psys", 1000)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 10)
    assert zones(tmp_path) == {
        "intel-rapl:0": Zone(10, RANGE),
        "intel-rapl:0:1": Zone(3, RANGE),
        "intel-rapl:1": Zone(20, RANGE),
    }


@pytest.mark.parametrize("missing", ["energy_uj", "max_energy_range_uj"])
def test_half_of_the_machine_is_nothing(tmp_path: Path, missing: str) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 10)
    (zone(tmp_path, "intel-rapl:1", "package-1", 20) / missing).unlink()
    assert zones(tmp_path) == {}


def test_without_rapl_there_is_none(tmp_path: Path) -> None:
    assert zones(tmp_path) == zones(tmp_path / "none") == {}
    zone(tmp_path, "intel-rapl:0:0", "dram", 10)  # memory without its package
    assert zones(tmp_path) == {}
    assert EnergyMeter(tmp_path).stop() is None


def test_a_counter_that_begins_again(tmp_path: Path) -> None:
    before = {"a": Zone(900_000, 1_000_000), "b": Zone(100, 1_000_000)}
    after = {"a": Zone(250_000, 1_000_000), "b": Zone(200_100, 1_000_000)}
    assert added_j(before, after) == pytest.approx(0.35 + 0.2)
    assert added_j(before, {"a": after["a"]}) is None
    assert added_j({}, {}) is None


def test_the_meter_sees_it_begin_again_more_than_once(tmp_path: Path) -> None:
    place = zone(tmp_path, "intel-rapl:0", "package-0", 0, 1_000_000)
    meter = EnergyMeter(tmp_path, often_s=0.001)
    for energy in (600_000, 200_000, 800_000, 400_000):  # 0.6, then 0.6 each: 2.4 J, and the counter has less
        (tmp_path / "next").write_text(f"{energy}\n")
        (tmp_path / "next").replace(place / "energy_uj")  # never empty, as in the kernel
        deadline = time.monotonic() + 10
        while meter.last["intel-rapl:0"].energy_uj != energy and time.monotonic() < deadline:
            time.sleep(0.001)
    assert meter.stop() == pytest.approx(2.4)
    assert meter.thread is not None
    assert not meter.thread.is_alive()


def test_a_zone_that_goes_away_is_no_number(tmp_path: Path) -> None:
    place = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    meter = EnergyMeter(tmp_path, often_s=60)
    (place / "energy_uj").unlink()
    assert meter.stop() is None
