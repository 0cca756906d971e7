"""Every line of a file belongs to a value, a refusal, a named remainder or prose; counts are of what yielded values."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.logs import CLIENT, LOGS, SYSBENCH, imported, text_of
from builders.recorded import DATA
from vtax.errors import UsageError
from vtax.importing.accounting import has_quantity
from vtax.importing.report import FileReport, table_of


def account(tmp_path: Path, text: str) -> FileReport:
    report = imported(tmp_path, {"a.txt": text, "good.txt": text_of(LOGS["ping"])})
    return next(file for file in report.files if file.file == "a.txt")


@pytest.mark.parametrize("name", sorted(LOGS))
def test_no_line_is_lost(name: str, tmp_path: Path) -> None:
    text = text_of(LOGS[name])
    (file,) = imported(tmp_path, {"a.txt": text}).files
    assert file.account.lines == len(text.removesuffix("\n").split("\n"))
    assert 0 <= file.account.prose <= file.account.lines
    assert file.account.values > 0


def test_numbers_outside_of_runs_are_named(tmp_path: Path) -> None:
    found = account(tmp_path, "notes\ndisk: 512 MB/s\n\nlatency (us): 12.5\nversion 3 of 4\n").account
    assert (found.lines, found.prose, found.remainder) == (5, 3, 2)
    rest = found.rest["numbers outside any run"]
    assert (rest.lines, rest.first) == (2, 2)


def test_what_a_run_has_besides_its_values_is_named(tmp_path: Path) -> None:
    found = account(
        tmp_path, text_of(LOGS["ping"]).replace("rtt min", "64 bytes from x: icmp_seq=1 time=1.0 ms\nrtt min")
    )
    assert found.account.rest["single answers of ping"].lines == 1


def test_a_histogram_is_named(tmp_path: Path) -> None:
    """Its rows have no unit."""
    found = account(tmp_path, text_of(DATA / "import/sysbench-1.0.20--trixie-histogram/cpu.txt"))
    assert found.account.rest["sysbench's histogram"].lines == 138


def test_percentiles_of_fio_are_named(tmp_path: Path) -> None:
    found = account(tmp_path, text_of(DATA / "readers/fio/3.39--trixie-text/output")).account
    assert found.rest["percentiles of fio that are not taken"].lines > 3


def test_a_refused_run_is_refused_line_by_line(tmp_path: Path) -> None:
    found = account(tmp_path, SYSBENCH[:400]).account
    assert (found.refused, found.prose) == (found.lines, 0)


def test_where_no_value_is_found_there_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing could be imported") as caught:
        imported(tmp_path, {"cut.txt": SYSBENCH[:400]})
    assert caught.value.exit_code == 2
    assert "cut.txt line" in caught.value.detail
    assert not (tmp_path / "campaign").exists()


def test_files_are_counted_by_their_values(tmp_path: Path) -> None:
    report = imported(tmp_path, {"good.txt": SYSBENCH, "cut.txt": SYSBENCH[:400], "notes.md": "no\n"})
    assert (report.yielded, len(report.files)) == (1, 3)
    assert table_of(report)["files_with_values"] == 1


def test_json_lists_what_is_in_the_campaign(tmp_path: Path) -> None:
    """Both sides of one connection: the one that is left out lists no values."""
    client = CLIENT.format(host="10.0.0.1", address="10.0.0.1")
    server = (
        "Server listening on 5201\nAccepted connection from 10.0.0.2, port 39999\n"
        "[  5] local 10.0.0.1 port 5201 connected to 10.0.0.2 port 40000\n"
        "[  5]   0.00-10.00  sec  1.16 GBytes  1.00 Gbits/sec                  receiver\n"
    )
    runs = [run for file in table_of(imported(tmp_path, {"c": client, "s": server}))["files"] for run in file["runs"]]
    assert [bool(run["left_out"]) for run in runs] == [False, True]
    assert [bool(run["values"]) for run in runs] == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("95.3 MB/s", True),
        ("took 12 ms", True),
        ("Bandwidth (MB/sec): 12.5", True),
        ("5 % lost", True),
        ("1,000 requests", True),
        ("version 3.2", False),
        ("10.0.0.1 port 5201", False),
        ("Threads started!", False),
        ("run 12 of 14", False),
    ],
)
def test_numbers_with_units(text: str, expected: bool) -> None:
    assert has_quantity(text) is expected
