"""Logs that several processes read: the same campaign as by one, whatever happens to one of them."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.logs import LOGS, SYSBENCH, faster, put, text_of
from integration.conftest import Vtax, finish
from vtax.importing import files, source
from vtax.importing.campaign import import_logs
from vtax.importing.logs import Job
from vtax.importing.report import FileReport, table_of
from vtax.importing.request import Request
from vtax.importing.workers import Workers

pytestmark = pytest.mark.integration

MADE_NEW = ("campaign.json", ".lock")  # a campaign has its own id and time


class Deadly:
    """Ends the process that it is given to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return signal.raise_signal, (signal.SIGKILL,)


def job(folder: Path, name: str, text: str) -> Job:
    put(folder, {name: text})
    opened = source.opened(source.Found(folder / name, name, folder))
    assert isinstance(opened, source.Text)
    report = FileReport(name, environment="vm", sha256=opened.sha256())
    return Job(report, opened, f"raw/{name}", folder / "staging")


def test_the_result_is_that_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of all tools, the same file twice, damaged files, an archive, and a limit of the values that are listed."""
    monkeypatch.setattr(files, "ALONE_BYTES", 0)
    monkeypatch.setattr(files, "VALUES_LISTED", 100)
    logs = {f"{n:02d}.txt": text_of(path) for n, path in enumerate(LOGS.values())}
    put(tmp_path / "logs", {**logs, "twin.txt": logs["00.txt"], "cut.txt": SYSBENCH[:400], "empty.txt": ""})
    made = []
    for count in (1, 3):
        into = tmp_path / str(count) / "campaign"
        report = import_logs(Request((tmp_path / "logs",), environment="vm", processes=count), into)
        contents = {
            path.relative_to(into).as_posix(): path.read_bytes().replace(bytes(into), b"")
            for path in sorted(into.rglob("*"))
            if path.is_file() and path.name not in MADE_NEW
        }
        made.append((without_directory(table_of(report)), contents))
    assert made[0][0] == made[1][0]
    assert made[0][1] == made[1][1]
    assert len(made[0][1]) > 3 * len(logs)


def without_directory(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name != "directory"}


def test_a_process_that_dies_takes_its_log_alone(tmp_path: Path) -> None:
    deadly = replace(job(tmp_path, "b.txt", SYSBENCH), raw=Deadly())  # type: ignore[arg-type]
    with Workers(1) as workers:
        found = dict(workers.read(0, job(tmp_path, "a.txt", SYSBENCH)))
        found |= workers.read(1, deadly)
        found |= workers.read(2, job(tmp_path, "c.txt", faster(SYSBENCH, "9.00")))
        found |= workers.rest()
    assert [len(found[place].runs) for place in range(3)] == [1, 0, 1]
    assert found[1].reason == (
        "the process that read it was ended by signal 9, as it is where memory runs out: read it alone, or split it"
    )


def test_processes_that_die_at_once_take_their_logs_alone(tmp_path: Path) -> None:
    """As where memory runs out. Each has another log by then, which a new process reads."""
    with Workers(2) as workers:
        found: dict[int, FileReport] = {}
        for place in range(8):
            one = job(tmp_path, f"{place}.txt", faster(SYSBENCH, f"{place + 1}.00"))
            if place in (0, 1, 4):
                one = replace(one, raw=Deadly())  # type: ignore[arg-type]
            found |= workers.read(place, one)
        found |= workers.rest()
    assert [len(found[place].runs) for place in range(8)] == [0, 0, 1, 1, 0, 1, 1, 1]


def test_ctrl_c_leaves_no_process_and_no_campaign(tmp_path: Path, vtax: Vtax) -> None:
    one = "".join(faster(SYSBENCH, f"{n}.00") for n in range(1, 4000))
    put(tmp_path / "logs", {f"{n}.txt": f"note {n}\n{one}" for n in range(8)})
    process = vtax("import", "logs", "-e", "vm", "--into", "campaign")
    deadline = time.monotonic() + 120
    while not (children := children_of(process.pid)) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    assert children
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, "Traceback" in err) == (130, False)
    assert not (tmp_path / "campaign").exists()
    while any(map(running, children)) and time.monotonic() < deadline:  # one that had only been started ends itself
        time.sleep(0.02)
    assert not any(map(running, children))


def children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def running(pid: int) -> bool:
    """Whether a process is there, and is more than an entry that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
