"""What the commands share: directories, and how JSON and lines are printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vtax.wording import CONTROL, printable

if TYPE_CHECKING:
    from vtax.paths import Paths


def paths() -> Paths:
    """The user's cache and state directories, by the XDG rules. The only place that reads these variables."""
    from vtax.paths import Paths

    home = Path.home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    state = Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    return Paths(cache=cache.absolute() / "vtax", state=state.absolute() / "vtax")


def print_json(content: Any) -> None:
    """JSON escapes some control characters itself; the others are inside strings, so they may be escaped too."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    print(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def say(*lines: str) -> None:
    print(*map(printable, lines), sep="\n", flush=True)


def warn(*lines: str) -> None:
    print(*map(printable, lines), sep="\n", file=sys.stderr, flush=True)


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Columns as wide as what they hold, two spaces apart."""
    header, rows = [printable(cell) for cell in header], [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)


def pairs(content: Mapping[str, Any]) -> str:
    """One `name  value` line each."""
    width = max(map(len, content), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in content.items())
