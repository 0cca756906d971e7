"""What the outputs of a campaign's trials say: read once by the tool's reader, kept next to each trial's record."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from vtax.errors import DamagedError, StoreError
from vtax.model.measurement import Measurement
from vtax.model.reading import TrialReading
from vtax.model.study import Study
from vtax.model.trial import Status, TrialRecord
from vtax.store import Campaign, LargeOutput, texts_of
from vtax.tools import log_formats, tool_of, tools
from vtax.tools.tool import Tool
from vtax.tools.trials import TABLE, as_read, measurements_of, read_trial

VALUES = 1_000_000  # of one campaign: about 2 GB of memory


class Read(NamedTuple):
    """A trial as it counts (failed where its output was refused), what its output says, and that as measurements."""

    record: TrialRecord
    reading: TrialReading
    measurements: tuple[Measurement, ...]


class Readings:
    """The readings of one campaign, each made only once while the campaign's files and vtax's readers stay the same.

    With `keep` they are written into the campaign; what cannot be written there (a campaign of another user) is read
    again next time. With `again`, what was read before is not used.
    """

    def __init__(self, campaign: Campaign, *, keep: bool = True, again: bool = False) -> None:
        self.campaign, self.keep, self.again = campaign, keep, again
        self.known: dict[str, Read] = {}

    def of(self, record: TrialRecord) -> Read:
        """One trial. Raises DamagedError for a missing file that its record names."""
        known = self.known.get(record.id)
        if known is None:
            known = self.known[record.id] = self._read(record)
        return known

    def counted(self, record: TrialRecord) -> TrialRecord:
        """One trial as it counts: failed, with the reason, where its output is refused."""
        return self.of(record).record

    def all(self, records: Iterable[TrialRecord]) -> tuple[Read, ...]:
        """Several trials, in the same order. Their texts are in memory one trial at a time, their values all together.
        Raises DamagedError for more values than that allows."""
        found, count = [], 0
        for record in records:
            found.append(self.of(record))
            count += len(found[-1].measurements)
            if count > VALUES:
                raise DamagedError(
                    f"{self.campaign.directory} has more than {VALUES} measurements",
                    remedy="import the logs in parts, into several campaigns",
                )
        return tuple(found)

    def _read(self, record: TrialRecord) -> Read:
        try:
            raw = self.campaign.raw(record)
        except LargeOutput as error:
            refused = TrialReading(trial=record.id, failure=str(error))
            return Read(as_read(record, refused), refused, ())
        reader, raw_sha256 = reader_of(record), raw_digest(raw)
        reading = None if self.again else self.campaign.reading(record.id)
        with_texts = None
        if reading is None or (reading.trial, reading.reader, reading.raw_sha256) != (record.id, reader, raw_sha256):
            with_texts = record.model_copy(update={"texts": texts_of(raw)})
            reading = read_trial(with_texts).model_copy(update={"reader": reader, "raw_sha256": raw_sha256})
            self._save(reading)
        if not reading.values:  # a table of vtax's own: its rows are the measurements
            with_texts = with_texts or record.model_copy(update={"texts": texts_of(raw)})
        return self._counted(with_texts or record, reading)

    def _counted(self, record: TrialRecord, reading: TrialReading) -> Read:
        """A reading as it counts; `record` has its texts where it is a table of vtax's own."""
        bare = record.model_copy(update={"texts": {}}) if record.texts else record
        if reading.failure or record.status is not Status.OK:
            return Read(as_read(bare, reading), reading, ())
        return Read(bare, reading, measurements_of(record, reading, partial(self._study.explores, record.label)))

    @cached_property
    def _study(self) -> Study:
        return self.campaign.plan().study

    def _save(self, reading: TrialReading) -> None:
        if self.keep:
            try:
                self.campaign.keep_reading(reading)
            except StoreError:
                self.keep = False


class StoredReadings(Readings):
    """What was read when the campaign was sealed: the readings next to its records, believed as they are. Its raw
    output need not be there."""

    def __init__(self, campaign: Campaign) -> None:
        super().__init__(campaign, keep=False)

    def _read(self, record: TrialRecord) -> Read:
        reading = self.campaign.reading(record.id)
        if reading is None or reading.trial != record.id:
            where = self.campaign.directory / "trials" / record.id
            raise DamagedError(f"{where}: what was read from it is missing", remedy="seal the campaign again")
        rows = record.imported is not None and record.imported.reader == TABLE
        return self._counted(self.campaign.with_texts(record) if rows else record, reading)


def raw_digest(raw: Mapping[str, bytes]) -> str:
    """The hash of all files that a trial left, in the order of their names; "" when they are empty."""
    return hashlib.sha256(b"\0".join(raw[name] for name in sorted(raw))).hexdigest() if any(raw.values()) else ""


def reader_of(record: TrialRecord) -> str:
    """A digest of the code that reads a trial: of its tool's folder, or of all where its tool may read with the readers
    of others, and of what all readers share."""
    if record.imported is None:
        return _code(tool_of(record.benchmark))
    known = log_formats().get(record.imported.reader)
    return _code(next((tool for tool in tools() if known in tool.logs), None) if known else None)


@cache
def _code(tool: Tool | None) -> str:
    names = ("vtax.tools", "vtax.model.reading", "vtax.model.metric", "vtax.units")
    shared = [Path(str(import_module(name).__file__)) for name in names]
    sources = {*shared[0].parent.glob("*.py"), *shared[1:]}
    read_by = () if tool is None else tools() if tool.reads_with_others else (tool,)
    readers = {type(benchmark).__module__ for one in read_by for benchmark in one.benchmarks}
    for name in readers | {known.read.__module__ for one in read_by for known in one.logs}:
        module = sys.modules[name]
        file = Path(str(module.__file__))
        own = file.parent if (file.parent / "__init__.py").exists() else None  # a plug-in may be one module
        sources |= set(own.rglob("*.py")) if own else {file}
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(sources))).hexdigest()[:16]
