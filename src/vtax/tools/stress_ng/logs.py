"""Where runs of stress-ng begin and end in logs."""

from __future__ import annotations

import re

DISPATCH = re.compile(r"^stress-ng: info: {1,3}\[\d{1,9}\] dispatching hogs: ")
COMPLETED = re.compile(r"^stress-ng: \w{4,5}: {1,3}\[\d{1,9}\] (?:un)?successful run completed")
FIRST = re.compile(r"^stress-ng: \w{4,5}: {1,3}\[\d{1,9}\] (?:invoked with|setting to a|defaulting to a|dispatching)")


def starts(line: str) -> bool:
    return line.startswith("stress-ng: ")


def restarts(line: str) -> bool:
    return FIRST.match(line) is not None


def begins(line: str) -> bool:
    return "dispatching hogs: " in line and DISPATCH.match(line) is not None


def ends(line: str) -> bool:
    return "run completed" in line and COMPLETED.match(line) is not None
