"""What was imported goes from its staging directory into the campaign: all of it or, if vtax is killed, nothing."""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vtax import __version__, files
from vtax.errors import StoreError, UsageError
from vtax.importing.plan import plan_of
from vtax.importing.records import records_of
from vtax.importing.report import Report, table_of
from vtax.importing.request import Request
from vtax.model.finding import Problem, Severity
from vtax.model.trial import TrialRecord
from vtax.store import CLAIMS, Campaign

STUDY = "# This campaign was imported from logs; it was not planned, so there is no study.\n"
STAGING = ".import"  # in the campaign, while an import lasts
BEFORE_THE_PLAN = ("study.toml", "campaign.json", "imports.json")  # in a new campaign


def is_new(directory: Path) -> bool:
    """Whether nothing is in a directory but what an import puts there before it writes the plan."""
    names = {path.name for path in directory.iterdir()}
    return names <= {".lock", STAGING} or (STAGING in names and "plan.json" not in names)


def undo_interrupted(directory: Path) -> None:
    """Remove what an import that was killed has moved into the campaign without naming it in the plan, which is written
    last. Its staging directory says that there was one."""
    if not (directory / STAGING).is_dir():
        return
    if (directory / "plan.json").exists():
        plan = Campaign.open(directory).plan()
        if plan.origin != "imported":
            return  # refused below
        cells = {cell.id for cell in plan.cells}
        trials = {trial.id for cell in plan.cells for trial in cell.trials}
    else:  # it was to be a new campaign
        files.refuse_special(directory)
        cells, trials = set(), set()
        for name in BEFORE_THE_PLAN:
            (directory / name).unlink(missing_ok=True)
        shutil.rmtree(directory / "raw", ignore_errors=True)
    for place in (directory / "trials").glob("*/*"):
        if place.relative_to(directory / "trials").as_posix() not in trials:
            shutil.rmtree(place)
    for path in (directory / "cells").glob("*.json"):
        if path.name.rpartition(".")[0].rpartition(".")[0] not in cells:
            path.unlink()
    for path in directory.glob(".*.tmp"):
        path.unlink()
    for name in ("trials", "cells"):
        for place in (*(directory / name).glob("*/"), directory / name):
            with suppress(OSError):  # something of an earlier import is in it
                place.rmdir()


def save(campaign: Campaign, report: Report, old: tuple[TrialRecord, ...], request: Request) -> None:
    """Number the runs, give every trial its place, then write the plan that names them all.

    Only what is written last is flushed to disk: if the machine fails, the logs can be imported again.
    """
    runs = [run for run in report.runs if not run.left_out]
    records = records_of(runs, old)
    everything = (*old, *records)
    directory = report.directory
    earlier = campaign.plan() if old else None
    problems = [*(earlier.problems if earlier else ()), *_notes(report)]
    baseline = request.baseline or (earlier.study.baseline if earlier else everything[0].environment)
    known = {record.environment for record in everything}
    if baseline not in known:
        names = ", ".join(sorted(known))
        raise UsageError(f"there is no environment {baseline!r} for --baseline", remedy=f"one of {names}")
    plan, cells = plan_of(directory.resolve().name, everything, baseline, tuple(dict.fromkeys(problems)))
    try:
        for run in report.runs:
            if run.left_out:
                shutil.rmtree(run.place)
        for run, record in zip(runs, records, strict=True):
            (run.place / "record.json").write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
        _move(directory / STAGING / "raw", directory / "raw", {Path(run.raw).name for run in runs})
        for group in {run.trial.partition("/")[0] for run in runs}:
            mine = {Path(run.trial).name for run in runs if run.trial.partition("/")[0] == group}
            _move(directory / STAGING / "trials" / group, directory / "trials" / group, mine)
        (directory / "cells").mkdir(exist_ok=True)
        for cell in cells:
            text = cell.model_dump_json(indent=1) + "\n"
            (directory / "cells" / f"{cell.cell}.{cell.instance}.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{directory} cannot be written: {error.strerror}", remedy="free some space") from error
    if earlier is None:
        about = {"id": secrets.token_hex(4), "vtax_version": __version__, "created": _now(), "host": {}, "image": IMAGE}
        campaign.save("study.toml", STUDY.encode())
        campaign.save("campaign.json", {**about, "origin": "imported"})
    campaign.save("imports.json", (json.dumps([*_tables(directory), table_of(report, values=False)]) + "\n").encode())
    if request.claims is not None:
        campaign.save(CLAIMS, request.claims)
    campaign.save("plan.json", (plan.model_dump_json(indent=1) + "\n").encode())


def _move(source_: Path, target: Path, names: set[str]) -> None:
    """Move entries into a directory that may exist already; all at once where it does not, and these are all."""
    if not target.exists() and names == {path.name for path in source_.iterdir()}:
        target.parent.mkdir(exist_ok=True)
        source_.rename(target)
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        (source_ / name).rename(target / name)


def _tables(directory: Path) -> list[Any]:
    """What earlier imports into the same campaign found; nothing when that cannot be read."""
    try:
        tables = Campaign(directory).read_json("imports.json")
    except (OSError, ValueError, RecursionError):
        return []
    return tables if isinstance(tables, list) else []


IMAGE: Mapping[str, Any] = {"recipe": "", "digest": "", "directory": "", "archive": "", "versions": {}}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _notes(report: Report) -> Iterator[Problem]:
    """What the audit must know of files that were not imported."""
    for file in report.files:
        if file.reason.startswith("U03"):
            yield Problem(severity=Severity.WARNING, message=f"{file.file} ({file.environment}): {file.reason[5:]}")
