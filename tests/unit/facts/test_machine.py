"""What the machine counts during a trial, and what else runs on it, from trees of files made by hand."""

from __future__ import annotations

from pathlib import Path

from vtax.facts.host import running
from vtax.facts.machine import machine_counters, machine_delta
from vtax.providers import runners


def write(top: Path, **files: str) -> None:
    for name, text in files.items():
        path = top / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_counters_by_hand(tmp_path: Path) -> None:
    write(
        tmp_path,
        proc__stat="cpu  10 1 2 80 3 0 4 5 9 0\ncpu0 1 2 3\n",
        proc__vmstat="pswpin 11\npswpout 12\n",
        proc__diskstats=(
            "254 0 vda 1 0 100 0 1 0 300 0 0 0 0\n"
            "254 1 vda1 1 0 100 0 1 0 300 0 0 0 0\n"
            "7 0 loop0 1 0 50 0 1 0 60 0 0 0 0\n"
        ),
        sys__block__vda__device__model="disk",
        sys__class__net__eth0__device__vendor="x",
        sys__class__net__eth0__statistics__rx_bytes="1000\n",
        sys__class__net__eth0__statistics__tx_bytes="2000\n",
        sys__class__net__br0__statistics__rx_bytes="9\n",
        sys__class__net__br0__statistics__tx_bytes="9\n",
    )
    (tmp_path / "proc/pressure").mkdir()
    (tmp_path / "proc/pressure/cpu").write_text("some avg10=1.00 avg60=1.00 avg300=1.00 total=2500000\n")
    for cpu, khz, hot in ((0, 2_000_000, 1), (1, 3_000_000, 2)):
        top = f"sys__devices__system__cpu__cpu{cpu}"
        write(tmp_path, **{f"{top}__cpufreq__scaling_cur_freq": f"{khz}\n"})
        write(tmp_path, **{f"{top}__thermal_throttle__core_throttle_count": f"{hot}\n"})
    assert machine_counters((0, 1), tmp_path) == {
        "cpu_ticks": 105,
        "busy_ticks": 22,
        "steal_ticks": 5,
        "swap_in_pages": 11,
        "swap_out_pages": 12,
        "psi_cpu_s": 2.5,
        "disk_read_bytes": 51_200,  # sectors of 512 bytes, of the disk alone
        "disk_written_bytes": 153_600,
        "nic_received_bytes": 1000,
        "nic_sent_bytes": 2000,
        "cpu_mhz": 2500,
        "throttle_events": 3,
    }


def test_the_ticks_of_the_cpus_of_a_trial(tmp_path: Path) -> None:
    lines = (
        "cpu  10 1 2 80 3 0 4 5 9 0",
        "cpu1 4 0 1 30 1 0 2 2 5 0",
        "cpu2 3 0 0 20 1 0 1 3 4 0",
        "cpu11 9 9 9 9 9 9 9 9",
    )
    write(tmp_path, proc__stat="\n".join(lines) + "\n")
    seen = machine_counters((1, 2), tmp_path)
    assert (seen["trial_cpu_ticks"], seen["trial_steal_ticks"], seen["steal_ticks"]) == (40 + 28, 2 + 3, 5)
    assert "trial_cpu_ticks" not in machine_counters((1, 3), tmp_path)  # one of them is not there
    assert "trial_cpu_ticks" not in machine_counters((), tmp_path)


def test_what_is_not_there_is_absent(tmp_path: Path) -> None:
    assert machine_counters((0,), tmp_path) == {}


def test_the_clock_is_no_difference() -> None:
    assert machine_delta({"busy_ticks": 3, "cpu_mhz": 9}, {"busy_ticks": 5, "cpu_mhz": 8, "steal_ticks": 1}) == {
        "busy_ticks": 2,
        "cpu_mhz": 8,
    }


def test_what_else_runs(tmp_path: Path) -> None:
    for number, words in enumerate(
        ("/usr/bin/qemu-system-x86_64\0-name\0a", "/usr/bin/conmon\0-c", "sh\0qemu-kvm", "")
    ):
        write(tmp_path, **{f"proc__{100 + number}__cmdline": words})
    assert running(tmp_path, runners()) == {"containers": 1, "virtual machines": 1}
