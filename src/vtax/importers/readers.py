"""Which reader reads which section, and the measurements of a trial that was imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vtax.errors import ParseError
from vtax.importers import hpcc, iozone, iperf3, iperf3_json, linpack, ping, ranks, stress_ng, sysbench, table
from vtax.importers.records import Line, Reading, Section
from vtax.importers.sections import HEADERLESS, clean
from vtax.model.measurement import Measurement
from vtax.model.trial import TrialRecord

READERS: Mapping[str, Callable[[Section], Reading]] = {
    "hpcc": hpcc.read,
    "hpl": linpack.read,
    "stress-ng": stress_ng.read,
    "sysbench": sysbench.read,
    "iozone": iozone.read,
    HEADERLESS: iozone.headerless,
    "iperf3": iperf3.read,
    "iperf3 json": iperf3_json.read,
    "ping": ping.read,
}


def read(section: Section) -> Reading:
    """What a section says. Values of a line that is not there have the first line of the section."""
    reading = READERS[section.tool](section)
    fixed = (r if r.line else r._replace(line=section.first) for r in reading.refusals)
    reading.refusals = list(fixed)
    return reading


def section_of(record: TrialRecord) -> Section:
    """The section that an imported trial was made from, with the numbers of its lines in the original file."""
    if record.imported is None:
        raise ParseError(f"trials/{record.id} was not imported")
    texts = record.output().split("\n")
    lines = (clean(text) for text in texts)
    numbered = tuple(Line(record.imported.first_line + i, rank, text) for i, (rank, text) in enumerate(lines))
    return Section(record.imported.reader, numbered)


def measurements_of(record: TrialRecord) -> tuple[Measurement, ...]:
    """The measurements of an imported trial, read again from its raw text."""
    if record.imported is not None and record.imported.reader == table.READER:
        return table.measurements_of(record)
    return ranks.measurements(read(section_of(record)), record)
