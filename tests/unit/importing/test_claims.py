"""Published numbers against the logs that they are said to be of."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from builders.logs import LOGS, SYSBENCH, faster, imported, put, text_of
from vtax import pipeline
from vtax.analysis.claims import Agreement, Claim, Compared, compare_claims
from vtax.cli import main
from vtax.errors import UsageError
from vtax.importing.claims import read_claims

IPERF = """\
Connecting to host 10.0.0.3, port 5201
[  5] local 10.0.0.2 port 40000 connected to 10.0.0.3 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    0    400 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.16 GBytes  1.00 Gbits/sec    7             sender
[  5]   0.00-10.00  sec  1.16 GBytes  1.00 Gbits/sec                  receiver

iperf Done.
"""  # written by hand, in the layout of iperf 3.7 and later


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Three runs of sysbench (900, 910, 950 events a second; mean 920), and one of iperf3 (1 Gbit/s)."""
    rates = {f"vm/run{n}.txt": faster(SYSBENCH, f"{rate}.00") for n, rate in enumerate((900, 910, 950))}
    imported(tmp_path, {**rates, "vm/net.txt": IPERF}, environment="", layout="{environment}/**")
    return tmp_path / "campaign"


def against(campaign: Path, name: str, text: str, unit: str, n: int | None = None, environment: str = "") -> Compared:
    claim = Claim(name=name, text=text, value=float(text), unit=unit, n=n, environment=environment)
    (found,) = compare_claims([claim], *pipeline.measurements(campaign))
    return found


@pytest.mark.parametrize(
    ("name", "text", "unit", "agreement"),
    [
        ("events rate", "920", "1/s", Agreement.SAME),  # the mean
        ("sysbench cpu events", "920", "events/s", Agreement.SAME),
        ("events_rate", "910", "1/s", Agreement.SAME),  # the median
        ("events rate", "9.2e2", "1/s", Agreement.SAME),  # rounds to two digits
        ("events rate", "921", "1/s", Agreement.DIFFERENT),
        ("events rate", "950", "1/s", Agreement.BEST_RUN),
        ("events rate", "900", "1/s", Agreement.ONE_RUN),
        ("CPU events per second, eight threads", "920", "1/s", Agreement.SAME),  # words that the logs do not have
        ("CPU events per second, eight threads", "931", "1/s", Agreement.DIFFERENT),
        ("TCP bandwidth of the cluster", "1.00", "Gbit/s", Agreement.SAME),  # bandwidth is throughput
        ("prime numbers", "920.0", "1/s", Agreement.SAME),  # by its unit and value alone
        ("prime numbers", "920", "1/s", Agreement.NOT_FOUND),  # too few digits for that
        ("prime numbers", "931.0", "1/s", Agreement.NOT_FOUND),
        ("events rate", "0.92", "1/s", Agreement.OTHER_UNIT),  # thousands
        ("throughput", "1.00", "Gbit/s", Agreement.SAME),
        ("iperf3 throughput", "125", "MB/s", Agreement.SAME),  # 1 Gbit/s are 125 MB/s
        ("iperf3 throughput", "1.00", "GB/s", Agreement.OTHER_UNIT),
        ("iperf3 throughput", "954", "Mbps", Agreement.OTHER_UNIT),  # 10⁹ / 2²⁰
        ("HPL", "1.0", "Gflops", Agreement.NOT_FOUND),
        ("events of something else", "920", "1/s", Agreement.SAME),
    ],
)
def test_what_a_claim_is(campaign: Path, name: str, text: str, unit: str, agreement: Agreement) -> None:
    assert against(campaign, name, text, unit).agreement is agreement


def test_what_the_logs_say_is_named(campaign: Path) -> None:
    best = against(campaign, "events rate", "950", "1/s", n=3)
    assert "the best of 3 runs, whose mean is 920" in best.said
    assert (best.runs, best.counting) == (3, "")
    other = against(campaign, "iperf3 throughput", "1.00", "GB/s")
    assert "is 1.000 Gbit/s, not 1.00 GB/s" in other.said
    assert "bits and bytes" in other.said


def test_a_rate_is_not_compared_with_a_time(tmp_path: Path) -> None:
    """hpcc has HPL in flop/s and the time of HPL in s: a claim in Gflop/s means the first."""
    imported(tmp_path, {"a.txt": text_of(LOGS["hpcc"])})
    measured = {one.metric: one.value for one in pipeline.measurements(tmp_path / "campaign")[0]}
    found = against(tmp_path / "campaign", "HPL", "12345", "Gflop/s")
    assert (found.agreement, " HPL (" in found.said or " HPL in" in found.said) == (Agreement.DIFFERENT, True)
    confused = against(tmp_path / "campaign", "HPL time", str(measured["HPL_time"] * 1000), "Gflop/s")
    assert confused.agreement is Agreement.DIFFERENT
    assert "nothing of this name is in Gflop/s" in confused.said


def test_seconds_counted_as_runs(campaign: Path) -> None:
    assert (
        "seconds counted as runs; the logs have 1 run"
        in against(campaign, "iperf3 throughput", "1.00", "Gbit/s", n=10).counting
    )
    assert against(campaign, "events rate", "920", "1/s", n=7).counting == "n is 7; the logs have 3 runs"


def test_one_environment_only(campaign: Path) -> None:
    assert against(campaign, "events rate", "920", "1/s", environment="vm").agreement is Agreement.SAME
    assert against(campaign, "events rate", "920", "1/s", environment="box").agreement is Agreement.NOT_FOUND


def test_ranks(tmp_path: Path) -> None:
    """Two ranks of one mpirun: 1092.04 a second and 2000.00, together 3092.04."""
    text = f"$ mpirun -np 2 sysbench cpu run\n{SYSBENCH}\n{faster(SYSBENCH, '2000.00')}"
    imported(tmp_path, {"a.txt": text})
    directory = tmp_path / "campaign"
    values = {one.value for one in pipeline.measurements(directory)[0] if one.metric == "events_rate"}
    assert 2000.0 in values
    one = against(directory, "events rate", "2000.00", "1/s", n=2)
    assert one.agreement is Agreement.BEST_RANK
    assert "one of 2 ranks" in one.said
    assert one.counting == "n is 2: ranks counted as runs; the logs have 1 run"


# --- the file, the terminal, the page -------------------------------------------------------------------------------

CSV = "name,value,unit,n\nevents rate,920,1/s,3\nHPL,1.5,Gflops,\n"
TOML = """\
[[claims]]
name = "events rate"
value = "920"
unit = "1/s"
n = 3
[[claims]]
name = "HPL"
value = 1.5
unit = "Gflops"
"""


@pytest.mark.parametrize(("file", "text"), [("claims.csv", CSV), ("claims.toml", TOML)])
def test_both_forms_of_the_table(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    one, two = read_claims(tmp_path / file).claims
    assert (one.name, one.text, one.value, one.unit, one.n) == ("events rate", "920", 920.0, "1/s", 3)
    assert (two.name, two.text, two.unit, two.n) == ("HPL", "1.5", "Gflops", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,value,unit\nx,y,s\n", "claim 1: could not convert"),
        ("name,value,unit\nx,nan,s\n", "claim 1: value"),
        ("name,value,unit\nx,1,s\nx,,s\n", "claim 2: value is missing"),
        ("name,value,unit,colour\nx,1,s,red\n", "column 'colour' is unknown"),
        ("name,value,unit\nx,1\n", "not as many columns"),
        ("name,value,unit,n\nx,1,s,0\n", "claim 1: n"),
        ("name,value,unit\n", "has no claims"),
    ],
)
def test_tables_that_are_wrong_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "claims.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_claims(tmp_path / "claims.csv")


def test_claims_are_in_terminal_json_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "logs", {"a.txt": faster(SYSBENCH, "920.00"), "hpcc.txt": text_of(LOGS["hpcc"])})
    (tmp_path / "claims.csv").write_text("name,value,unit,n\nevents rate,920.00,1/s,1\nturns,3,1/s,\n")
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["vtax", "import", "logs", "-e", "vm", "--claims", "claims.csv", *words])
        with pytest.raises(SystemExit) as left:
            main.main()
        assert left.value.code == 0
        return capsys.readouterr().out

    lines = said("--into", "one").splitlines()
    assert any("events rate" in line and "same" in line and "the only run" in line for line in lines)
    assert any(line.startswith("turns") and "not found" in line for line in lines)
    found = json.loads(said("--into", "two", "--json"))["claims"]
    assert [one["agreement"] for one in found] == ["same", "not found"]
    (page, markdown) = pipeline.reports(tmp_path / "one", ("html", "md"))
    for file in (page, markdown):
        assert "Published numbers against these logs" in file.read_text()
        assert "not found" in file.read_text()
