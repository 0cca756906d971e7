"""From folders of logs to a campaign, and what bad files do to it: nothing."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.logs import LOGS, SYSBENCH, faster, imported, put, readings, text_of
from builders.recorded import DATA
from vtax import pipeline
from vtax.analysis.records import Verdict
from vtax.errors import StoreError, UsageError
from vtax.importing import source
from vtax.importing.campaign import import_logs
from vtax.importing.layout import Layout, NoFit
from vtax.importing.report import Report, table_of
from vtax.importing.request import Request
from vtax.model.finding import Severity
from vtax.model.trial import Status
from vtax.store import Campaign
from vtax.tools import log_formats, trials
from vtax.tools.reading import Reading, Section

STRESS = text_of(LOGS["stress-ng 0.19"])


def reasons(report: Report) -> dict[str, str]:
    return {file.file: file.reason for file in report.files if file.reason}


def rates(directory: Path) -> list[float]:
    found, _ = pipeline.measurements(directory)
    return sorted(item.value for item in found if item.metric == "events_rate")


def test_one_folder_becomes_a_campaign_that_every_command_reads(tmp_path: Path) -> None:
    files = {
        "vm/cpu1.txt": faster(SYSBENCH, "1000.00"),
        "vm/cpu2.txt": faster(SYSBENCH, "1100.00"),
        "container/cpu1.txt": faster(SYSBENCH, "2000.00"),
        "container/cpu2.txt": faster(SYSBENCH, "2200.00"),
        "container/notes.md": "we ran this on a Sunday\n",
    }
    report = imported(tmp_path, {**files}, environment="", layout="{environment}/**", baseline="vm")
    assert reasons(report) == {"container/notes.md": "no output of a benchmark that vtax knows"}
    analysis = pipeline.analyse(tmp_path / "campaign")
    (level,) = [one for one in analysis.levels if one.environment == "vm" and one.metric == "events_rate"]
    assert (level.n, level.mean, level.median) == (2, 1050.0, 1050.0)
    assert level.sd == pytest.approx(100 / 2**0.5)
    (one,) = [c for c in analysis.comparisons if c.metric == "events_rate"]
    assert (one.environment, one.baseline, one.n) == ("container", "vm", 2)
    assert one.ratio == pytest.approx(2.0)
    assert one.verdict is Verdict.DATA_ONLY
    assert (one.low, one.high, one.p_value) == (None, None, None)
    blockers = {found.id for found in analysis.findings if found.severity is Severity.BLOCKER}
    assert {"R01", "R02"} <= blockers
    assert pipeline.report(tmp_path / "campaign").read_text()
    assert json.loads((tmp_path / "campaign/imports.json").read_text())[0]["files"]


def test_three_runs_on_each_side_are_a_pilot_and_no_more(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{name}/{n}.txt": faster(SYSBENCH, f"{rate + n}.00")
        for name, rate in (("vm", 1000), ("host", 1010))
        for n in range(8)
    }
    imported(tmp_path, files, environment="", layout="{environment}/*", baseline="host")
    (one,) = [c for c in pipeline.analyse(tmp_path / "campaign").comparisons if c.metric == "events_rate"]
    assert one.verdict is Verdict.PILOT
    assert one.n == 8


def test_the_raw_file_is_kept_byte_for_byte(tmp_path: Path) -> None:
    report = imported(tmp_path, {"a.txt": SYSBENCH})
    (trial,) = Campaign.open(tmp_path / "campaign").trials()
    assert trial.imported is not None
    assert (tmp_path / "campaign" / trial.imported.raw).read_bytes() == SYSBENCH.encode()
    assert trial.imported.sha256 == report.files[0].sha256
    assert trial.imported.file == "a.txt"


def test_ranks_are_never_counted_as_runs(tmp_path: Path) -> None:
    command = "user@master:~$ mpirun -np 2 sysbench cpu run\n"
    imported(tmp_path, {"a.txt": command + faster(SYSBENCH, "10.00") + faster(SYSBENCH, "30.00")})
    levels = [one for one in pipeline.analyse(tmp_path / "campaign").levels if one.metric == "events_rate"]
    assert {one.n for one in levels} == {1}
    assert sorted(one.mean for one in levels) == [10.0, 30.0, 40.0]


def test_a_file_is_never_counted_twice(tmp_path: Path) -> None:
    report = imported(tmp_path, {"a.txt": SYSBENCH, "copy of a.txt": SYSBENCH})
    assert "same bytes" in reasons(report)["copy of a.txt"]
    with pytest.raises(UsageError, match="nothing could be imported"):
        imported(tmp_path, {})
    put(tmp_path / "logs", {"b.txt": faster(SYSBENCH, "5.00")})
    imported(tmp_path, {})
    assert len(rates(tmp_path / "campaign")) == 2
    findings = pipeline.analyse(tmp_path / "campaign").findings
    assert any(found.id == "U03" and "copy of a.txt" in found.message for found in findings)


def test_more_runs_go_on_counting(tmp_path: Path) -> None:
    imported(tmp_path, {"a.txt": faster(SYSBENCH, "5.00")})
    put(tmp_path / "logs", {"b.txt": faster(SYSBENCH, "6.00")})
    imported(tmp_path, {})
    campaign = Campaign.open(tmp_path / "campaign")
    assert sorted((trial.round, trial.imported.file) for trial in campaign.trials() if trial.imported) == [
        (1, "a.txt"),
        (2, "b.txt"),
    ]
    assert campaign.plan().study.rounds == 2


@pytest.mark.parametrize(
    ("last", "earlier"),
    [("study.toml", False), ("imports.json", False), ("plan.json", False), ("imports.json", True), ("plan.json", True)],
)
def test_an_import_that_was_killed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, earlier: bool
) -> None:
    """As it was left before it wrote one of the last files: trials have been moved that no plan names."""
    if earlier:
        imported(tmp_path, {"old.txt": faster(SYSBENCH, "900.00")})
        shutil.rmtree(tmp_path / "logs")
    save = Campaign.save

    def copied_before(self: Campaign, name: str, content: object) -> Path:
        if name == last and self.directory == tmp_path / "campaign":
            shutil.copytree(self.directory, tmp_path / "killed" / "campaign")
        return save(self, name, content)  # type: ignore[arg-type]

    monkeypatch.setattr(Campaign, "save", copied_before)
    imported(tmp_path, {"new.txt": faster(SYSBENCH, "1000.00")})
    killed, whole = tmp_path / "killed" / "campaign", tmp_path / "campaign"
    assert len(list(killed.glob("trials/*/*/record.json"))) == 1 + earlier
    imported(tmp_path / "killed", {"new.txt": faster(SYSBENCH, "1000.00")})
    assert rates(killed) == rates(whole) == ([900.0] if earlier else []) + [1000.0]
    assert Campaign.open(killed).plan_bytes() == Campaign.open(whole).plan_bytes()
    assert not (killed / ".import").exists()


def test_an_import_that_fails_leaves_the_campaign_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(tmp_path, {"old.txt": faster(SYSBENCH, "900.00")})
    before = {path: path.read_bytes() for path in (tmp_path / "campaign").glob("trials/**/*") if path.is_file()}
    monkeypatch.setattr(Campaign, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StoreError, match="No space left"):
        imported(tmp_path, {"new.txt": faster(SYSBENCH, "1000.00")})
    assert {path: path.read_bytes() for path in (tmp_path / "campaign").glob("trials/**/*") if path.is_file()} == before


def test_one_benchmark_may_be_asked_for(tmp_path: Path) -> None:
    report = imported(tmp_path, {"a.txt": SYSBENCH, "b.txt": STRESS}, benchmark="sysbench")
    assert [run.left_out for run in report.runs if run.left_out] == [
        "it is stress-ng, and --benchmark sysbench was given"
    ]


def test_server_and_client_of_one_test_count_once(tmp_path: Path) -> None:
    report = imported(
        tmp_path, {"client.json": text_of(LOGS["iperf3 json"]), "server.txt": text_of(LOGS["iperf3 server"])}
    )
    left = [run for run in report.runs if run.left_out]
    if left:  # the recorded pair is one test
        assert left[0].reading.facts["side"] == "server"
    assert len(report.runs) - len(left) == 1


def test_a_run_that_is_refused_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    imported(tmp_path, {"a.txt": SYSBENCH, "b.txt": SYSBENCH[:400]})
    failed = [trial for trial in Campaign.open(tmp_path / "campaign").trials() if trial.status is Status.FAILED]
    assert len(failed) == 1
    assert "ranks began" in failed[0].failure


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.gz", b"\x1f\x8b" + b"x" * 100, "archive"),
        ("a.zip", b"PK\x03\x04" + b"x" * 100, "archive"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "workbook"),
        ("zeros", bytes(100_000), "binary"),
        ("noise", bytes(range(256)) * 100, "binary"),
        ("empty", b"", "empty"),
        ("prose", b"nothing of interest\n" * 50, "no output"),
    ],
)
def test_what_is_no_log_is_named_and_left_alone(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    report = imported(tmp_path, {name: content, "good.txt": SYSBENCH})
    assert reason in reasons(report)[name]
    assert len(rates(tmp_path / "campaign")) == 1


def test_the_workbook_of_iozone_is_named_and_what_it_printed_is_read(tmp_path: Path) -> None:
    folder = DATA / "import" / "iozone-3.507--trixie-workbook"
    report = imported(tmp_path, {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".toml"})
    workbooks = {file.file: file.reason for file in report.files if file.file.endswith(".xls")}
    assert set(workbooks) == {"auto.xls", "throughput.xls"}
    assert all("(-b)" in reason and "unit" in reason for reason in workbooks.values())
    measured, _ = pipeline.measurements(tmp_path / "campaign")
    names = ("operation", "file_bytes", "record_bytes", "processes")
    found = {tuple(one.labels.get(name, "") for name in names): one for one in measured}
    assert len(found) == len(measured) == 16 + 4
    assert found["write", "524288", "131072", ""].value == 116_572 * 1024
    assert found["reread", "1048576", "65536", ""].value == 15_516_181 * 1024
    assert found["rewrite", "1048576", "65536", "2"].value == 3_684_119.5 * 1024


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    imported(tmp_path, {"a.txt": f"Messung für später\n{SYSBENCH}".encode(encoding)})
    assert rates(tmp_path / "campaign") == [pytest.approx(1093.3, rel=0.5)]


def test_nul_bytes_and_endless_lines_are_not_believed(tmp_path: Path) -> None:
    lines = SYSBENCH.split("\n")
    place = next(n for n, line in enumerate(lines) if "events per second" in line)
    broken = [*lines[:place], lines[place][:-3] + "\0" + lines[place][-3:], *lines[place + 1 :]]
    report = imported(tmp_path, {"nul.txt": "\n".join(broken), "long.txt": "x" * 10_000_000 + "\n" + SYSBENCH})
    assert {file.file: bool(file.damaged_lines) for file in report.files} == {"nul.txt": True, "long.txt": True}
    assert len(rates(tmp_path / "campaign")) == 1


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    secret = put(tmp_path / "elsewhere", {"secret.txt": SYSBENCH}) / "secret.txt"
    logs = put(tmp_path / "logs", {"good.txt": STRESS})
    (logs / "link.txt").symlink_to(secret)
    (logs / "folder").symlink_to(tmp_path / "elsewhere")
    (logs / "loop").symlink_to(logs)
    os.mkfifo(logs / "pipe")
    report = imported(tmp_path, {})
    found = reasons(report)
    assert found["link.txt"] == found["folder"] == "a link out of the folder"
    assert "same folder" in found["loop"]
    assert "pipe" in found["pipe"]
    assert not rates(tmp_path / "campaign")


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = put(tmp_path / "logs", {"good.txt": SYSBENCH, "closed.txt": SYSBENCH})
    real = source.opened

    def opened(found: source.Found) -> source.Text | str:
        return "it cannot be read: Permission denied" if found.path.name == "closed.txt" else real(found)

    monkeypatch.setattr(source, "opened", opened)
    report = import_logs(Request(paths=(logs,), environment="vm"), tmp_path / "campaign")
    assert reasons(report) == {"closed.txt": "it cannot be read: Permission denied"}


def test_a_full_disk_is_not_the_fault_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be reported as unreadable, left out, and the import would be a success without it."""
    logs = put(tmp_path / "logs", {"good.txt": SYSBENCH, "other.txt": SYSBENCH + "\n"})
    real = Path.write_bytes

    def written(path: Path, data: bytes) -> int:
        if path.name == "log.txt" and list(path.parents[1].rglob("log.txt")):  # the second one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", written)
    with pytest.raises(StoreError, match="cannot be written: No space left on device") as caught:
        import_logs(Request(paths=(logs,), environment="vm"), tmp_path / "campaign")
    assert caught.value.exit_code == 3
    assert not (tmp_path / "campaign").exists()


@pytest.mark.parametrize("last", ["study.toml", "campaign.json", "imports.json", "plan.json"])
def test_an_import_that_the_disk_has_no_room_for_can_be_repeated(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the files before the plan could not be written: the directory is as it was, new."""
    logs = put(tmp_path / "logs", {"good.txt": SYSBENCH})
    request, directory = Request(paths=(logs,), environment="vm"), tmp_path / "campaign"
    real = Campaign.save

    def save(campaign: Campaign, name: str, content: Any) -> Path:
        if name == last:
            raise StoreError("no space", remedy="free some")
        return real(campaign, name, content)

    with monkeypatch.context() as full:
        full.setattr(Campaign, "save", save)
        with pytest.raises(StoreError):
            import_logs(request, directory)
    assert not directory.exists()
    assert import_logs(request, directory).runs


def test_where_nothing_could_be_imported_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing could be imported") as caught:
        imported(tmp_path, {"notes.txt": "nothing here\n"})
    assert caught.value.exit_code == 2
    assert "notes.txt" in caught.value.detail
    assert not (tmp_path / "campaign").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"environment": ""},
        {"environment": "vm", "layout": "{environment}/**"},
        {"environment": "../x"},
        {"environment": "", "layout": "results/**"},
        {"environment": "vm", "baseline": "host"},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        imported(tmp_path, {"a.txt": SYSBENCH}, **options)
    assert not (tmp_path / "campaign" / "plan.json").exists()


@pytest.mark.parametrize(
    ("layout", "path", "shown", "environment"),
    [
        ("{environment}/**", "/x/vm/a/b.txt", "vm/a/b.txt", "vm"),
        ("results/{environment}/**", "/x/results/vm/b.txt", "vm/b.txt", "vm"),
        ("results/{environment}/*.txt", "/x/results/vm/b.txt", "results/vm/b.txt", "vm"),
        ("*/{environment}-run*/*", "/x/a/vm-run1/b.txt", "a/vm-run1/b.txt", "vm"),
    ],
)
def test_layouts(layout: str, path: str, shown: str, environment: str) -> None:
    assert Layout(layout).fit(Path(path), shown) == {"environment": environment}


@pytest.mark.parametrize(
    ("layout", "path", "shown"),
    [
        ("results/{environment}/**", "/x/other/vm/b.txt", "vm/b.txt"),
        ("{environment}/{node}.txt", "/x/old/vm/b.txt", "old/vm/b.txt"),  # not from the middle of what was given
        ("{environment}/{node}_{condition}.txt", "/x/vm/node1.txt", "vm/node1.txt"),
        ("{environment}/{node}_{condition}.txt", "/x/vm/node1_idle.log", "vm/node1_idle.log"),
    ],
)
def test_paths_that_do_not_fit_are_reported(layout: str, path: str, shown: str) -> None:
    with pytest.raises(NoFit, match="does not fit --layout"):
        Layout(layout).fit(Path(path), shown)


def test_a_path_that_fits_in_two_ways_is_reported_with_both() -> None:
    layout = Layout("{environment}/{node}_{condition}.txt")
    assert layout.fit(Path("/x/vm/n1_idle.txt"), "vm/n1_idle.txt") == {
        "environment": "vm",
        "node": "n1",
        "condition": "idle",
    }
    with pytest.raises(NoFit, match=r"node=n1, condition=very_idle or environment=vm, node=n1_very, condition=idle"):
        layout.fit(Path("/x/vm/n1_very_idle.txt"), "vm/n1_very_idle.txt")


def test_the_table_is_whole(tmp_path: Path) -> None:
    """Every file is in it, every value with its lines, every refusal with its reason."""
    report = imported(tmp_path, {"a.txt": SYSBENCH, "b.txt": SYSBENCH[:400], "c.bin": bytes(50_000)})
    table = table_of(report)
    assert [file["file"] for file in table["files"]] == ["a.txt", "b.txt", "c.bin"]
    (run,) = table["files"][0]["runs"]
    (rate,) = [value for value in run["values"] if value["metric"] == "events_rate"]
    text = SYSBENCH.split("\n")[rate["lines"][0] - 1]
    assert str(rate["value"]) in text
    assert rate["unit"] == "1/s"
    assert table["files"][1]["runs"][0]["refused"][0]["reason"]
    assert table["files"][2]["not_read"] == "binary data"
    assert json.dumps(table)


def test_folders_with_output_of_every_tool_are_imported_whole(tmp_path: Path) -> None:
    """As people keep them: a folder an environment, notes and damaged files among them; nothing stops the others."""
    files: dict[str, str | bytes] = {}
    for environment, digit in (("box", "7"), ("vm", "8")):
        for name, path in LOGS.items():
            files[f"{environment}/{name}.txt"] = f"# {environment}\n" + text_of(path)
        table = text_of(LOGS["iozone kB"])
        assert "-i 4 " in table
        files[f"{environment}/iozone typing error.txt"] = table.replace("-i 4 ", f"-i4- -i {digit} ")
        files[f"{environment}/cut.txt"] = text_of(LOGS["hpcc"])[:-4000] + digit
        files[f"{environment}/readme.md"] = f"{environment}: no benchmark here\n"
    report = imported(tmp_path, files, environment="", layout="{environment}/**", baseline="box")
    assert {file.file for file in report.files if not file.runs} == {"box/readme.md", "vm/readme.md"}
    cut = [run for run in report.runs if run.reading.facts.get("aborted")]
    assert {run.file for run in cut} == {"box/cut.txt", "vm/cut.txt"}
    assert not [run.file for run in report.runs if not run.count and not run.left_out]
    campaign = tmp_path / "campaign"
    found, _ = pipeline.measurements(campaign)
    assert len(found) > 700
    assert {one.benchmark for one in found} == {
        one.benchmark for path in LOGS.values() for one in readings(text_of(path))
    }
    assert pipeline.report(campaign).read_text()


def test_a_reader_with_a_bug_refuses_its_runs_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(section: Section) -> Reading:
        raise ValueError("invalid literal for int() with base 10: '4-'")

    known = dict(log_formats())
    monkeypatch.setattr(trials, "log_formats", lambda: {**known, "ping": replace(known["ping"], read=broken)})
    files: dict[str, str | bytes] = {"ping.txt": "# vm\n" + text_of(LOGS["ping"]), "cpu.txt": SYSBENCH}
    report = imported(tmp_path, files)
    (failed,) = [run for run in report.runs if run.file == "ping.txt"]
    (refusal,) = failed.reading.refusals
    assert (failed.count, refusal.line) == (0, 1)
    assert re.fullmatch(
        r"this reader failed; please report it \(ValueError in test_imports\.py:\d+: "
        r"invalid literal for int\(\) with base 10: '4-'\)",
        refusal.reason,
    )
    assert {one.benchmark for one in pipeline.measurements(tmp_path / "campaign")[0]} == {"sysbench-cpu"}
    assert pipeline.report(tmp_path / "campaign").read_text()
