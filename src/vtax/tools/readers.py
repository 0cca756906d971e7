"""Which reader reads which section of a log."""

from __future__ import annotations

from vtax.errors import ParseError
from vtax.model.trial import TrialRecord
from vtax.tools import log_formats
from vtax.tools.reading import Line, Reading, Section, clean


def read(section: Section) -> Reading:
    """What a section says. Values of a line that is not there have the first line of the section."""
    reading = log_formats()[section.tool].read(section)
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
