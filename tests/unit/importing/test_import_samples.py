"""Other people's logs, as they left them: whole folders are imported, and nothing stops an import.

They are not part of the project. CI has them; where they are missing, a user's run of the tests says so.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from builders.logs import LOGS, readings, text_of
from builders.recorded import DATA
from vtax.importing.campaign import import_logs
from vtax.importing.request import Request

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
LEAST = {
    "a": (28, 3918),
    "b": (17, 10332),
    "c": (137, 14085),
    "d": (49, 1443),
}  # files and values that were taken before, which later versions take too


def there(name: str) -> Path:
    """The folder. Fails where CI lacks it; elsewhere the test is skipped, with the reason."""
    folder = SAMPLES / name
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{folder} is missing, which CI must have")
        pytest.skip(f"{folder} is not there: it holds other people's logs, which are not part of vtax")
    return folder


@pytest.mark.parametrize("name", sorted(LEAST))
def test_a_folder_is_imported_whole(name: str, tmp_path: Path) -> None:
    report = import_logs(Request(paths=(there(name),), environment="x"), tmp_path / "campaign")
    files, values = LEAST[name]
    assert report.yielded >= files
    assert report.taken >= values
    failed = [one.reason for run in report.runs for one in run.reading.refusals if "reader failed" in one.reason]
    assert failed == []
    assert not [file.reason for file in report.files if "reader failed" in file.reason]
    for file in report.files:
        account = file.account
        assert 0 <= account.prose <= account.lines, file.file


def test_every_recorded_output_is_imported(tmp_path: Path) -> None:
    """Readers for vtax's own runs and for logs are the same: none fails on what a tool really printed."""
    report = import_logs(Request(paths=(DATA,), environment="x"), tmp_path / "campaign")
    reasons = [one.reason for run in report.runs for one in run.reading.refusals]
    reasons += [file.reason for file in report.files]
    assert not [reason for reason in reasons if "reader failed" in reason]
    named = {path.relative_to(DATA).as_posix() for path in LOGS.values()}
    unread = [file.file for file in report.files if file.file in named and not file.taken and "U03" not in file.reason]
    left = {run.file for run in report.runs if run.left_out}
    assert [file for file in unread if file not in left] == []


def test_all_recorded_logs_are_read_alone() -> None:
    assert all(any(reading.values for reading in readings(text_of(path))) for path in LOGS.values())
