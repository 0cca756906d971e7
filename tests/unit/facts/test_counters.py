"""Counters read around a trial: recorded, by hand for control groups version 2, and their differences."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vtax.facts.counters import delta, parse_counters, with_host_clock
from vtax.facts.sections import MARK

DATA = Path(__file__).parents[2] / "data" / "facts"

VERSION_2 = f"""
{MARK} levels
/sys/fs/cgroup/a/memory.events:max 7
/sys/fs/cgroup/a/memory.events:oom_kill 2
/sys/fs/cgroup/a/cpu.stat:nr_periods 50
/sys/fs/cgroup/a/cpu.stat:nr_throttled 5
/sys/fs/cgroup/a/cpu.stat:throttled_usec 1250000
/sys/fs/cgroup/cpu.stat:nr_periods 0
/sys/fs/cgroup/cpu.stat:nr_throttled 0
/sys/fs/cgroup/cpu.stat:throttled_usec 0

{MARK} files
/proc/stat:cpu  10 1 2 80 3 0 4 5 9 0
/proc/vmstat:pswpin 11
/proc/vmstat:pswpout 12
/proc/loadavg:1.50 1.00 0.50 1/100 4242

{MARK} end
"""


def test_version_2_by_hand() -> None:
    assert parse_counters(VERSION_2) == {
        "cpu_periods": 50,
        "cpu_throttled_periods": 5,
        "cpu_throttled_s": 1.25,
        "memory_limit_hits": 7,
        "oom_kills": 2,
        "steal_ticks": 5,
        "cpu_ticks": 105,  # without guest time, which is part of user time
        "busy_ticks": 22,  # without idle and iowait
        "swap_in_pages": 11,
        "swap_out_pages": 12,
        "load1": 1.5,
    }


@pytest.mark.parametrize(
    ("levels", "counted"),
    [
        pytest.param(["/sys/fs/cgroup/cpu.stat:usage_usec 2500000"], {"group_cpu_s": 2.5}, id="a container, version 2"),
        pytest.param(["/sys/fs/cgroup/cpuacct/cpuacct.usage:7000000001"], {"group_cpu_s": 7.000000001}, id="version 1"),
        pytest.param(
            [
                "/sys/fs/cgroup/vtax-c1/worker1/cpu.stat:usage_usec 1500000",
                "/sys/fs/cgroup/cpu.stat:usage_usec 90000000",
            ],
            {"node_cpu_s": 1.5},
            id="the host, version 2",
        ),
        pytest.param(
            [
                "/sys/fs/cgroup/cpuset/vtax-c1/worker1/memory.limit_in_bytes:1",
                "/sys/fs/cgroup/cpuacct/vtax-c1/worker1/cpuacct.usage:3000000000",
                "/sys/fs/cgroup/cpuacct/cpuacct.usage:90000000000",
            ],
            {"node_cpu_s": 3.0},
            id="the host, version 1",
        ),
        pytest.param(["/sys/fs/cgroup/cpu/cpu.stat:nr_periods 0"], {}, id="not counted"),
    ],
)
def test_the_cpu_time_of_a_node_is_that_of_the_innermost_group(levels: list[str], counted: dict[str, float]) -> None:
    printed = f"\n{MARK} levels\n" + "".join(f"{line}\n" for line in levels) + f"\n{MARK} end\n"
    assert parse_counters(printed) == pytest.approx(counted)


@pytest.mark.parametrize("case", ["counters-docker", "counters-host"])
def test_recorded(case: str) -> None:
    values = parse_counters((DATA / case / "stdout").read_text("utf-8"))
    expected = {"cpu_throttled_periods", "memory_limit_hits", "oom_kills", "steal_ticks", "swap_in_pages", "load1"}
    assert expected <= values.keys()
    assert values["cpu_throttled_periods"] == 0
    assert values["cpu_ticks"] > values["steal_ticks"] > 0


def test_clock_pressure_network_and_cost() -> None:
    values = parse_counters((DATA / "counters-clock" / "stdout").read_text("utf-8"))
    assert values["clock_s"] == pytest.approx(1795306795.903779, abs=1e-6)
    assert values["uptime_s"] == 14662.09
    assert values["psi_io_s"] == pytest.approx(424.863418)
    assert (values["network_received_bytes"], values["loopback_bytes"]) == (400, 0)
    assert values["huge_page_faults"] == 60005
    assert values["balloon_pages"] == 0
    assert values["collector_cpu_s"] == pytest.approx(0.03)


def test_doubts_of_two_readings_add_up() -> None:
    before, after = ({"clock_s": at, "clock_doubt_s": doubt} for at, doubt in ((10.0, 0.5), (14.0, 0.25)))
    assert delta(before, after) == {"clock_s": 4.0, "clock_doubt_s": 0.75}


def test_the_hosts_clock_is_with_host_clock_the_nodes() -> None:
    beside = with_host_clock({"clock_s": 105.0}, started=100.0, elapsed_s=4.0)
    assert beside == {"clock_s": 105.0, "host_clock_s": 102.0, "clock_doubt_s": 2.0, "clock_offset_s": 3.0}
    assert with_host_clock({"load1": 1.0}, started=100.0, elapsed_s=4.0) == {"load1": 1.0}


def test_a_counter_is_a_difference_and_a_gauge_is_not() -> None:
    assert delta({"oom_kills": 1, "load1": 3}, {"oom_kills": 4, "load1": 2, "swap_in_pages": 9}) == {
        "oom_kills": 3,
        "load1": 2,
    }


def test_cut_off_output_gives_a_part() -> None:
    full = parse_counters(VERSION_2)
    for end in range(len(VERSION_2)):
        values = parse_counters(VERSION_2[:end])
        assert {name: full.get(name) for name in values} == values


@given(st.text(alphabet="0123456789.: \ncpu/sytamvloadvgnr_ihed-", max_size=300))
def test_garbage_never_crashes(text: str) -> None:
    parse_counters(f"\n{MARK} levels\n{text}\n{MARK} files\n{text}\n{MARK} end\n")
