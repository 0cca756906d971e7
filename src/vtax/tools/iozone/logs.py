"""Where runs of iozone begin and end in logs, and what can only be rows of its table."""

from __future__ import annotations

import re

BANNER = re.compile(r"[\s\"']{0,20}[Ii]ozone:\"?\s{1,4}Performance\s{1,4}Test\s{1,4}of\s")
ROW = re.compile(r"^[\s,;\"]*\d{2,9}[\s,;\"]+\d{1,6}(?:[\s,;\"]+\d{1,10}){13}[\s,;\"]*$", re.ASCII)


def starts(line: str) -> bool:
    return "ozone:" in line and BANNER.match(line) is not None


def ends(line: str) -> bool:
    return "zone" in line and "complete." in line


def starts_headerless(line: str) -> bool:
    """A row of the table, or the first title of `-R`'s report, as people paste them without the lines above."""
    return _is_row(line) or line.strip(' "\t,;').lower() == "writer report"


def _is_row(line: str) -> bool:
    """Whether a line can only be a row of iozone's table: a file size, a record size, and 13 numbers."""
    if len(line) > 400 or ROW.match(line) is None:
        return False
    file_kb, record_kb = (int(word) for word in re.findall(r"\d+", line)[:2])
    return 0 < record_kb <= file_kb and file_kb & (file_kb - 1) == 0 and record_kb & (record_kb - 1) == 0
