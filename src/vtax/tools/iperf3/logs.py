"""Where sessions of iperf3 begin and end in logs, as text and as JSON."""

from __future__ import annotations


def starts(line: str) -> bool:
    """The third is what iperf 2 prints, which is recognised to be refused."""
    return line.startswith(("Connecting to host ", "Accepted connection from ", "Client connecting to "))


def titles(line: str) -> bool:
    """What a server prints above the next session."""
    return not line.strip() or line.startswith(("---", "Server"))


def starts_document(line: str) -> bool:
    return line.startswith("{")


def ends_document(line: str) -> bool:
    return line.startswith("}")
