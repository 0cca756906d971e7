"""What the rows of the audit are about, in a few words, for a sentence that gives one as a reason."""

from __future__ import annotations

from vtax.audit import SHORT

WORDS = SHORT


def cause(id: str) -> str:
    """`CPU time stolen, C05`; the id alone where it has no words."""
    return f"{WORDS[id]}, {id}" if id in WORDS else id


def named(id: str, times: int = 1) -> str:
    """`CPU time stolen (C05)`, and how often where it is more than once."""
    more = f", {times} times" if times > 1 else ""
    return f"{WORDS[id]} ({id}{more})" if id in WORDS else f"{id}{more and f' ({times} times)'}"
