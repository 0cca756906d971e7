"""One log: cut into runs, each read and kept with its text. Nothing here knows of other files, so that several
processes can read at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vtax.errors import PLUGIN_FAILURES, StoreError
from vtax.importing import source
from vtax.importing.csv_rows import Row, Rows
from vtax.importing.layout import slug
from vtax.importing.report import FileReport, Run
from vtax.importing.sections import cut
from vtax.store import writing
from vtax.tools import ranks, tool_of, tools
from vtax.tools.reading import Reading, Section
from vtax.tools.stated import STATED, statement_of
from vtax.tools.trials import failed, read_section

TEXT = "log.txt"
RUNS = 10_000  # of one file
VALUES_LISTED = 50_000  # in the machine-readable table; all of them are in the campaign


@dataclass(frozen=True)
class Job:
    """A log and what is stated of it: all that reading it takes."""

    report: FileReport  # as far as it is known
    text: source.Text
    raw: str  # where the file will be in the campaign
    staging: Path
    benchmark: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    table: tuple[str, ...] = ()
    listing: bool = True  # whether values go into the machine-readable table
    trials: Counter[str] = field(default_factory=Counter)  # of which there are so many


def read_log(job: Job) -> FileReport:
    """What became of a log. Its runs are in the staging directory then."""
    report, text = job.report, job.text
    try:
        if job.table:
            _rows(job)
        else:
            _runs(job)
        if report.runs:
            text.copy(job.staging / job.raw)
    except StoreError:
        raise
    except OSError as error:
        report.reason = f"it cannot be read: {error.strerror or error}"
        report.runs.clear()
    except MemoryError:
        report.reason = "there is not enough memory to read it: split it"
        report.runs.clear()
    except PLUGIN_FAILURES as error:
        report.reason = failed(error)
    report.damaged_lines = text.damaged
    if not report.runs and not report.reason:
        report.reason = "no output of a benchmark that vtax knows"
    return report


def _runs(job: Job) -> None:
    """The runs of a log. Code that fails ends its file, with what was found until then, and not the import."""
    report = job.report
    try:
        for section in cut(job.text.lines(), report.account.outside):
            if len(report.runs) == RUNS:
                report.reason = f"it has more than {RUNS} runs, and only these were read: split it"
                break
            report.runs.append(_run(job, section))
    except (OSError, StoreError):  # not the fault of the log
        raise
    except PLUGIN_FAILURES as error:
        report.reason = failed(error)


def _rows(job: Job) -> None:
    """The rows of a table whose columns were stated, each a run."""
    report, text = job.report, job.text
    if damaged := text.lone_return():
        report.reason = f"line {damaged}: a carriage return inside of a line: where its rows end is unknown"
        return
    rows = Rows(statement_of(job.table), job.table, text.lines(), text.ends_line(), report.account.outside)
    for row in rows:
        if len(report.runs) == RUNS:
            rows.problem = f"it has more than {RUNS} rows, and only these were read: split it"
            break
        report.runs.append(_run(job, row.section, row))
    others = f"columns that are not taken: {', '.join(rows.unread)[:500]}" if rows.unread else ""
    report.reason = "; ".join(filter(None, (rows.problem, others)))
    if not report.runs and not rows.problem:
        report.reason = "a table without rows"
    environments = dict.fromkeys(run.environment for run in report.runs if not run.left_out)
    report.environment = ", ".join(environments) or report.environment


def _run(job: Job, section: Section, row: Row | None = None) -> Run:
    """One run, read; its text goes to the disk, and that and its values out of memory."""
    report, unit = job.report, _unit(section.tool, job.units)
    environment = (row.environment if row else "") or report.environment
    section = section._replace(labels={**report.labels, **section.labels}, unit=unit)
    reading = Reading(STATED) if row and row.refused else read_section(section)
    body = section._replace(lines=section.lines[1:]) if row else section  # without the header
    if row and row.refused:
        reading.refuse(body.first, "the row", row.refused, 0)
    trial = trial_id(environment or "none", reading, report.sha256, body)
    job.trials[trial] += 1
    if job.trials[trial] > 1:  # objects of JSON that begin on one line
        trial = f"{trial}-{job.trials[trial]}"
    place = job.staging / "trials" / trial
    with writing(place):
        place.mkdir(parents=True)
        (place / TEXT).write_bytes(section.text.encode("utf-8", "replace"))
    report.account.run(body, reading)
    pieces = section.pieces
    run = Run(
        environment=environment,
        file=report.file,
        sha256=report.sha256,
        raw=job.raw,
        section=(section.tool, body.first, body.last),
        reading=reading,
        place=place,
        trial=trial,
        count=len(reading.values),
        source=section.source,
        pieces=pieces if len(pieces) > 1 or row else (),
        labels=section.labels,
        unit=unit,
        table=section.table,
    )
    run.left_out = (row.refused if row else "") or reading.no_test or unwanted(reading.benchmark, job.benchmark)
    if job.listing and not run.left_out:
        run.values = [
            {"metric": m.name, "value": value, "unit": m.unit, "labels": dict(labels), "lines": list(lines)}
            for m, value, labels, lines in ranks.combined(reading)
        ]
    reading.values.clear()
    return run


def _unit(format_: str, stated: Mapping[str, str]) -> str:
    """The unit that was stated for a format of logs; "" for none."""
    for tool in tools() if stated else ():
        for one in tool.logs:
            if one.name == format_:
                return one.units.get(stated.get(tool.name, ""), "")
    return ""


def unwanted(benchmark: str, wanted: str) -> str:
    """Why a run of this benchmark is left out; "" for one that was asked for, by its name or by its tool's."""
    tool = tool_of(benchmark) if wanted else None
    if wanted and wanted not in (benchmark, tool.name if tool else ""):
        return f"it is {benchmark}, and --benchmark {wanted} was given"
    return ""


def trial_id(environment: str, reading: Reading, sha256: str, section: Section) -> str:
    """The id of a run in a campaign: the same run of the same file always has the same id."""
    source_ = f"-{slug(section.source)}" if section.source else ""
    return f"{environment}/{slug(reading.benchmark)}-{sha256[:12]}-{section.first}{source_}"
