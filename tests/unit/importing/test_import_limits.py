"""An import cannot be made to fill the disk or the memory by a small file, nor disturbed by another import."""

from __future__ import annotations

import io
from pathlib import Path

import polars
import pytest

from builders.logs import SYSBENCH, imported
from vtax.errors import UsageError
from vtax.export.tables import COLUMNS, read_table
from vtax.importing import logs
from vtax.importing.campaign import import_logs
from vtax.importing.report import Report
from vtax.importing.request import Request
from vtax.store import Campaign


def reasons(report: Report) -> dict[str, str]:
    return {file.file: file.reason for file in report.files if file.reason}


def test_braces_are_no_runs(tmp_path: Path) -> None:
    """A document counts only where a tool has written it."""
    report = imported(tmp_path, {"braces.txt": "{\n}\n" * 20_000, "good.txt": SYSBENCH})
    assert {file.file: len(file.runs) for file in report.files} == {"braces.txt": 0, "good.txt": 1}
    assert reasons(report)["braces.txt"] == "no output of a benchmark that vtax knows"


def test_the_runs_of_a_file_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "RUNS", 2)
    report = imported(tmp_path, {"many.txt": SYSBENCH * 3})
    assert len(report.files[0].runs) == 2
    assert report.files[0].reason == "it has more than 2 runs, and only these were read: split it"


def test_a_small_table_of_very_many_rows_is_refused_unread(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    polars.DataFrame({name: ["x"] for name in COLUMNS}).sample(3_000_000, with_replacement=True).write_parquet(bomb)
    (tmp_path / "bomb.parquet").write_bytes(bomb.getvalue())
    assert len(bomb.getvalue()) < 200_000
    with pytest.raises(UsageError, match="nothing could be imported") as caught:
        import_logs(Request(paths=(tmp_path / "bomb.parquet",)), tmp_path / "campaign")
    assert "there are 3000000 rows, and at most 500000 are read" in caught.value.detail


def test_a_table_of_long_texts_is_refused(tmp_path: Path) -> None:
    table = io.BytesIO()
    polars.DataFrame({name: ["x" * 100_000] * 100 for name in COLUMNS}).write_parquet(table)
    with pytest.raises(UsageError, match="a text in it is longer than 65536 bytes"):
        read_table(table.getvalue(), "parquet", "long.parquet")


# --- two at once ---------------------------------------------------------------------------------------------------


def test_two_imports_do_not_disturb_each_other(tmp_path: Path) -> None:
    imported(tmp_path, {"a.txt": SYSBENCH})
    before = sorted(path for path in (tmp_path / "campaign").rglob("*"))
    with Campaign(tmp_path / "campaign").exclusive(), pytest.raises(UsageError, match="by another process"):
        imported(tmp_path, {"b.txt": SYSBENCH + "\n"})
    assert sorted(path for path in (tmp_path / "campaign").rglob("*")) == before


def test_two_imports_into_one_new_directory(tmp_path: Path) -> None:
    (tmp_path / "campaign").mkdir()
    with Campaign(tmp_path / "campaign").exclusive(), pytest.raises(UsageError, match="by another process"):
        imported(tmp_path, {"a.txt": SYSBENCH})


def test_a_directory_of_something_else_gets_no_lock(tmp_path: Path) -> None:
    (tmp_path / "campaign").mkdir()
    (tmp_path / "campaign" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="is not a campaign"):
        imported(tmp_path, {"a.txt": SYSBENCH})
    assert [path.name for path in (tmp_path / "campaign").iterdir()] == ["thesis.tex"]
