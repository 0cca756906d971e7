"""Where vtax keeps what outlives a command, and how a file gets its name only when it is complete."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TEMPORARY = re.compile(r"^\.([^/]{1,230})\.[0-9a-f]{16}\.tmp$")


@dataclass(frozen=True)
class Paths:
    """Where vtax keeps what outlives a command: `cache` for images, `state` for run-time files of clusters."""

    cache: Path
    state: Path

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def workloads(self) -> Path:
        return self.cache / "workloads"

    @property
    def runtime(self) -> Path:
        return self.state / "run"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path next to `path`, for a new version of that file: it becomes `path` at the end of the block, and
    goes if the block raises. A reader of `path` sees the old version or the new one."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield fresh
        fresh.replace(path)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def abandoned(directory: Path, name: str = "") -> Iterator[tuple[Path, str]]:
    """What `replacing` left in a directory when its process was killed, or is writing there now: each temporary file
    and the name that it was to get; only for the file of this `name` where one is given."""
    for path in sorted(directory.glob(".*.tmp")):
        found = TEMPORARY.fullmatch(path.name)
        if found is not None and found[1] == (name or found[1]):
            yield path, found[1]
