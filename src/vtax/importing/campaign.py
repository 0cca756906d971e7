"""From folders of raw logs to a campaign: find files, cut and read them, keep every run with its text, report on all.

An imported campaign is a campaign directory like any other. Its "rounds" are the runs of the same work in one
environment, in the order of their own times or of their files; nothing was randomised, as its plan says (`origin`).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from vtax import __version__, files
from vtax.analysis.claims import Claims
from vtax.errors import StoreError, UsageError
from vtax.importing.csv_rows import checked
from vtax.importing.files import NOWHERE, TEXT, LogImporter, Request
from vtax.importing.layout import ENVIRONMENT, Layout, slug
from vtax.importing.plan import plan_of
from vtax.importing.recipe import Recipe, requests
from vtax.importing.report import Report, Run, labels_text, table_of
from vtax.importing.source import STANDARD_INPUT
from vtax.model.finding import Problem, Severity
from vtax.model.nodes import Scope
from vtax.model.trial import Imported, Status, StepRecord, TrialRecord
from vtax.store import CLAIMS, Campaign
from vtax.tools import benchmarks, tools
from vtax.tools.commands import words_of

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")
STUDY = "# This campaign was imported from logs; it was not planned, so there is no study.\n"
STAGING = ".import"  # in the campaign, while an import lasts
BEFORE_THE_PLAN = ("study.toml", "campaign.json", "imports.json")  # in a new campaign
SAME = 0.02  # of two sides of one network test


def import_logs(request: Request, directory: Path) -> Report:
    """Import everything below the paths into `directory`, new or an imported campaign.

    Raises UsageError when nothing could be imported, or when another import adds to it now; the campaign is then as
    it was.
    """
    _check(request)
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
    _undo_interrupted(directory)
    campaign, old = _existing(directory)
    seen = {trial.imported.sha256: trial for trial in old if trial.imported}
    staging = directory / STAGING
    try:
        _make(staging)
        importer = LogImporter(request, staging, seen, {trial.id for trial in old})
        report = Report(directory, list(importer.files()), request.origin)
        _both_sides(report.runs, old)
        if not report.taken:
            if not request.environment and not request.layout and all(file.reason == NOWHERE for file in report.files):
                raise _nowhere()
            raise NothingImported(
                "nothing could be imported",
                report,
                detail="\n".join(reasons(report)[:20]),
                remedy="state columns that the files have, with --table"
                if request.table
                else f"give a folder with output of {_known()}",
            )
        _save(campaign or Campaign(directory), report, old, request)
    except BaseException:
        _undo_interrupted(directory)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return report


def import_recipe(recipe: Recipe, folder: Path, directory: Path, claims: Claims | None = None) -> list[Report]:
    """All imports of a recipe, one after the other into one campaign, which must be new. One of which nothing can be
    read is reported among the others. Raises UsageError for a baseline that has no runs, and where nothing was read."""
    if directory.exists() and not _is_new(directory):
        raise UsageError(f"{directory} exists", remedy="a recipe makes a campaign of its own: give another --into")
    reports: list[Report] = []
    failures: list[NothingImported] = []
    for request in requests(recipe, folder):
        try:
            reports.append(import_logs(replace(request, claims=claims), directory))
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


def _check(request: Request) -> None:
    known = tuple(dict.fromkeys((*(tool.name for tool in tools()), *benchmarks())))
    if request.benchmark and request.benchmark not in known:
        raise UsageError(f"no benchmark {request.benchmark!r} is known here", remedy=f"one of {', '.join(known)}")
    if request.environment and NAME.match(request.environment) is None:
        raise UsageError(
            f"{request.environment!r} is not a valid name for an environment", remedy="use letters, digits, . _ and -"
        )
    _check_stated(request)
    for path in request.paths:
        if path != STANDARD_INPUT and not path.exists():
            raise UsageError(f"{path} does not exist", remedy="give files or folders")


def _check_stated(request: Request) -> None:
    """Raise UsageError for a layout or a unit that means nothing."""
    layout = Layout(request.layout)
    layout.check()
    names = layout.names
    if request.table:
        given = bool(request.environment) or ENVIRONMENT in names
        checked(request.table, {*request.labels, *names}, elsewhere=given)
        if request.environment and ENVIRONMENT in names:
            raise _nowhere()
    elif request.layout and (ENVIRONMENT in names) == bool(request.environment):
        raise _nowhere()
    for name in request.labels.keys() & set(names):
        raise UsageError(f"--label {name} is also in --layout", remedy="state it in one of them")
    units = {tool.name: {unit for one in tool.logs for unit in one.units} for tool in tools()}
    known = [f"{name}={unit}" for name, several in units.items() for unit in sorted(several)]
    for name, unit in request.units.items():
        if unit not in units.get(name, ()):
            raise UsageError(f"--unit {name}={unit} cannot be stated", remedy=f"one of {', '.join(known)}")


def _nowhere() -> UsageError:
    return UsageError(
        "give the environment of the files, in one way",
        remedy="--environment NAME for all, or --layout 'results/{environment}/**' to read it from the paths, with "
        "{environment} in it once; only tables of vtax export contain it",
    )


def _refuse_other(directory: Path) -> None:
    """Raise UsageError for what cannot become a campaign, before a lock is put there."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", remedy="choose another one")
    if directory.exists() and not _is_new(directory):
        Campaign.open(directory)


def _is_new(directory: Path) -> bool:
    """Whether nothing is in a directory but what an import puts there before it writes the plan."""
    names = {path.name for path in directory.iterdir()}
    return names <= {".lock", STAGING} or (STAGING in names and "plan.json" not in names)


def _undo_interrupted(directory: Path) -> None:
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


def _existing(directory: Path) -> tuple[Campaign | None, tuple[TrialRecord, ...]]:
    """The campaign that is to be extended, and its trials; none for a new directory."""
    if _is_new(directory):
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


def _both_sides(runs: Sequence[Run], old: Iterable[TrialRecord]) -> None:
    """If both ends logged one test, it counts once, by the client's log where there is one.

    Runs are of one test when the fact `connection` of both is the same: the addresses and ports of its ends.
    """
    tests: dict[tuple[str, str], list[Run]] = defaultdict(list)
    before = {
        (trial.environment, str(trial.imported.facts["connection"])): trial.imported
        for trial in old
        if trial.imported and "connection" in trial.imported.facts
    }
    for run in runs:
        if "connection" in run.reading.facts and not run.left_out:
            tests[run.environment, str(run.reading.facts["connection"])].append(run)
    for key, sides in tests.items():
        if key in before:
            earlier = f"{before[key].file} line {before[key].first_line}"
            for run in sides:
                run.left_out = f"the other side of the test in {earlier}, which is imported already"
            continue
        ordered = sorted(sides, key=lambda run: (not run.count, run.reading.facts.get("side") != "client"))
        for run in ordered[1:]:
            side = run.reading.facts.get("side", "other side")
            run.left_out = (
                f"the same test as {ordered[0].where}, seen from the {side}: counted once{_differing(ordered[0], run)}"
            )


def _differing(one: Run, other: Run) -> str:
    """What to add where two sides of one test saw different results, of which the first value is the main one."""
    if not (one.values and other.values) or one.values[0]["metric"] != other.values[0]["metric"]:
        return ""
    ours, theirs = one.values[0]["value"], other.values[0]["value"]
    alike = abs(ours - theirs) <= SAME * max(ours, theirs)
    return "" if alike else f", though they differ: {ours:.4g} and {theirs:.4g} {one.values[0]['unit']}"


def _save(campaign: Campaign, report: Report, old: tuple[TrialRecord, ...], request: Request) -> None:
    """Number the runs, give every trial its place, then write the plan that names them all.

    Only what is written last is flushed to disk: if the machine fails, the logs can be imported again.
    """
    runs = [run for run in report.runs if not run.left_out]
    records = _records(runs, old)
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
    """Move entries into a directory that may exist already."""
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


def _records(runs: Sequence[Run], old: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The records of all runs. Those of the same work are numbered by time where all have one, else by file."""
    counted: Counter[tuple[str, ...]] = Counter()
    for trial in old:
        if trial.imported is not None:
            direction, stated = str(trial.imported.facts.get("direction", "")), labels_text(trial.imported.labels)
            key: tuple[str, ...] = (trial.environment, trial.label, direction, trial.imported.source, stated)
            counted[key] = max(counted[key], trial.round)
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if run.record is None:
            groups[run.work].append(run)
    numbers: dict[int, int] = {}
    for key, group in groups.items():
        timed = all(run.reading.started is not None for run in group)
        ordered = sorted(group, key=lambda run: run.reading.started or 0.0) if timed else sorted(group, key=_round)
        for run in ordered:
            counted[key] += 1
            numbers[id(run)] = counted[key]
    return [run.record or _record(run, numbers[id(run)]) for run in runs]


def _round(run: Run) -> int:
    """What a column of a table says; the same for all others, which stay in the order of their files."""
    stated = run.reading.facts.get("round", 0)
    return stated if isinstance(stated, int) else 0


def work_id(*parts: str) -> str:
    """A name for what repeats each other. A long one ends with a digest, so that two long ones stay two."""
    text = " ".join(filter(None, parts))
    return slug(text) if len(text) <= 60 else f"{slug(text[:50])}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _record(run: Run, number: int) -> TrialRecord:
    """One run as a trial."""
    reading, (reader, first, last) = run.reading, run.section
    cell = f"{run.environment}.r{number:03d}"
    facts: dict[str, JsonValue] = {**reading.facts, "ranks": reading.ranks, "direction": reading.direction}
    if reading.started is not None:
        facts["started"] = reading.started
    refused = tuple(f"line {r.line}: {r.what}: {r.reason}" for r in reading.refusals)
    command = str(facts.get("command") or facts.get("invoked") or "")
    started, elapsed_s = max(0.0, reading.started or 0.0), reading.elapsed_s or 0.0  # 0 where not logged
    step = StepRecord(
        step=0,
        node=reading.nodes[0] if reading.nodes else run.source or "log",
        argv=tuple(words_of(command)) if command else (),
        exit_code=0,
        timed_out=False,
        background=False,
        started=started,
        elapsed_s=elapsed_s,
        stdout=TEXT,
        stderr=TEXT,
    )
    return TrialRecord(
        id=run.trial,
        environment=run.environment,
        round=number,
        cell=cell,
        work=work_id(reading.label, reading.direction, run.source, labels_text(run.labels)),
        benchmark=reading.benchmark,
        label=reading.label,
        scope=reading.scope if reading.nodes or reading.scope is not Scope.PAIRS else Scope.CLUSTER,
        nodes=reading.nodes,
        iteration=1,
        warmup=False,
        params=reading.params,
        status=Status.OK if run.count else Status.FAILED,
        failure="" if run.count else f"nothing could be taken from {run.where}: {'; '.join(refused)[:400]}",
        started=started,
        elapsed_s=elapsed_s,
        steps=(step,),
        imported=Imported(
            file=run.file,
            sha256=run.sha256,
            raw=run.raw,
            first_line=first,
            last_line=last,
            reader=reader,
            facts=facts,
            refused=refused,
            source=run.source,
            pieces=run.pieces,
            labels=run.labels,
            unit=run.unit,
            table=run.table,
        ),
    )
