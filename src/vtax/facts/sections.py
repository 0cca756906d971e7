"""One shell script, many observations: how their outputs are kept apart, and small readers of what they print.

A section counts only when the next marker follows it. So a script that was cut off loses its last observation, and
never gives half of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

MARK = "==vtax-fact-7c1e40b9d2=="
COMMAND_LIMIT_S = 5  # of those that may wait for something; some take seconds where the CPU is emulated

PRELUDE = f"""\
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
HOME=${{HOME:-/}}
export PATH LC_ALL HOME
section() {{ printf '\\n{MARK} %s\\n' "$1"; }}
try() {{ "$@" </dev/null 2>/dev/null; }}
limited() {{ try timeout -s KILL {COMMAND_LIMIT_S} "$@"; }}
"""
END = "section end\n"

MARKER = re.compile(rf"^{re.escape(MARK)} ([a-z]+)\n", re.MULTILINE)
CONTENT = re.compile(r"^(/[^:\n]*):(.*)$", re.MULTILINE)
WHOLE = re.compile(r"^\s*(-?[0-9]{1,20})\s*$", re.ASCII)
DECIMAL = re.compile(r"^\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*$", re.ASCII)


def split(text: str) -> dict[str, str]:
    """Section name -> what was printed in it, of all sections that are complete."""
    markers = list(MARKER.finditer(text))
    pairs = pairwise(markers)
    return {begin[1]: text[begin.end() : end.start()].strip("\n") for begin, end in pairs}


def contents(text: str) -> dict[str, str]:
    """Path -> content, from what `grep -as ''` prints for several files."""
    files: dict[str, list[str]] = {}
    for match in CONTENT.finditer(text):
        files.setdefault(match[1], []).append(match[2])
    return {path: "\n".join(lines) for path, lines in files.items()}


def fields(text: str, separator: str = ":") -> dict[str, str]:
    """`name: value` lines as a mapping; the first of equal names wins."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(separator)
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def whole(text: str | None) -> int | None:
    """A whole number, or None for anything else."""
    match = None if text is None else WHOLE.fullmatch(text)
    return None if match is None else int(match[1])


def decimal(text: str | None) -> float | None:
    """A number that is not negative, or None for anything else."""
    match = None if text is None else DECIMAL.fullmatch(text)
    return None if match is None else float(match[1])


def kibibytes(text: str | None) -> int | None:
    """Bytes from `2048 kB`, as /proc/meminfo writes kibibytes."""
    count = whole((text or "").removesuffix("kB"))
    return None if count is None else count * 1024


def present(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """What was observed: neither None nor empty."""
    return ((name, value) for name, value in values.items() if value not in (None, "", [], {}))
