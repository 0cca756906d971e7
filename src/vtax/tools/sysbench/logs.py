"""Where runs of sysbench begin and end in logs."""

from __future__ import annotations

import re

START = re.compile(r"^sysbench v? ?\d{1,2}\.\d")


def starts(line: str) -> bool:
    return line.startswith("sysbench ") and START.match(line) is not None


def ends(line: str) -> bool:
    """The last line of a test, or of a command that only makes or removes files."""
    return (
        "execution time (avg/stddev):" in line or "bytes written in " in line or line.startswith("Removing test files")
    )
