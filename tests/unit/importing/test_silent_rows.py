"""Rows that logs decide: messages inside a node, one client of a distributed test, shared directories of unknown type,
figures of each process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.audit_cases import as_imported, both, logged, value
from builders.logs import LOGS, imported, text_of
from vtax import pipeline
from vtax.audit.messages import messages
from vtax.model.finding import AuditRow, Outcome, Severity
from vtax.tools.hpcc.audit import star_figures

HPCC = text_of(LOGS["hpcc"])
NFS = "Command line used: iozone -a -f /mnt/shared/file"
US = 1e-6


def rows(tmp_path: Path, files: Mapping[str, str | bytes]) -> dict[str, AuditRow]:
    imported(tmp_path, dict(files), environment="", layout="{environment}/**")
    return {row.id: row for row in pipeline.audit(tmp_path / "campaign").rows}


def pingpongs(fastest: float, average: float, slowest: float) -> AuditRow:
    names = ("MinPingPongLatency", "AvgPingPongLatency", "MaxPingPongLatency")
    each = tuple(value("hpcc", name, us * US, "s") for name, us in zip(names, (fastest, average, slowest), strict=True))
    texts = dict.fromkeys(("host", "container"), HPCC)
    return messages.look(as_imported(logged("hpcc", texts, values=dict.fromkeys(texts, each))))


@pytest.mark.parametrize(
    ("fastest", "average", "slowest", "severity", "said"),
    [
        (0.3, 0.5, 0.8, Severity.BLOCKER, "all ranks were on one node"),
        (0.4, 30.0, 60.0, Severity.WARNING, "differ by a factor of 150 (400.0 ns to 60.00 µs)"),
        (0.7, 2.0, 3.0, Severity.WARNING, "at least two ranks were on one node"),
    ],
)
def test_m06_latencies_that_no_network_has(
    fastest: float, average: float, slowest: float, severity: Severity, said: str
) -> None:
    row = pingpongs(fastest, average, slowest)
    assert row.outcome is Outcome.FAIL
    assert {one.severity for one in row.findings} == {severity}
    assert said in row.findings[0].message
    assert "AvgPingPongLatency" in row.findings[0].metrics


def test_m06_a_network_passes() -> None:
    assert pingpongs(25.0, 30.0, 60.0).outcome is Outcome.PASS
    assert pingpongs(1.2, 1.5, 2.0).outcome is Outcome.PASS  # InfiniBand


def test_m06_is_not_asked_of_campaigns_that_vtax_ran() -> None:
    assert messages.look(logged("hpcc", both(HPCC))).outcome is Outcome.NOT_APPLICABLE


def test_m06_of_a_recorded_log(tmp_path: Path) -> None:
    """Two nodes of one machine, in network namespaces: slower than a microsecond, and of one kind."""
    row = rows(tmp_path, {"vm/hpccoutf.txt": HPCC})["M06"]
    found = next(line for line in HPCC.splitlines() if line.startswith("MinPingPongLatency_usec="))
    fast = float(found.partition("=")[2]) < 1
    assert (row.outcome is Outcome.FAIL) == fast


OSU = """\
# OSU MPI Latency Test v7.3
# Size          Latency (us)
{rows}
"""
IMB = """\
#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
# Benchmarking {name}
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         {time}         0.00

# All processes entering MPI_Finalize
"""


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        (OSU.format(rows="1 0.35\n1024 2.10"), Outcome.FAIL, "takes 350.0 ns, and no network is that fast"),
        (OSU.format(rows="1 1.35\n1024 2.10"), Outcome.PASS, ""),
        (IMB.format(name="PingPong", time="0.50"), Outcome.FAIL, "takes 500.0 ns, and no network is that fast"),
        (IMB.format(name="PingPong", time="1.50"), Outcome.PASS, ""),
    ],
)
def test_m06_of_one_pair_of_ranks(tmp_path: Path, text: str, outcome: Outcome, said: str) -> None:
    row = rows(tmp_path, {"vm/a.txt": text})["M06"]
    assert row.outcome is outcome
    assert [said in one.message for one in row.findings] == ([True] if said else [])


def test_d09_one_client_of_a_distributed_test(tmp_path: Path) -> None:
    text = text_of(LOGS["iozone kB"])
    there = "\tNetwork distribution mode enabled.\n"
    head, line, rest = text.partition("\tCommand line used:")
    found = rows(tmp_path, {"vm/a.txt": head + there + line + rest})["D09"]
    assert found.outcome is Outcome.FAIL
    assert "with one client" in found.findings[0].message
    assert "distributed=True" in found.findings[0].message  # the label repeats the claim


def test_d09_without_the_option(tmp_path: Path) -> None:
    assert rows(tmp_path, {"vm/a.txt": text_of(LOGS["iozone kB"])})["D09"].outcome is Outcome.NOT_APPLICABLE


def test_d05_a_shared_directory_of_unknown_type_is_unknown(tmp_path: Path) -> None:
    text = text_of(LOGS["iozone kB"])
    assert rows(tmp_path / "one", {"vm/nfs/a.txt": text})["D05"].outcome is Outcome.UNKNOWN
    line = next(line for line in text.splitlines() if "Command line used:" in line)
    named = text.replace(line, f"\t{NFS}")
    assert rows(tmp_path / "two", {"vm/a.txt": named})["D05"].outcome is Outcome.UNKNOWN


def test_d05_where_nothing_is_called_shared(tmp_path: Path) -> None:
    line = next(line for line in text_of(LOGS["iozone kB"]).splitlines() if "Command line used:" in line)
    text = text_of(LOGS["iozone kB"]).replace(line, "\tCommand line used: iozone -a -f /tmp/file")
    assert rows(tmp_path, {"vm/a.txt": text})["D05"].outcome is Outcome.NOT_APPLICABLE


def test_h05_names_every_figure_of_each_process() -> None:
    numbers = {"StarDGEMM": (2e9, "flop/s"), "StarSTREAM_Triad": (4e9, "byte/s"), "StarFFT": (1e9, "flop/s")}
    each = tuple(value("hpcc", name, *known) for name, known in numbers.items())
    texts = dict.fromkeys(("host", "container"), HPCC)
    row = star_figures.look(as_imported(logged("hpcc", texts, values=dict.fromkeys(texts, each))))
    said = row.findings[0].message
    assert "3 Star figures are per process" in said
    for part in ("StarDGEMM is 2.000 Gflop/s each, 4.000 Gflop/s for all 2", "StarSTREAM_Triad is", "StarFFT is"):
        assert part in said


def test_h05_without_the_number_of_processes_names_no_total() -> None:
    each = (value("hpcc", "StarDGEMM", 2e9, "flop/s"),)
    texts = dict.fromkeys(("host", "container"), "nothing that is a summary\n")
    row = star_figures.look(as_imported(logged("hpcc", texts, values=dict.fromkeys(texts, each))))
    said = row.findings[0].message
    assert "StarDGEMM is 2" in said
    assert "for all" not in said
