"""From files to runs: each file cut, read and copied aside with its text, or refused with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO

from vtax.analysis.claims import Claims
from vtax.errors import PLUGIN_FAILURES, StoreError, UsageError
from vtax.export.tables import read_table
from vtax.importing import source, table
from vtax.importing.archives import expanded
from vtax.importing.csv_rows import Row, Rows
from vtax.importing.layout import ENVIRONMENT, Layout, NoFit, slug
from vtax.importing.report import FileReport, Run
from vtax.importing.sections import cut
from vtax.model.trial import TrialRecord
from vtax.store import writing
from vtax.tools import ranks, tool_of, tools
from vtax.tools.reading import Reading, Section
from vtax.tools.stated import STATED, statement_of
from vtax.tools.trials import TABLE, failed, read_section

TEXT = "log.txt"
UNPACKED = "unpacked"  # in the staging directory: the member of an archive that is being read
TABLE_BYTES = 512 * 2**20
RUNS = 10_000  # of one file
NOWHERE = "the environment it ran in was not given"
VALUES_LISTED = 50_000  # in the machine-readable table; all of them are in the campaign


@dataclass(frozen=True)
class Request:
    """What the user asked for. One of `environment` and `layout` says where a file belongs."""

    paths: tuple[Path, ...]
    environment: str = ""
    layout: str = ""
    benchmark: str = ""
    baseline: str = ""
    stdin: IO[bytes] | None = None  # what the path `-` is
    labels: Mapping[str, str] = field(default_factory=dict)  # of all values, stated
    origin: str = ""  # where the files come from, as a recipe says
    claims: Claims | None = None  # published numbers of these runs
    units: Mapping[str, str] = field(default_factory=dict)  # tool -> the unit where its output does not say it, stated
    table: tuple[str, ...] = ()  # what the columns of all files are, stated; without it they are logs


@dataclass
class LogImporter:
    """Reads files into the directory `staging`. `seen` are the checksums of earlier imports, `trials` the names
    that are taken, `hashes` the files of this import by checksum."""

    request: Request
    staging: Path
    seen: Mapping[str, TrialRecord]
    trials: set[str]
    hashes: dict[str, str] = field(default_factory=dict)
    listed: int = 0  # values in the machine-readable table

    def files(self) -> Iterator[FileReport]:
        """Read every file below the paths of the request."""
        inside = self.staging.parent.resolve()
        for found in expanded(self._found(), self.staging / UNPACKED):
            if found.stored is None and found.path.absolute().is_relative_to(inside):
                continue  # the campaign itself
            report = FileReport(found.shown, reason=found.refused)
            yield report
            if report.reason:
                continue
            try:
                if not self.request.table and (kind := _table_format(found)):
                    self._table(report, found, kind)
                else:
                    self._log(report, found)
            except StoreError:
                raise
            except PLUGIN_FAILURES as error:
                report.reason = failed(error)

    def _found(self) -> Iterator[source.Found]:
        """The files of the request, standard input among them."""
        paths = [path for path in self.request.paths if path != source.STANDARD_INPUT]
        given = (
            (source.standard_input(self.request.stdin, self.staging / "stdin"),)
            if self.request.stdin is not None and len(paths) < len(self.request.paths)
            else ()
        )
        return chain(given, source.find(paths))

    def _log(self, report: FileReport, found: source.Found) -> None:
        """Cut one log into runs and read each, or record why not."""
        request = self.request
        if not request.environment and not request.layout and not request.table:
            report.reason = NOWHERE
            return
        report.labels, report.environment = request.labels, request.environment
        if request.layout:
            try:
                said = dict(Layout(request.layout).fit(found.path, found.shown))
            except NoFit as error:
                report.reason = str(error)
                return
            named = said.pop(ENVIRONMENT, "")
            report.environment = request.environment or (slug(named) if named else "")
            report.labels = {**request.labels, **said}
        text = source.opened(found)
        if isinstance(text, str):
            report.reason = text
            return
        try:
            report.sha256 = text.sha256()
            if twin := self._twin(report):
                report.reason = twin
                return
            self.hashes[report.sha256] = f"{report.environment}: {report.file}"
            raw = f"raw/{report.sha256[:16]}-{slug(found.path.name)}"
            if request.table:
                self._rows(report, text, raw)
            else:
                self._runs(report, text, raw)
            if report.runs:
                text.copy(self.staging / raw)
        except OSError as error:
            report.reason = f"it cannot be read: {error.strerror or error}"
            report.runs.clear()
        report.damaged_lines = text.damaged
        if not report.runs and not report.reason:
            report.reason = "no output of a benchmark that vtax knows"

    def _runs(self, report: FileReport, text: source.Text, raw: str) -> None:
        """The runs of a log. Code that fails ends its file, with what was found until then, and not the import."""
        try:
            for section in cut(text.lines(), report.account.outside):
                if len(report.runs) == RUNS:
                    report.reason = f"it has more than {RUNS} runs, and only these were read: split it"
                    break
                report.runs.append(self._run(report, section, raw))
        except (OSError, StoreError):  # not the fault of the log
            raise
        except PLUGIN_FAILURES as error:
            report.reason = failed(error)

    def _rows(self, report: FileReport, text: source.Text, raw: str) -> None:
        """The rows of a table whose columns were stated, each a run."""
        if damaged := text.lone_return():
            report.reason = f"line {damaged}: a carriage return inside of a line: where its rows end is unknown"
            return
        table_ = self.request.table
        rows = Rows(statement_of(table_), table_, text.lines(), text.ends_line(), report.account.outside)
        for row in rows:
            if len(report.runs) == RUNS:
                rows.problem = f"it has more than {RUNS} rows, and only these were read: split it"
                break
            report.runs.append(self._run(report, row.section, raw, row))
        others = f"columns that are not taken: {', '.join(rows.unread)[:500]}" if rows.unread else ""
        report.reason = "; ".join(filter(None, (rows.problem, others)))
        if not report.runs and not rows.problem:
            report.reason = "a table without rows"
        environments = dict.fromkeys(run.environment for run in report.runs if not run.left_out)
        report.environment = ", ".join(environments) or report.environment

    def _table(self, report: FileReport, found: source.Found, kind: str) -> None:
        """Take a whole table of `vtax export`, or refuse it, naming the row that is wrong."""
        if self.request.environment:
            report.reason = (
                f"a table names its environments itself: import it without --environment {self.request.environment}"
            )
            return
        try:
            with found.open() as stream:
                data = stream.read(TABLE_BYTES + 1)
            if len(data) > TABLE_BYTES:
                report.reason = f"a table larger than {TABLE_BYTES // 2**20} MiB: export it in parts"
                return
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
        clash = next((record.id for record, _ in made if record.id in self.trials), "")
        report.reason = self._twin(report) or (
            f"trial {clash} exists already: import it into another campaign" if clash else ""
        )
        if not made:
            report.reason = "a table without rows"
        if report.reason:
            return
        self.hashes[report.sha256] = report.file
        self.trials.update(record.id for record, _ in made)
        report.environment = ", ".join(dict.fromkeys(record.environment for record, _ in made))
        for record, texts in made:
            report.runs.append(self._of_table(report, record, texts))
        with writing(self.staging):
            (self.staging / "raw").mkdir(exist_ok=True)
            (self.staging / raw).write_bytes(data)

    def _of_table(self, report: FileReport, record: TrialRecord, texts: Mapping[str, str]) -> Run:
        """One trial of a table; its rows go to the disk."""
        place = self.staging / "trials" / record.id
        with writing(place):
            place.mkdir(parents=True)
            for name, text in texts.items():
                (place / name).write_text(text, encoding="utf-8")
        assert record.imported is not None
        run = Run(
            environment=record.environment,
            file=report.file,
            sha256=report.sha256,
            raw=record.imported.raw,
            section=(TABLE, record.imported.first_line, record.imported.last_line),
            reading=Reading(record.benchmark),
            place=place,
            trial=record.id,
            count=sum(text.count("\n") for text in texts.values()),
            record=record,
        )
        run.left_out = self._unwanted(record.benchmark)
        return run

    def _twin(self, report: FileReport) -> str:
        """Why a file with these bytes is not read; "" for new ones."""
        old = self.seen.get(report.sha256)
        if old is not None and old.imported is not None:
            return (
                f"U03: the same bytes were imported before ({old.environment}: {old.imported.file}); not counted twice"
            )
        if report.sha256 in self.hashes:
            return f"U03: the same bytes as {self.hashes[report.sha256]}; not counted twice"
        return ""

    def _run(self, report: FileReport, section: Section, raw: str, row: Row | None = None) -> Run:
        """One run, read; its text goes to the disk, and that and its values out of memory."""
        unit = self._unit(section.tool)
        environment = (row.environment if row else "") or report.environment
        section = section._replace(labels={**report.labels, **section.labels}, unit=unit)
        reading = Reading(STATED) if row and row.refused else read_section(section)
        body = section._replace(lines=section.lines[1:]) if row else section  # without the header
        if row and row.refused:
            reading.refuse(body.first, "the row", row.refused, 0)
        place = self.staging / "trials" / trial_id(environment or "none", reading, report.sha256, body)
        with writing(place):
            place.mkdir(parents=True)
            (place / TEXT).write_bytes(section.text.encode("utf-8", "replace"))
        report.account.run(body, reading)
        pieces = section.pieces
        run = Run(
            environment=environment,
            file=report.file,
            sha256=report.sha256,
            raw=raw,
            section=(section.tool, body.first, body.last),
            reading=reading,
            place=place,
            trial=place.relative_to(self.staging / "trials").as_posix(),
            count=len(reading.values),
            source=section.source,
            pieces=pieces if len(pieces) > 1 or row else (),
            labels=section.labels,
            unit=unit,
            table=section.table,
        )
        run.left_out = (row.refused if row else "") or reading.no_test or self._unwanted(reading.benchmark)
        if self.listed < VALUES_LISTED and not run.left_out:
            run.values = [
                {"metric": m.name, "value": value, "unit": m.unit, "labels": dict(labels), "lines": list(lines)}
                for m, value, labels, lines in ranks.combined(reading)
            ]
            self.listed += len(run.values)
        reading.values.clear()
        return run

    def _unit(self, format_: str) -> str:
        """The unit that was stated for a format of logs; "" for none."""
        for tool in tools():
            for one in tool.logs:
                if one.name == format_:
                    return one.units.get(self.request.units.get(tool.name, ""), "")
        return ""

    def _unwanted(self, benchmark: str) -> str:
        """Why a run of this benchmark is left out; "" for one that was asked for, by its name or by its tool's."""
        wanted, tool = self.request.benchmark, tool_of(benchmark)
        if wanted and wanted not in (benchmark, tool.name if tool else ""):
            return f"it is {benchmark}, and --benchmark {wanted} was given"
        return ""


def _table_format(found: source.Found) -> str:
    """Which of vtax's own tables a file is; "" for none."""
    try:
        with found.open() as stream:
            return table.format_of(stream.read(256))
    except OSError:
        return ""  # it is opened again later, and the reason is reported then


def trial_id(environment: str, reading: Reading, sha256: str, section: Section) -> str:
    """The id of a run in a campaign: the same run of the same file always has the same id."""
    source_ = f"-{slug(section.source)}" if section.source else ""
    return f"{environment}/{slug(reading.benchmark)}-{sha256[:12]}-{section.first}{source_}"
