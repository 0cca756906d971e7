"""Where sessions of iperf3 begin and end in logs, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FIRST = re.compile(
    r"^(?:Connecting to host \S{1,200}, port \d{1,5}|Accepted connection from \S{1,200}, port \d{1,5}"
    r"|Client connecting to \S{1,200}, (?:TCP|UDP) port \d{1,5})$"
)
EVENT = '{"event":"'


def starts(line: str) -> bool:
    """The third is what iperf 2 prints, which is recognised to be refused."""
    return line.startswith(("Connecting to host ", "Accepted connection from ", "Client connecting to ")) and (
        FIRST.match(line) is not None
    )


def titles(line: str) -> bool:
    """What a server prints above the next session."""
    return not line.strip() or line.startswith(("---", "Server"))


def starts_error(line: str) -> bool:
    """What iperf3 prints where it does not even connect."""
    return line.startswith("iperf3: error - ")


def starts_document(line: str) -> bool:
    return line.startswith("{")


def ends_document(line: str) -> bool:
    return line.startswith("}")


def whole(document: Mapping[str, Any]) -> bool:
    """Whether an object is a session."""
    return isinstance(document.get("start"), dict)


def starts_stream(line: str) -> bool:
    """The first line of `--json-stream`: an object a line, of which this is the session's head."""
    return line.replace(" ", "").startswith(EVENT + 'start"')


def starts_stream_error(line: str) -> bool:
    """What `--json-stream` prints where it does not even connect."""
    return line.replace(" ", "").startswith(EVENT + 'error"')


def ends_stream(line: str) -> bool:
    return line.replace(" ", "").startswith(EVENT + 'end"')
