"""Findings as the report shows them: each row of the audit once, what it says alike of several environments once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vtax.model.finding import Finding, Severity
from vtax.report.document.audit_phrases import named
from vtax.report.document.model import Box, Message
from vtax.report.document.numbers import listed, plural

ROW = re.compile(r"[A-Z]\d\d")


def boxes(findings: Iterable[Finding]) -> tuple[Box, ...]:
    """One box for each row and severity, in the order in which each comes first."""
    rows: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        rows.setdefault((finding.severity, finding.id), []).append(finding)
    return tuple(
        Box(
            id=id,
            severity=severity,
            count=len(several),
            messages=_messages(several),
            remedies=tuple(dict.fromkeys(one.remedy for one in several if one.remedy)),
        )
        for (severity, id), several in rows.items()
    )


def _messages(several: Sequence[Finding]) -> tuple[Message, ...]:
    """Messages that differ only in the environment that they name as one."""
    found: dict[tuple[str, bool, tuple[str, ...]], list[str]] = {}
    for one in several:
        name = re.escape(one.environment)
        parts = re.split(rf"(?<!\w){name}(?!\w)", one.message) if one.environment else [one.message]
        names = found.setdefault((one.benchmark, bool(one.environment), tuple(parts)), [])
        if one.environment not in names:
            names.append(one.environment)
    return tuple(
        Message(tuple(names) if about else (), benchmark, listed(names).join(parts))
        for (benchmark, about, parts), names in found.items()
    )


def tally(several: Sequence[Box]) -> str:
    """`2 blockers: CPU time stolen (C05), STREAM inside the cache (H06); 2 warnings: C04, O05`."""
    parts = []
    for severity, one in ((Severity.BLOCKER, "blocker"), (Severity.WARNING, "warning"), (Severity.INFO, "note")):
        own = [box.id for box in several if box.severity is severity]
        if own:
            names = ", ".join(map(named, own) if severity is Severity.BLOCKER else own)
            parts.append(f"{len(own)} {plural(len(own), one)}: {names}")
    return "; ".join(parts)
