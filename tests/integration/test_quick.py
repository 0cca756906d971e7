"""The main job, one round of it: the quick study on real clusters, and its report against the raw files."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from pathlib import Path

import pytest

from vtax import pipeline
from vtax.analysis.order import planned_order
from vtax.paths import Paths
from vtax.providers.qemu import kvm
from vtax.store import Campaign

from .conftest import Vtax, finish
from .test_bad_days import left

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.slow]
HPL_OUT = "0.worker1.hpccoutf.txt"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quick") / "campaign"


@pytest.fixture
def campaign(directory: Path, vtax: Vtax, places: Paths) -> Path:
    """Run once; every test below reads it."""
    if not directory.exists():
        code, out, err = finish(vtax("run", "quick", "-o", str(directory), "--available", "--rounds", "1"), 3600)
        assert code == 0, err
        assert out.splitlines()[-1] == f"report: {directory / 'report' / 'index.html'}"
        assert "left" in err, "progress tells the time that is left"
    return directory


def test_every_planned_trial_is_there(campaign: Path) -> None:
    stored = Campaign.open(campaign)
    plan = stored.plan()
    assert {spec.provider for spec in plan.environments} == {"host", "docker", "qemu"}
    assert {trial.id for trial in stored.trials()} == {trial.id for cell in plan.cells for trial in cell.trials}
    assert all(trial.status == "ok" for trial in stored.trials(texts=False))
    runs = {(work.environment, work.id) for work in plan.work if not work.provisioning}
    ran = sorted(stored.trials(texts=False), key=lambda trial: trial.started)
    started = [trial.id for trial in ran if (trial.environment, trial.work) in runs]
    planned = [trial.id for trial in planned_order(plan, lambda _: plan.interleave == "trial")]
    assert plan.interleave == "trial"
    assert started == [name for name in planned if name in started], "trials alternate in the plan's order"


def test_what_virtual_machines_said_is_kept_and_nothing_of_them_is_left(campaign: Path, places: Paths) -> None:
    consoles = {path.name: path.read_text() for path in (campaign / "cells").glob("*.console.log")}
    assert set(consoles) == {f"r001-vm.1.{node}.console.log" for node in ("master", "worker1", "worker2")}
    assert all("vtax-init" in text for text in consoles.values())
    assert left(places, campaign) == []


def raw(campaign: Path, trial: str, name: str) -> str:
    return (campaign / "trials" / trial / name).read_text()


def exported(campaign: Path) -> list[dict[str, str]]:
    from vtax.export.tables import export

    return list(csv.DictReader(io.StringIO(export(pipeline.measurements(campaign)[0], "csv").decode())))


def value(rows: list[dict[str, str]], trial: str, metric: str, **labels: str) -> float:
    found = [
        row
        for row in rows
        if row["trial"] == trial and row["metric"] == metric and labels.items() <= json.loads(row["labels"]).items()
    ]
    assert len(found) == 1, (trial, metric, labels, found)
    return float(found[0]["value"])


@pytest.mark.parametrize("environment", ["host", "container"])
def test_numbers_are_those_of_the_raw_files(campaign: Path, environment: str) -> None:
    """Read with expressions of their own, independent of the parsers."""
    rows = exported(campaign)
    cell = f"r001-{environment}"
    summary = raw(campaign, f"{cell}/hpcc.workers.1", "0.worker1.hpccoutf.txt")
    tflops = float(re.findall(r"^HPL_Tflops=(\S+)", summary, re.M)[0])
    assert value(rows, f"{cell}/hpcc.workers.1", "HPL") == pytest.approx(tflops * 1e12)
    triad = float(re.findall(r"^StarSTREAM_Triad=(\S+)", summary, re.M)[0])
    assert value(rows, f"{cell}/hpcc.workers.1", "StarSTREAM_Triad") == pytest.approx(triad * 1e9)
    assert "CommWorldProcs=2" in summary
    events = raw(campaign, f"{cell}/sysbench-cpu.worker1.1", "0.worker1.stdout")
    rate = float(re.findall(r"events per second:\s+(\S+)", events)[0])
    assert value(rows, f"{cell}/sysbench-cpu.worker1.1", "events_rate") == pytest.approx(rate, rel=0.01)
    table = raw(campaign, f"{cell}/iozone.worker1.shared.1", "0.worker1.stdout")
    write = next(int(line.split()[2]) for line in table.splitlines() if line.split()[:2] == ["49152", "1024"])
    sizes = {"file_bytes": str(48 * 2**20), "record_bytes": str(2**20)}
    shared = value(
        rows, f"{cell}/iozone.worker1.shared.1", "throughput", operation="write", filesystem="shared", **sizes
    )
    assert shared == write * 1024


def test_network_numbers_are_the_receivers(campaign: Path) -> None:
    rows = exported(campaign)
    trial = "r001-container/iperf3.worker1-worker2.1"
    text = json.loads(raw(campaign, trial, "1.worker1.stdout"))
    received = text["end"]["sum_received"]["bits_per_second"]
    assert value(rows, trial, "throughput", client="worker1", server="worker2") == received
    assert text["start"]["connected"][0]["local_host"] != text["start"]["connected"][0]["remote_host"]
    trial = "r001-container/ping.worker1-worker2.1"
    average_ms = float(re.findall(r"= [\d.]+/([\d.]+)/", raw(campaign, trial, "1.worker1.stdout"))[0])
    assert value(rows, trial, "rtt_avg") == pytest.approx(average_ms / 1000)
    on_host = {row["benchmark"] for row in rows if row["environment"] == "host"}
    assert on_host >= {"iperf3", "ping"}, "the nodes of the host have network stacks of their own"


def test_an_emulated_machine_runs_a_part_of_the_study(campaign: Path, places: Paths) -> None:
    plan = Campaign.open(campaign).plan()
    emulated = bool(kvm.probe(places.runtime).reason)
    mine = {work.label for work in plan.work if work.environment == "vm"}
    theirs = {work.label for work in plan.work if work.environment == "container"}
    assert mine == ({"sysbench-cpu", "ping", "startup"} if emulated else theirs)
    assert any("emulated in software here" in sentence for sentence in plan.left_out) == emulated


def test_entries_that_do_not_decide_are_exploratory(campaign: Path) -> None:
    analysis = json.loads((campaign / "analysis.json").read_text())
    primary = {c["label"] for c in analysis["comparisons"] if c["primary"]}
    others = {c["label"] for c in analysis["comparisons"]} - primary
    assert primary >= {"sysbench-cpu", "hpl", "sysbench-fileio", "iperf3", "ping"}
    assert others >= {"hpcc", "stress-ng", "iozone"}


def test_the_report_says_what_the_numbers_are(campaign: Path, places: Paths) -> None:
    page = (campaign / "report" / "index.html").read_text()
    text = (campaign / "report" / "report.md").read_text()
    analysis = json.loads((campaign / "analysis.json").read_text())
    hpl = [
        level
        for level in analysis["levels"]
        if (level["environment"], level["label"], level["metric"]) == ("container", "hpl", "HPL")
    ]
    values = [
        float(re.findall(r"^WR\S+ .* (\S+)$", raw(campaign, f"r001-container/hpl.workers.{i}", HPL_OUT), re.M)[0])
        for i in range(1, 5)
    ]
    middle = sorted(values)[1:3]  # a rate over fixed work: the two in the middle have a harmonic mean
    assert hpl[0]["median"] == pytest.approx(statistics.harmonic_mean(middle) * 1e9)
    assert hpl[0]["n"] == 1
    verdicts = {c["verdict"] for c in analysis["comparisons"]}
    undecided = {"data only", "difference only", "not comparable"}
    assert verdicts <= undecided, "one round decides nothing, on a quiet machine or a busy one"
    blockers = {f"not comparable: {f['message']}" for f in analysis["findings"] if f["severity"] == "blocker"}
    said = {c["sentence"] for c in analysis["comparisons"] if c["verdict"] == "not comparable"}
    assert blockers >= {sentence.removesuffix(" (exploratory)") for sentence in said}
    deciding = {c["verdict"] for c in analysis["comparisons"] if c["primary"]}
    for words in (*deciding, "A verdict needs at least 6 rounds"):
        assert words in page
        assert words in text
    emulated = [finding for finding in analysis["findings"] if finding["id"] == "T04"]
    machines = [c for c in analysis["comparisons"] if c["environment"] == "vm"]
    assert "vm" in {level["environment"] for level in analysis["levels"]}, "they are in the report, whatever runs them"
    assert (emulated != []) == bool(kvm.probe(places.runtime).reason), (
        "software emulation is said, and only where it is so"
    )
    assert bool(machines) != bool(emulated), "and compared unless they are emulated"
    assert not emulated or "software emulation" in text
    assert "<script src" not in page
    assert 'src="http' not in page


def test_rendering_again_changes_nothing(campaign: Path, vtax: Vtax) -> None:
    before = (campaign / "report" / "index.html").read_bytes()
    code, _, err = finish(vtax("report", str(campaign)))
    assert code == 0, err
    assert (campaign / "report" / "index.html").read_bytes() == before


def test_vtax_is_light_while_it_runs(campaign: Path, vtax: Vtax, tmp_path: Path) -> None:
    """Its own memory and processor time while a benchmark runs for eight seconds."""
    import os
    import time

    study = tmp_path / "study.toml"
    study.write_text(
        'name = "light"\nbaseline = "host"\nrounds = 1\n[environments.host]\nprovider = "host"\n'
        '[nodes]\ncpus = 1\nmemory = "512 MiB"\n'
        '[[benchmarks]]\nname = "sysbench-cpu"\nnodes = ["worker1"]\ntime_s = 8\n'
    )
    process = vtax("run", str(study), "-o", str(tmp_path / "c"))
    while not list((tmp_path / "c").glob("trials/*/.*.tmp")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1)
    place = Path(f"/proc/{process.pid}")

    def seconds() -> float:
        fields = (place / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = seconds()
    time.sleep(5)
    spent = seconds() - before
    resident = int(re.findall(r"VmRSS:\s+(\d+) kB", (place / "status").read_text())[0])
    assert finish(process)[0] == 0
    assert spent < 0.05, "under 1 % of a core"
    assert resident < 150 * 1024, f"{resident} kB resident"
