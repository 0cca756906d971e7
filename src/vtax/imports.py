"""From folders of raw logs to a campaign: find files, cut and read them, keep every run with its text, report on all.

An imported campaign is a campaign directory like any other. Its "rounds" are the runs of the same work in one
environment, in the order of their own times or of their files; nothing was randomised, and its plan says so (`origin`).
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from vtax import __version__
from vtax.errors import StoreError, UsageError
from vtax.export import read_table
from vtax.import_plan import plan_of
from vtax.import_report import FileReport, Report, Run, table_of
from vtax.importers import ranks, source, table
from vtax.importers.commands import words_of
from vtax.importers.readers import read
from vtax.importers.records import Reading, Section
from vtax.importers.sections import cut
from vtax.model import Imported, Problem, Scope, Severity, Status, StepRecord, TrialRecord
from vtax.store import Campaign, write_atomic

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")
TEXT = "log.txt"
TABLE_BYTES = 512 * 2**20
NOWHERE = "nobody said where it ran"
VALUES_LISTED = 50_000  # in the machine-readable table; all of them are in the campaign
STUDY = "# This campaign was imported from logs; nobody planned it, so there is no study.\n"
SAME = 0.02  # of two sides of one network test


@dataclass(frozen=True)
class Request:
    """What the user asked for. One of `environment` and `layout` says where a file belongs."""

    paths: tuple[Path, ...]
    environment: str = ""
    layout: str = ""
    benchmark: str = ""
    baseline: str = ""


def import_logs(request: Request, directory: Path) -> Report:
    """Import everything below the paths into `directory`, new or an imported campaign.

    Raises UsageError when nothing could be imported; the campaign is then as it was.
    """
    _check(request)
    campaign, old = _existing(directory)
    seen = {trial.imported.sha256: trial for trial in old if trial.imported}
    staging = directory / ".import"
    created = not directory.exists()
    try:
        _make(staging)
        report = Report(directory, list(_files(request, staging, seen, {trial.id for trial in old})))
        _both_sides(report.runs, old)
        if not any(run for run in report.runs if not run.left_out):
            if not request.environment and not request.layout and all(file.reason == NOWHERE for file in report.files):
                raise _nowhere()
            raise UsageError(
                "nothing could be imported",
                detail="\n".join(reasons(report)[:20]),
                remedy="give a folder with output of hpcc, HPL, stress-ng, sysbench, iozone, iperf3 or ping",
            )
        _save(campaign or Campaign(directory), report, old, request)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if created and directory.exists() and not any(directory.iterdir()):
            directory.rmdir()
    return report


def reasons(report: Report) -> list[str]:
    """Why files and runs were left out, one line each."""
    found = [f"{file.file}: {file.reason}" for file in report.files if file.reason]
    found += [f"{run.where}: {run.left_out}" for run in report.runs if run.left_out]
    return found


def _check(request: Request) -> None:
    if request.environment and request.layout:
        raise _nowhere()
    if request.environment and NAME.match(request.environment) is None:
        raise UsageError(f"{request.environment!r} is no name for an environment", remedy="letters, digits, . _ and -")
    if request.layout and request.layout.count("{environment}") != 1:
        raise UsageError("--layout has no {environment}", remedy="for example --layout 'results/{environment}/**'")
    for path in request.paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist", remedy="give files or folders")


def _nowhere() -> UsageError:
    return UsageError(
        "say to which environment the files belong, in one way",
        remedy="--environment NAME for all, or --layout 'results/{environment}/**' to read it from the paths; only "
        "tables of vtax export say it themselves",
    )


def _existing(directory: Path) -> tuple[Campaign | None, tuple[TrialRecord, ...]]:
    """The campaign that is to be extended, and its trials; none for a new directory."""
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return None, ()
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", remedy="choose another one")
    campaign = Campaign.open(directory)
    if campaign.plan().origin != "imported":
        raise UsageError(f"{directory} is a campaign that vtax ran itself", remedy="import into a directory of its own")
    return campaign, campaign.trials(texts=False)


def _make(staging: Path) -> None:
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
    except OSError as error:
        raise StoreError(
            f"{staging.parent} cannot be written: {error.strerror}", remedy="choose another one"
        ) from error


def _files(request: Request, staging: Path, seen: dict[str, TrialRecord], trials: set[str]) -> Iterator[FileReport]:
    """Read every file. `seen` are the checksums of what is imported already, `trials` the names that are taken."""
    inside = staging.parent.resolve()
    listed = 0
    hashes: dict[str, str] = {}
    for found in source.find(list(request.paths)):
        if found.path.absolute().is_relative_to(inside):
            continue  # the campaign itself
        report = FileReport(found.shown, reason=found.refused)
        yield report
        if report.reason:
            continue
        if kind := _table_format(found.path):
            _read_table(report, found, kind, request, staging, seen, hashes, trials)
            continue
        if not request.environment and not request.layout:
            report.reason = NOWHERE
            continue
        report.environment = request.environment or environment_of(request.layout, found.path, found.shown)
        if not report.environment:
            report.reason = f"its path does not fit --layout {request.layout!r}"
            continue
        text = source.opened(found)
        if isinstance(text, str):
            report.reason = text
            continue
        try:
            report.sha256 = text.sha256()
            if twin := _twin(report, seen, hashes):
                report.reason = twin
                continue
            hashes[report.sha256] = f"{report.environment}: {report.file}"
            raw = f"raw/{report.sha256[:16]}-{slug(found.path.name)}"
            for section in cut(text.lines()):
                run = _run(report, section, raw, staging, request.benchmark)
                report.runs.append(run)
                if listed < VALUES_LISTED and not run.left_out:
                    run.values = [
                        {"metric": m.name, "value": value, "unit": m.unit, "labels": dict(labels), "lines": list(lines)}
                        for m, value, labels, lines in ranks.combined(run.reading)
                    ]
                    listed += len(run.values)
                run.reading.values.clear()
            if report.runs:
                (staging / "raw").mkdir(exist_ok=True)
                text.copy(staging / raw)
        except OSError as error:
            report.reason = f"it cannot be read: {error.strerror or error}"
            report.runs.clear()
        report.damaged_lines = text.damaged
        if not report.runs and not report.reason:
            report.reason = "no output of a benchmark that vtax knows"


def _table_format(path: Path) -> str:
    """Which of vtax's own tables a file is; "" for none."""
    try:
        with path.open("rb") as stream:
            return table.format_of(stream.read(256))
    except OSError:
        return ""  # it is opened again, and then the reason is told


def _read_table(
    report: FileReport,
    found: source.Found,
    kind: str,
    request: Request,
    staging: Path,
    seen: Mapping[str, TrialRecord],
    hashes: dict[str, str],
    trials: set[str],
) -> None:
    """Take a table of `vtax export` whole, or refuse it with the row that is wrong."""
    if request.environment:
        report.reason = f"a table says its environments itself: import it without --environment {request.environment}"
        return
    try:
        if found.path.stat().st_size > TABLE_BYTES:
            report.reason = f"a table larger than {TABLE_BYTES // 2**20} MiB: export parts of it"
            return
        data = found.path.read_bytes()
    except OSError as error:
        report.reason = f"it cannot be read: {error.strerror or error}"
        return
    report.sha256 = hashlib.sha256(data).hexdigest()
    raw = f"raw/{report.sha256[:16]}-{slug(found.path.name)}"
    try:
        made = table.trials_of(read_table(data, kind, found.shown), found.shown, report.sha256, raw)
    except UsageError as error:
        report.reason = error.message.removeprefix(f"{found.shown}: ")
        return
    clash = next((record.id for record, _ in made if record.id in trials), "")
    report.reason = _twin(report, seen, hashes) or (
        f"trial {clash} is there already: import it into another campaign" if clash else ""
    )
    if not made:
        report.reason = "a table without a row"
    if report.reason:
        return
    hashes[report.sha256] = report.file
    trials.update(record.id for record, _ in made)
    report.environment = ", ".join(dict.fromkeys(record.environment for record, _ in made))
    for record, texts in made:
        report.runs.append(_of_table(report, record, texts, staging, request.benchmark))
    (staging / "raw").mkdir(exist_ok=True)
    (staging / raw).write_bytes(data)


def _of_table(report: FileReport, record: TrialRecord, texts: Mapping[str, str], staging: Path, wanted: str) -> Run:
    """One trial of a table; its rows go to the disk."""
    place = staging / "trials" / record.id
    place.mkdir(parents=True)
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    assert record.imported is not None
    run = Run(
        environment=record.environment,
        file=report.file,
        sha256=report.sha256,
        raw=record.imported.raw,
        section=(table.READER, record.imported.first_line, record.imported.last_line),
        reading=Reading(record.benchmark),
        place=place,
        trial=record.id,
        count=sum(text.count("\n") for text in texts.values()),
        record=record,
    )
    if wanted and wanted not in (record.benchmark, record.benchmark.partition("-")[0]):
        run.left_out = f"it is {record.benchmark}, and --benchmark {wanted} was given"
    return run


def _twin(report: FileReport, seen: Mapping[str, TrialRecord], hashes: Mapping[str, str]) -> str:
    """Why a file with these bytes is not read; "" for new ones."""
    old = seen.get(report.sha256)
    if old is not None and old.imported is not None:
        return f"U03: the same bytes were imported before ({old.environment}: {old.imported.file}); not counted twice"
    if report.sha256 in hashes:
        return f"U03: the same bytes as {hashes[report.sha256]}; not counted twice"
    return ""


def _run(report: FileReport, section: Section, raw: str, staging: Path, wanted: str) -> Run:
    """One run, read; its text goes to the disk and out of memory."""
    reading = read(section)
    place = staging / "trials" / trial_id(report.environment, reading, report.sha256, section)
    place.mkdir(parents=True)
    with (place / TEXT).open("wb") as stream:
        stream.write(section.text.encode("utf-8", "replace"))
    run = Run(
        environment=report.environment,
        file=report.file,
        sha256=report.sha256,
        raw=raw,
        section=(section.tool, section.first, section.last),
        reading=reading,
        place=place,
        trial=place.relative_to(staging / "trials").as_posix(),
        count=len(reading.values),
    )
    if reading.beside:
        run.left_out = reading.beside
    elif wanted and wanted not in (reading.benchmark, reading.benchmark.partition("-")[0]):
        run.left_out = f"it is {reading.benchmark}, and --benchmark {wanted} was given"
    return run


def trial_id(environment: str, reading: Reading, sha256: str, section: Section) -> str:
    """Where a run stands in a campaign: the same run of the same file always has the same place."""
    return f"{environment}/{slug(reading.benchmark)}-{sha256[:12]}-{section.first}"


def environment_of(layout: str, path: Path, shown: str) -> str:
    """The environment that a path has in a layout; "" when it does not fit. `*` is one part of a path, `**` many."""
    parts = re.split(r"(\{environment\}|\*\*|\*)", layout.strip("/"))
    words = {"{environment}": "(?P<environment>[^/]+)", "**": ".*", "*": "[^/]*"}
    pattern = "".join(words.get(part, re.escape(part)) for part in parts)
    for text, prefix in ((shown, ""), (path.as_posix(), ""), (path.absolute().as_posix(), "(?:.*/)?")):
        if found := re.fullmatch(f"{prefix}{pattern}", text):
            return slug(found["environment"])
    return ""


def slug(text: str) -> str:
    """A name that is safe in a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:60] or "x"


def _both_sides(runs: Sequence[Run], old: Iterable[TrialRecord]) -> None:
    """Client and server both log one test of iperf3: it counts once, by the client's log where there is one."""
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
            told = f"{before[key].file} line {before[key].first_line}"
            for run in sides:
                run.left_out = f"the other side of the test in {told}, which is imported already"
            continue
        ordered = sorted(sides, key=lambda run: (not run.count, run.reading.facts["side"] != "client"))
        for run in ordered[1:]:
            rates = [
                value["value"] for side in (ordered[0], run) for value in side.values if value["metric"] == "throughput"
            ]
            alike = len(rates) < 2 or abs(rates[0] - rates[1]) <= SAME * max(rates)
            note = "" if alike else f", though they differ: {rates[0]:.4g} and {rates[1]:.4g} bit/s"
            run.left_out = (
                f"the same test as {ordered[0].where}, seen from the {run.reading.facts['side']}: counted once{note}"
            )


def _save(campaign: Campaign, report: Report, old: tuple[TrialRecord, ...], request: Request) -> None:
    """Number the runs, give every trial its place, then write the plan that names them all.

    Only what is written last is flushed to the disk: should the machine fail, the logs are still there to import again.
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
        _move(directory / ".import" / "raw", directory / "raw", {Path(run.raw).name for run in runs})
        for group in {run.trial.partition("/")[0] for run in runs}:
            mine = {Path(run.trial).name for run in runs if run.trial.partition("/")[0] == group}
            _move(directory / ".import" / "trials" / group, directory / "trials" / group, mine)
        (directory / "cells").mkdir(exist_ok=True)
        for cell in cells:
            text = cell.model_dump_json(indent=1) + "\n"
            (directory / "cells" / f"{cell.cell}.{cell.instance}.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{directory} cannot be written: {error.strerror}", remedy="free some space") from error
    if earlier is None:
        about = {"id": secrets.token_hex(4), "vtax_version": __version__, "created": _now(), "host": {}, "image": IMAGE}
        write_atomic(directory / "study.toml", STUDY.encode())
        campaign.save("campaign.json", {**about, "origin": "imported"})
    campaign.save("imports.json", (json.dumps([*_tables(directory), table_of(report, values=False)]) + "\n").encode())
    campaign.save("plan.json", (plan.model_dump_json(indent=1) + "\n").encode())


def _move(source_: Path, target: Path, names: set[str]) -> None:
    """Move entries into a directory that may exist already."""
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        (source_ / name).rename(target / name)


def _tables(directory: Path) -> list[Any]:
    """What earlier imports into the same campaign found; nothing when that cannot be read."""
    try:
        tables = json.loads((directory / "imports.json").read_bytes())
    except (OSError, ValueError):
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
    counted: Counter[tuple[str, str, str]] = Counter()
    for trial in old:
        if trial.imported is not None:
            key = (trial.environment, trial.label, str(trial.imported.facts.get("direction", "")))
            counted[key] = max(counted[key], trial.round)
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.record is None:
            groups[run.work].append(run)
    numbers: dict[int, int] = {}
    for key, group in groups.items():
        timed = all(run.reading.started is not None for run in group)
        ordered = sorted(group, key=lambda run: run.reading.started or 0.0) if timed else group
        for run in ordered:
            counted[key] += 1
            numbers[id(run)] = counted[key]
    return [run.record or _record(run, numbers[id(run)]) for run in runs]


def _record(run: Run, number: int) -> TrialRecord:
    """One run as a trial."""
    reading, (reader, first, last) = run.reading, run.section
    cell = f"{run.environment}.r{number:03d}"
    facts: dict[str, JsonValue] = {**reading.facts, "ranks": reading.ranks, "direction": reading.direction}
    if reading.started is not None:
        facts["started"] = reading.started
    refused = tuple(f"line {r.line}: {r.what}: {r.reason}" for r in reading.refusals)
    command = str(facts.get("command") or facts.get("invoked") or facts.get("iozone_command") or "")
    started, elapsed_s = reading.started or 0.0, reading.elapsed_s or 0.0
    step = StepRecord(
        step=0,
        node=reading.nodes[0] if reading.nodes else "log",
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
        work=slug(f"{reading.label} {reading.direction}".strip())[:60],
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
        ),
    )
