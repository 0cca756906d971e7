"""The study of a campaign that somebody else ran, for this machine, and what of it cannot be the same here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vtax import files
from vtax.analysis.campaigns.records import SetupDifference
from vtax.analysis.campaigns.setup_differences import Setup, setup_differences
from vtax.errors import UsageError
from vtax.facts.host import host_facts
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.study import Study
from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.planning.preparation import Prepared, cached_image
from vtax.planning.presets import STUDY_BYTES
from vtax.providers import runners
from vtax.sealing.contents import put
from vtax.store import Campaign

STUDY = "study.toml"
NOT_BUILT = "not built here yet"


def study_folder(campaign: Campaign, directory: Path) -> Path:
    """Write the study of a campaign and the files that its commands need into a directory. Returns the study's file.

    Raises UsageError for an imported campaign, which has no study, and for a directory that is not empty.
    """
    plan = campaign.plan()
    if plan.origin is Origin.IMPORTED:
        raise UsageError(
            "the campaign was imported from logs, so it has no study", remedy="write one: `vtax init` makes an example"
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not an empty directory", remedy="give another one to --into")
    put(directory, STUDY, files.read(campaign.directory, STUDY, STUDY_BYTES))
    for name, sha256 in files_of(plan.study):
        put(directory, name, campaign.kept(sha256))
    return directory / STUDY


def files_of(study: Study) -> Iterator[tuple[str, str]]:
    """The files of a study's folder, each with its hash."""
    for entry in study.benchmarks:
        tables = entry.params.get("files")
        for table in tables if isinstance(tables, list) else ():
            if isinstance(table, dict) and table.get("sha256"):
                yield str(table["from"]), str(table["sha256"])


def differences(campaign: Campaign, prepared: Prepared, paths: Paths) -> tuple[SetupDifference, ...]:
    """What the plan for this machine (B) and this machine itself do not have in common with a campaign (A)."""
    plan, about = campaign.plan(), campaign.about()
    here = tuple(
        CellRecord(
            cell=spec.name,
            environment=spec.name,
            round=1,
            instance=1,
            status=Status.NOT_RUN,
            started=0.0,
            provision_s=0.0,
            host_facts=host_facts(runners=runners()),
        )
        for spec in prepared.plan.environments[:1]
    )
    image = cached_image(prepared.plan.study, paths)
    known = image.model_dump(mode="json") if image else {**about["image"], "digest": NOT_BUILT}
    names = [spec.name for spec in plan.environments if spec.name in prepared.providers]
    there = Setup("", plan, about, campaign.cells())
    found = setup_differences(there, Setup("", prepared.plan, {**about, "image": known}, here), names)
    return (*_missing(prepared), *found)


def _missing(prepared: Prepared) -> Iterator[SetupDifference]:
    for name in prepared.providers:
        for problem in prepared.blockers(name):
            what = f"environment {name}"
            yield SetupDifference(what=what, a="measured", b=problem.message, severity=Severity.BLOCKER)
