"""What raw logs say of their own run, beyond the numbers: found by pattern, so that imported logs serve as well.

Every function takes a trial's record with its texts and returns nothing where the log is silent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from vtax.model.trial import TrialRecord

PAIR = re.compile(r"^(\w+)=([^\s=]+)\s*$", re.MULTILINE)
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def text_of(record: TrialRecord) -> str:
    """All that the trial left, one file after the other."""
    return "\n".join(record.texts[name] for name in sorted(record.texts))


def found(pattern: re.Pattern[str], record: TrialRecord) -> tuple[str, ...]:
    """What the pattern's first group holds, every different text once, in order."""
    return tuple(dict.fromkeys(match[1] for match in pattern.finditer(text_of(record))))


def number(text: object) -> float | None:
    """A finite number, or None."""
    if isinstance(text, bool):
        return None
    if isinstance(text, (int, float)):
        return float(text) if abs(text) < 1e300 else None
    if not isinstance(text, str) or len(text) > 40 or NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if abs(value) < 1e300 else None


def summary(record: TrialRecord) -> dict[str, str]:
    """The `key=value` lines of hpcc's summary."""
    return dict(PAIR.findall(text_of(record)))


def documents(record: TrialRecord) -> Iterator[dict[str, Any]]:
    """The texts that are one JSON object, as iperf3 -J writes."""
    for name in sorted(record.texts):
        text = record.texts[name]
        if text.lstrip().startswith("{"):
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def at(document: Any, *path: str | int) -> Any:
    """The value under a path, or None."""
    for key in path:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def scaled(digits: str, prefix: str) -> float | None:
    """`1.05`, `M` as 1.05e6: iperf3's prefixes of bits are decimal."""
    value = number(digits)
    return None if value is None else value * SCALE[prefix]
