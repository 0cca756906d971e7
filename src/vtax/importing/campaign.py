"""From folders of raw logs to a campaign: find files, cut and read them, keep every run with its text, report on all.

An imported campaign is a campaign directory like any other. Its "rounds" are the runs of the same work in one
environment, in the order of their own times or of their files; nothing was randomised, as its plan says (`origin`).
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from vtax.analysis.claims import Claims
from vtax.errors import StoreError, UsageError
from vtax.importing.files import NOWHERE, LogImporter
from vtax.importing.plan import plan_of
from vtax.importing.recipe import Recipe, requests
from vtax.importing.records import count_once
from vtax.importing.report import Report
from vtax.importing.request import Request, check, nowhere
from vtax.importing.saving import STAGING, is_new, save, undo_interrupted
from vtax.model.trial import TrialRecord
from vtax.store import Campaign
from vtax.tools import tools


def import_logs(request: Request, directory: Path) -> Report:
    """Import everything below the paths into `directory`, new or an imported campaign.

    Raises UsageError when nothing could be imported, or when another import adds to it now; the campaign is then as
    it was.
    """
    check(request)
    created = not directory.exists()
    _refuse_other(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with Campaign(directory).exclusive():
            return _import(request, directory)
    except OSError as error:
        raise StoreError(f"{directory} cannot be written: {error.strerror}", remedy="choose another one") from error
    finally:
        if created and directory.exists() and set(directory.iterdir()) == {directory / ".lock"}:
            shutil.rmtree(directory)


def _import(request: Request, directory: Path) -> Report:
    """Import while no other process writes into the campaign."""
    undo_interrupted(directory)
    campaign, old = _existing(directory)
    seen = {trial.imported.sha256: trial for trial in old if trial.imported}
    staging = directory / STAGING
    try:
        _make(staging)
        importer = LogImporter(request, staging, seen, {trial.id for trial in old})
        report = Report(directory, importer.files(), request.origin)
        count_once(report.runs, old)
        if not report.taken:
            if not request.environment and not request.layout and all(file.reason == NOWHERE for file in report.files):
                raise nowhere()
            raise NothingImported(
                "nothing could be imported",
                report,
                detail="\n".join(reasons(report)[:20]),
                remedy="state columns that the files have, with --table"
                if request.table
                else f"give a folder with output of {_known()}",
            )
        save(campaign or Campaign(directory), report, old, request)
    except BaseException:
        undo_interrupted(directory)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return report


def import_recipe(
    recipe: Recipe, folder: Path, directory: Path, claims: Claims | None = None, processes: int = 1
) -> list[Report]:
    """All imports of a recipe, one after the other into one campaign, which must be new. One of which nothing can be
    read is reported among the others. Raises UsageError for a baseline that has no runs, and where nothing was read."""
    if directory.exists() and not is_new(directory):
        raise UsageError(f"{directory} exists", remedy="a recipe makes a campaign of its own: give another --into")
    reports: list[Report] = []
    failures: list[NothingImported] = []
    for request in requests(recipe, folder):
        try:
            reports.append(import_logs(replace(request, claims=claims, processes=processes), directory))
        except NothingImported as error:
            failures.append(error)
            reports.append(error.report)
    if len(failures) == len(reports):
        raise failures[0]
    _rebase(Campaign.open(directory), recipe.baseline)
    return reports


def _rebase(campaign: Campaign, baseline: str) -> None:
    """Compare the environments of an imported campaign with another one."""
    before = campaign.plan()
    if baseline not in {spec.name for spec in before.environments}:
        raise UsageError(f"nothing of the recipe's baseline {baseline!r} was read", remedy="see what was refused above")
    with campaign.exclusive():
        plan, _ = plan_of(before.study.name, campaign.trials(texts=False), baseline, before.problems)
        campaign.save("plan.json", (plan.model_dump_json(indent=1) + "\n").encode())


def _known() -> str:
    """The tools whose logs are read."""
    return ", ".join(tool.name for tool in tools() if tool.logs)


class NothingImported(UsageError):
    """No value could be taken; the report says of each file why."""

    def __init__(self, message: str, report: Report, *, detail: str, remedy: str) -> None:
        super().__init__(message, detail=detail, remedy=remedy)
        self.report = report


def reasons(report: Report) -> list[str]:
    """Why files and runs were left out, one line each."""
    found = [f"{file.file}: {file.reason}" for file in report.files if file.reason]
    found += [f"{run.where}: {run.left_out}" for run in report.runs if run.left_out]
    for run in report.runs:
        if not run.left_out and not run.count:
            found += [f"{run.file} line {one.line}: {one.what}: {one.reason}" for one in run.reading.refusals[:1]]
    return found


def _refuse_other(directory: Path) -> None:
    """Raise UsageError for what cannot become a campaign, before a lock is put there."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", remedy="choose another one")
    if directory.exists() and not is_new(directory):
        Campaign.open(directory)


def _existing(directory: Path) -> tuple[Campaign | None, tuple[TrialRecord, ...]]:
    """The campaign that is to be extended, and its trials; none for a new directory."""
    if is_new(directory):
        return None, ()
    campaign = Campaign.open(directory)
    if campaign.plan().origin != "imported":
        raise UsageError(f"{directory} is a campaign that vtax ran itself", remedy="import into a separate directory")
    return campaign, campaign.trials(texts=False)


def _make(staging: Path) -> None:
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
    except OSError as error:
        raise StoreError(
            f"{staging.parent} cannot be written: {error.strerror}", remedy="choose another one"
        ) from error
