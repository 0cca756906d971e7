"""From files to runs: which files there are, what each is, and which are read; tables of vtax itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from vtax.errors import PLUGIN_FAILURES, StoreError, UsageError
from vtax.export.tables import read_table
from vtax.importing import source, table
from vtax.importing.archives import expanded
from vtax.importing.layout import ENVIRONMENT, Layout, NoFit, slug
from vtax.importing.logs import VALUES_LISTED, Job, read_log, unwanted
from vtax.importing.report import FileReport, Run
from vtax.importing.request import Request
from vtax.importing.workers import Finished, Workers
from vtax.model.trial import TrialRecord
from vtax.store import writing
from vtax.tools.reading import Reading
from vtax.tools.trials import TABLE, failed

UNPACKED = "unpacked"  # in the staging directory: the member of an archive that is being read
TABLE_BYTES = 512 * 2**20
NOWHERE = "the environment it ran in was not given"
ALONE_BYTES = 2 * 2**20  # of logs that are read before other processes are started: they take as long as starting


@dataclass
class LogImporter:
    """Reads files into the directory `staging`. `seen` are the checksums of earlier imports, `trials` the names
    that are taken, `hashes` the files of this import by checksum."""

    request: Request
    staging: Path
    seen: Mapping[str, TrialRecord]
    trials: set[str]
    hashes: dict[str, str] = field(default_factory=dict)
    reports: list[FileReport] = field(default_factory=list)
    reading: set[int] = field(default_factory=set)  # places of reports on logs that are being read
    read_bytes: int = 0  # of logs so far
    listed: int = 0  # values in the machine-readable table, of the first `complete` reports
    complete: int = 0

    def files(self) -> list[FileReport]:
        """Read every file below the paths of the request."""
        inside = self.staging.parent.resolve()
        with Workers(self.request.processes) as workers:
            for found in expanded(self._found(), self.staging / UNPACKED):
                if found.stored is None and found.path.absolute().is_relative_to(inside):
                    continue  # the campaign itself
                self.reports.append(FileReport(found.shown, reason=found.refused))
                if not found.refused:
                    self._file(found, workers)
                self._count_listed()
            self._finish(workers.rest())
        return self.reports

    def _file(self, found: source.Found, workers: Workers) -> None:
        """One file: a table of vtax, or a log, which is read here or by another process."""
        place, report = len(self.reports) - 1, self.reports[-1]
        try:
            if not self.request.table and (kind := _table_format(found)):
                self._table(report, found, kind)
                return
            if (job := self._job(report, found)) is None:
                return
            self.read_bytes += found.size
            alone = self.request.processes < 2 or self.read_bytes <= ALONE_BYTES
            if alone or (found.stored is not None and job.text.content is None):  # the next member takes its place
                self.reports[place] = read_log(job)
                return
        except StoreError:
            raise
        except PLUGIN_FAILURES as error:
            report.reason = failed(error)
            return
        self.reading.add(place)
        self._finish(workers.read(place, job))

    def _finish(self, finished: Iterable[Finished]) -> None:
        """Take what other processes have read."""
        for place, report in finished:
            self.reports[place] = report
            self.reading.discard(place)
            self._count_listed()

    def _count_listed(self) -> None:
        """Keep the first values for the machine-readable table, in the order of the files."""
        while self.complete < len(self.reports) and self.complete not in self.reading:
            for run in self.reports[self.complete].runs:
                if self.listed >= VALUES_LISTED:
                    run.values.clear()
                self.listed += len(run.values)
            self.complete += 1

    def _found(self) -> Iterator[source.Found]:
        """The files of the request, standard input among them."""
        paths = [path for path in self.request.paths if path != source.STANDARD_INPUT]
        given = (
            (source.standard_input(self.request.stdin, self.staging / "stdin"),)
            if self.request.stdin is not None and len(paths) < len(self.request.paths)
            else ()
        )
        return chain(given, source.find(paths))

    def _job(self, report: FileReport, found: source.Found) -> Job | None:
        """What reading a log takes; None for one that is not read, with the reason in its report."""
        request = self.request
        if not request.environment and not request.layout and not request.table:
            report.reason = NOWHERE
            return None
        report.labels, report.environment = request.labels, request.environment
        if request.layout:
            try:
                said = dict(Layout(request.layout).fit(found.path, found.shown))
            except NoFit as error:
                report.reason = str(error)
                return None
            named = said.pop(ENVIRONMENT, "")
            report.environment = request.environment or (slug(named) if named else "")
            report.labels = {**request.labels, **said}
        text = source.opened(found)
        if isinstance(text, str):
            report.reason = text
            return None
        try:
            report.sha256 = text.sha256()
        except OSError as error:
            report.reason = f"it cannot be read: {error.strerror or error}"
            return None
        if twin := self._twin(report):
            report.reason = twin
            return None
        self.hashes[report.sha256] = f"{report.environment}: {report.file}"
        return Job(
            report=report,
            text=text,
            raw=f"raw/{report.sha256[:16]}-{slug(found.path.name)}",
            staging=self.staging,
            benchmark=request.benchmark,
            units=request.units,
            table=request.table,
            listing=self.listed < VALUES_LISTED,
        )

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
        run.left_out = unwanted(record.benchmark, self.request.benchmark)
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


def _table_format(found: source.Found) -> str:
    """Which of vtax's own tables a file is; "" for none."""
    try:
        with found.open() as stream:
            return table.format_of(stream.read(256))
    except OSError:
        return ""  # it is opened again later, and the reason is reported then
