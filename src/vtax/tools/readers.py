"""Which reader reads which section, and the measurements of a trial that was imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vtax.errors import ParseError
from vtax.model.measurement import Measurement
from vtax.model.trial import TrialRecord
from vtax.tools import ranks, table
from vtax.tools.hpcc import hpl_log_reader
from vtax.tools.hpcc import log_reader as hpcc
from vtax.tools.iozone import log_reader as iozone
from vtax.tools.iperf3 import json_log_reader
from vtax.tools.iperf3 import log_reader as iperf3
from vtax.tools.ping import log_reader as ping
from vtax.tools.reading import Line, Reading, Section
from vtax.tools.sections import HEADERLESS, clean
from vtax.tools.stress_ng import log_reader as stress_ng
from vtax.tools.sysbench import log_reader as sysbench

READERS: Mapping[str, Callable[[Section], Reading]] = {
    "hpcc": hpcc.read,
    "hpl": hpl_log_reader.read,
    "stress-ng": stress_ng.read,
    "sysbench": sysbench.read,
    "iozone": iozone.read,
    HEADERLESS: iozone.headerless,
    "iperf3": iperf3.read,
    "iperf3 json": json_log_reader.read,
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
