"""What logs say against their own numbers: every row of the audit that imported runs can have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.audit_cases import as_imported, both, logged, value
from builders.logs import CLIENT, LOGS, SYSBENCH, faster, imported, text_of
from vtax import pipeline
from vtax.audit.units import unit_factors
from vtax.model.finding import Finding, Severity

STRESS = """\
stress-ng: debug: [7] invoked with 'stress-ng --vm 2 --verbose --metrics' by user 1000 'me'
stress-ng: debug: [7] stress-ng {version}
stress-ng: debug: [7] system: Linux node1 6.1.0-{kernel} #1 SMP x86_64, gcc 13.2.0, glibc 2.39
stress-ng: debug: [7] RAM total: 2.0G, RAM free: 1.6G, swap free: 0.0
stress-ng: debug: [7] temporary file path: '/shared', filesystem type: {place} (77946 blocks available)
stress-ng: debug: [7] 2 processors online, 2 processors configured
stress-ng: info:  [7] setting to a 1 min, 0 secs run per stressor
stress-ng: info:  [7] dispatching hogs: 2 vm
{accidents}\
stress-ng: metrc: [7] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [7]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [7] vm                60000     60.00     {user}      0.00      1000.00       {rate}
stress-ng: info:  [7] passed: 2: vm (2)
stress-ng: info:  [7] failed: 0
stress-ng: info:  [7] successful run completed in 1 min, 0.02 secs
"""  # written by hand, in the layout of stress-ng 0.17
KILLED = "stress-ng: debug: [7] vm: assuming killed by OOM killer, restarting again (instance 0)\n"


def stress(**changes: str) -> str:
    usual = {
        "version": "0.17.06",
        "kernel": "1",
        "place": "nfs",
        "accidents": "",
        "user": "120.00",
        "rate": " 500.00",
    }
    return STRESS.format(**(usual | changes))


def findings(tmp_path: Path, files: Mapping[str, str], baseline: str = "vm") -> list[Finding]:
    imported(tmp_path, dict(files), environment="", layout="{environment}/**", baseline=baseline)
    return list(pipeline.analyse(tmp_path / "campaign").findings)


def found(every: list[Finding], check: str) -> list[Finding]:
    return [one for one in every if one.id == check]


def test_kills_storage_and_shared_cpus_of_stress_ng(tmp_path: Path) -> None:
    files = {
        "vm/a.txt": stress(accidents=3 * KILLED, user=" 54.00", rate="1111.11"),
        "box/a.txt": stress(version="0.16.01", kernel="2", place="tmpfs"),
        "box/fio.txt": text_of(LOGS["sysbench fileio"]),
    }
    every = findings(tmp_path, files)
    (kills,) = found(every, "O01")
    assert (kills.severity, kills.environment) == (Severity.BLOCKER, "vm")
    assert "3 workers killed" in kills.message
    assert any("tmpfs in box" in one.message and "nfs in vm" in one.message for one in found(every, "D05"))
    assert any("45%" in one.message for one in found(every, "S02"))
    assert any("version 0.16.01 in box" in one.message for one in found(every, "S01"))
    assert any("kernel differs" in one.message for one in found(every, "T02"))


def test_a_peer_that_is_the_machine_itself(tmp_path: Path) -> None:
    text = CLIENT.format(host="localhost", address="127.0.0.1").replace("10.0.0.2", "127.0.0.1")
    (one,) = found(findings(tmp_path, {"vm/a.txt": text}), "N01")
    assert one.severity is Severity.BLOCKER


def test_udp_at_the_default_rate(tmp_path: Path) -> None:
    udp = """\
me@node1:~$ iperf3 -c 10.0.0.1 -u
Connecting to host 10.0.0.1, port 5201
[  5] local 10.0.0.2 port 40000 connected to 10.0.0.1 port 5201
[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-10.00  sec  1.25 MBytes  1.05 Mbits/sec  906
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-10.00  sec  1.25 MBytes  1.05 Mbits/sec  0.000 ms  0/906 (0%)  sender
[  5]   0.00-10.00  sec  1.25 MBytes  1.05 Mbits/sec  0.066 ms  0/906 (0%)  receiver
"""
    (one,) = found(findings(tmp_path, {"vm/a.txt": udp}), "N03")
    assert "default rate" in one.message


def test_what_hpcc_says_of_itself(tmp_path: Path) -> None:
    text = text_of(LOGS["hpcc"])
    compiled = next(line for line in text.split("\n") if line.startswith("Compiled on "))
    other = text.replace(compiled, "Compiled on Jan  1 2020 at 00:00:00")
    every = findings(tmp_path, {"vm/a.txt": text, "box/a.txt": other})
    assert any("compiled on" in one.message and one.severity is Severity.BLOCKER for one in found(every, "T01"))
    assert found(every, "H05")
    assert {one.environment for one in found(every, "H03")} == {"vm", "box"}
    assert any("last digit" in one.message for one in found(every, "U03")), "all values are the same"


def test_a_failed_residual_is_no_speed(tmp_path: Path) -> None:
    text = text_of(LOGS["hpl"]).replace("...... PASSED", "...... FAILED", 1)
    every = findings(tmp_path, {"vm/a.txt": text})
    (one,) = found(every, "H01")
    assert one.severity is Severity.BLOCKER


def test_units_of_iozone(tmp_path: Path) -> None:
    table = text_of(LOGS["iozone kB"])
    without = "\n".join(line for line in table.split("\n") if "Output is in" not in line)
    files = {"vm/a.txt": without, "vm/b.txt": text_of(LOGS["iozone operations"]), "box/a.txt": table}
    every = findings(tmp_path, files)
    assert {(one.environment, one.severity) for one in found(every, "D01")} == {
        ("vm", Severity.BLOCKER),
        ("vm", Severity.INFO),
    }
    assert {one.environment for one in found(every, "D03")} == {"box"}, "one of the runs in vm timed the flush"


def test_sysbench_of_another_version_or_work(tmp_path: Path) -> None:
    other = SYSBENCH.replace("sysbench 1.0.20", "sysbench 1.0.18")
    every = findings(tmp_path, {"vm/a.txt": SYSBENCH, "box/a.txt": other})
    assert any("1.0.18 in box" in one.message for one in found(every, "S03"))


def test_a_name_that_lies(tmp_path: Path) -> None:
    (one,) = found(findings(tmp_path, {"vm/disk_seqrd.txt": text_of(LOGS["sysbench fileio"])}), "U03")
    assert "random r/w" in one.message
    assert "sequential read" in one.message


def test_a_unit_that_was_mistaken(tmp_path: Path) -> None:
    """Three values that are all a thousand times those of the baseline are no speed-up."""
    memory = text_of(LOGS["sysbench memory"])
    files = {"vm/a.txt": faster(SYSBENCH, "1000.00"), "box/a.txt": faster(SYSBENCH, "8000.00"), "vm/b.txt": memory}
    assert not found(findings(tmp_path, files), "U01"), "one value may be eight times as large"


def unit_error(factor: float, *, unit: str, versions: tuple[str, str] = ("", "")) -> tuple[Finding, ...]:
    """Three figures of a guest, all the same multiple of the baseline's, from logs of two versions of a tool."""
    figures = {
        name: tuple(value("tool", f"m{i}", (1 + i) * times, unit) for i in range(3))
        for name, times in (("host", 1.0), ("container", factor))
    }
    facts = {
        name: {"tool_version": version} if version else {}
        for name, version in zip(("host", "container"), versions, strict=True)
    }
    return unit_factors(as_imported(logged("tool", both("x\n"), values=figures), facts))


@pytest.mark.parametrize(
    ("factor", "unit", "versions", "severity"),
    [
        (8.0, "byte/s", ("", ""), Severity.BLOCKER),
        (8.0, "byte/s", ("1", "2"), Severity.BLOCKER),
        (8.0, "byte/s", ("1", "1"), Severity.WARNING),  # one reader and one version have one unit
        (0.125, "1/s", ("", ""), None),  # nobody takes events for bits
        (1000.0, "1/s", ("", ""), Severity.BLOCKER),
    ],
)
def test_the_factor_of_two_units(
    factor: float, unit: str, versions: tuple[str, str], severity: Severity | None
) -> None:
    seen = unit_error(factor, unit=unit, versions=versions)
    assert [one.severity for one in seen] == ([severity] if severity else [])


def test_time_windows_that_do_not_meet(tmp_path: Path) -> None:
    text = text_of(LOGS["hpcc"])
    moments = [line for line in text.split("\n") if line.startswith("Current time (")]
    later = text
    for line in set(moments):
        second = int(line.split("(")[1].split(")")[0])
        later = later.replace(f"({second})", f"({second + 200_000})")
    (one,) = found(findings(tmp_path, {"vm/a.txt": text, "box/a.txt": later}), "R02")
    assert "separate windows" in one.message
