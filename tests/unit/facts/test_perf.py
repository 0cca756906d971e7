"""What is given to perf_event_open, against linux/perf_event.h; no counter is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax.facts.perf import attributes, online


def test_the_attributes_of_an_event_are_those_of_the_kernel() -> None:
    """Type, size, config; no period; no sample; both times; the bit `inherit`; no break point."""

    def number(value: int) -> bytes:
        return value.to_bytes(4, "little")

    def wide(value: int) -> bytes:
        return value.to_bytes(8, "little")

    software = number(1) + number(64) + wide(3) + wide(0) + wide(0) + wide(3) + wide(2) + bytes(16)
    assert attributes("context-switches", 2) == software
    hardware = number(0) + number(64) + wide(1) + wide(0) + wide(0) + wide(3) + wide(0) + bytes(16)
    assert attributes("instructions", 0) == hardware


@pytest.mark.parametrize(("text", "cpus"), [("0\n", [0]), ("0-3\n", [0, 1, 2, 3]), ("0,2-3,8\n", [0, 2, 3, 8])])
def test_cpus_that_run(tmp_path: Path, text: str, cpus: list[int]) -> None:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text(text)
    assert online(tmp_path) == cpus
