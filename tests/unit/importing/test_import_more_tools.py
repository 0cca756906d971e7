"""GUPS, Intel's LINPACK, nuttcp, OSU and IMB: in the form of published logs, with numbers worked out by hand.

Only nuttcp's were recorded. The others are written in the forms that their authors' documentation and logs have.
"""

from __future__ import annotations

import pytest

from builders.logs import LOGS, readings, text_of
from builders.recorded import DATA
from vtax.tools.reading import Reading

GUPS = """\
Generated on 2014-07-12:16:19:40 GMT
Main table size   = 2^10 = 1024 words
Number of updates = 4000000
CPU time used  = 0.250000 seconds
Real time used = 0.500000 seconds
0.008000000 Billion(10^9) Updates    per second [GUP/s]
Found 3 errors in 1024 locations (passed).
"""
LINPACK = """\
Intel(R) Optimized LINPACK Benchmark data

CPU frequency:    2.000 GHz
Number of threads: 4

Size   LDA    Align. Time(s)    GFlops   Residual     Residual(norm) Check
3000   3000   4      1.000      18.0180  1.000000e-11 3.000000e-02   pass
3000   3000   4      2.000      9.0090   1.000000e-11 3.100000e-02   pass

Performance Summary (GFlops)

Size   LDA    Align.  Average  Maximal
3000   3000   4       13.5135  18.0180

Residual checks PASSED

End of tests
"""
OSU = """\
# OSU MPI Bandwidth Test v5.9
# Size      Bandwidth (MB/s)
1                       4.50
1024                 2100.25
4194304             11000.00
"""
OSU_ALLREDUCE = """\
# OSU MPI Allreduce Latency Test v7.3
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.50              2.00              3.00        1000
8                       2.60              2.10              3.10        1000
"""
IMB = """\
#------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
#------------------------------------------------------------
#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         0.50         0.00
         1024         1000         2.00       512.00
      1000000           40       100.00     10000.00

# All processes entering MPI_Finalize
"""
STREAM = text_of(LOGS["stream"]).split("STREAM of HPC Challenge")[1].partition("\n")[2]
WINDOWS = """\
Pinging 10.0.0.1 with 32 bytes of data:
Reply from 10.0.0.1: bytes=32 time=14ms TTL=117

Ping statistics for 10.0.0.1:
    Packets: Sent = 1, Received = 1, Lost = 0 (0% loss),
Approximate round trip times in milli-seconds:
    Minimum = 14ms, Maximum = 14ms, Average = 14ms
"""
GERMAN = """\
PING 10.0.0.1 (10.0.0.1) 56(84) Bytes an Daten.
64 Bytes von 10.0.0.1: icmp_seq=1 ttl=64 Zeit=0.030 ms

--- 10.0.0.1 Ping-Statistiken ---
1 Pakete übertragen, 1 empfangen, 0% packet loss, time 0ms
rtt min/avg/max/mdev = 0.030/0.030/0.030/0.000 ms
"""


def one(text: str) -> Reading:
    (reading,) = readings(text)
    return reading


def values(text: str) -> dict[tuple[str, str], float]:
    """By metric, and by size, trial or "" as its label."""
    found = {}
    for value in one(text).values:
        label = value.labels.get("size") or value.labels.get("trial") or ""
        found[value.metric.name, label] = value.value
    return found


def test_gups() -> None:
    assert values(GUPS) == {
        ("GUPS", ""): 8e6,
        ("real_time", ""): 0.5,
        ("cpu_time", ""): 0.25,
        ("errors", ""): 3.0,
    }


def test_randomaccess_inside_hpcc_is_no_run_of_gups() -> None:
    text = text_of(LOGS["hpcc"])
    start, end = text.index("Begin of StarRandomAccess section."), text.index("End of StarRandomAccess section.")
    block = text[start:end]
    for damaged in (text + block, block + "End of StarRandomAccess section.\n", text.partition("\n")[2][2000:]):
        assert not any(reading.values for reading in readings(damaged) if reading.benchmark == "gups")
    bare = block.split("\n", 1)[1].partition("Node(s)")[0]
    assert not any(reading.values for reading in readings(text + bare) if reading.benchmark == "gups")


def test_intel_linpack() -> None:
    found = values(LINPACK)
    assert found["Average", ""] == pytest.approx(13.5135e9)
    assert found["Maximal", ""] == pytest.approx(18.018e9)
    assert found["GFlops", "2"] == pytest.approx(9.009e9)
    assert found["Time", "1"] == 1.0
    assert one(LINPACK.replace("13.5135", "13.6135")).values == []
    assert one(LINPACK.replace("PASSED", "FAILED")).values == []


def test_nuttcp() -> None:
    folder = DATA / "import" / "nuttcp-6.1.2--bookworm"
    assert values(text_of(folder / "tcp.txt")) == {
        ("throughput", ""): pytest.approx(17064.5874e6),
        ("transfer", ""): 4073.1975 * 2**20,
        ("retransmits", ""): 0.0,
        ("rtt", ""): pytest.approx(0.09e-3),
    }
    assert values(text_of(folder / "udp.txt"))["lost_fraction", ""] == 0.0
    assert one(text_of(folder / "tcp.txt").replace("17064", "1706")).values == []


def test_osu() -> None:
    assert values(OSU) == {("bandwidth", "1"): 4.5e6, ("bandwidth", "1024"): 2100.25e6, ("bandwidth", "4194304"): 11e9}
    assert [v.labels["size"] for v in one(OSU).values if v.metric.primary] == ["4194304"]
    assert values(OSU_ALLREDUCE)["latency_min", "8"] == pytest.approx(2.1e-6)
    assert "2100" not in str(values(OSU.replace("2100.25", "2100.2")))


def test_imb() -> None:
    found = values(IMB)
    assert found["t", "0"] == pytest.approx(0.5e-6)
    assert found["bandwidth", "1024"] == pytest.approx(512e6)
    assert found["bandwidth", "1000000"] == pytest.approx(1e10)
    assert one(IMB.replace("# All processes", "")).values == []


def test_stream_without_a_title() -> None:
    whole = {(v.metric.name, v.value) for v in one(text_of(LOGS["stream"])).values}
    text = STREAM.rstrip("-\n ").rsplit("Solution Validates", 1)[0] + "Solution Validates\n"
    again = one(text)
    assert {(v.metric.name, v.value) for v in again.values} == whole


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [(WINDOWS, 1, "ping of Windows"), (GERMAN.replace("1 empf", "7 empf"), 5, "are not 0 % loss")],
)
def test_reasons_name_the_line(text: str, line: int, words: str) -> None:
    (refusal,) = one(text).refusals
    assert refusal.line == line
    assert words in refusal.reason


FRENCH = """\
PING example.org (93.184.215.14) 56(84) octets de données.
64 octets de 93.184.215.14 : icmp_seq=1 ttl=50 temps=12.3 ms
64 octets de 93.184.215.14 : icmp_seq=2 ttl=50 temps=14.3 ms

--- statistiques ping example.org ---
4 paquets transmis, 2 reçus, 50% paquets perdus, temps 3004 ms
rtt min/avg/max/mdev = 12.300/13.300/14.300/1.000 ms
"""
CHINESE = """\
PING 10.0.0.1 (10.0.0.1) 56(84) 字节的数据。

--- 10.0.0.1 ping 统计 ---
已发送 4 个包， 已接收 4 个包, 0% packet loss, time 3070ms
rtt min/avg/max/mdev = 12.300/13.300/14.300/1.000 ms
"""
CUT = GERMAN.partition("1 Pakete")[0]


@pytest.mark.parametrize(("text", "lost"), [(FRENCH, 0.5), (CHINESE, 0.0)])
def test_ping_in_other_languages(text: str, lost: float) -> None:
    found = {value.metric.name: value.value for value in one(text).values}
    assert found == {
        "lost_fraction": lost,
        "rtt_min": 12.3 / 1000,
        "rtt_avg": 13.3 / 1000,
        "rtt_max": 14.3 / 1000,
        "rtt_mdev": 1.0 / 1000,
    }


def test_ping_in_another_language_that_was_cut() -> None:
    (refusal,) = one(CUT).refusals
    assert (refusal.line, refusal.reason.partition(",")[0]) == (4, "its words are not English")


VERSIONS = """\
sysbench 1.0.20
iperf 3.18 (cJSON 1.7.15)
stress-ng, version 0.19.02 (gcc 14.2.0, x86_64 Linux 6.12.0)
fio-3.39
ping from iputils 20240905
pgbench (PostgreSQL) 17.12
wrk 4.1.0 [epoll] Copyright (C) 2012 Will Glozer
redis-benchmark 8.0.2
netperf 2.7.0
sockperf 3.7
nuttcp-6.1.2
mpirun (Open MPI) 5.0.7
hackbench 2.6
"""


def test_a_list_of_versions_is_no_run() -> None:
    assert readings(VERSIONS) == []
    (whole,) = readings(VERSIONS + text_of(LOGS["sysbench cpu"]))
    assert whole.values


def test_sysbench_without_a_name_of_its_test() -> None:
    folder = DATA / "import" / "sysbench-1.0.20--bookworm-nameless"
    for name in ("threads.txt", "mutex.txt"):
        (refusal,) = one(text_of(folder / name)).refusals
        assert "its output names no test" in refusal.reason


@pytest.mark.parametrize(
    ("row", "rate"),
    [
        ("WC00C2R2      100000   192     1     1             60.98            1.09336e+04 ", 1.09336e13),
        ("WC0            92160   288     1     1            19.54       2.671e+04 ( 2.671e+04)", 2.671e13),
    ],
)
def test_rows_of_other_builds_of_hpl(row: str, rate: float) -> None:
    text = text_of(LOGS["hpl"]).split("\n")
    first = next(place for place, line in enumerate(text) if line.startswith("WR"))
    changed = [line for line in text if not line.startswith("WR") or line == text[first]]
    changed[changed.index(text[first])] = row
    found = [v.value for reading in readings("\n".join(changed)) for v in reading.values if v.metric.name == "HPL"]
    assert found == [] or rate in found  # the closing lines count four systems
    whole = "\n".join(row if line == text[first] else line for line in text)
    assert rate in [v.value for reading in readings(whole) for v in reading.values if v.metric.name == "HPL"]
