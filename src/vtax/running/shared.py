"""A directory that several machines share: whether it is one (a file that one of them writes, and the others read), and
what a crash left there."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path

KEY = "shared"  # in the note of whose a cluster's files are
OWN = re.compile(r"vtax-[0-9a-f]{8}-[0-9a-f]{8}")  # the part of a shared directory that is one cluster's


def written(place: Path, token: str) -> str:
    """Write the file. Returns why that cannot be done; "" when it was."""
    if not place.is_dir():
        return f"it has no directory {place}"
    try:
        _file(place, token).write_text(token)
    except OSError as error:
        return f"it cannot write to {place}: {error.strerror}"
    return ""


def read(place: Path, token: str) -> str | None:
    """What the file says here: "" where there is none, None where there is not even the directory."""
    if not place.is_dir():
        return None
    with suppress(OSError):
        return _file(place, token).read_text()
    return ""


def remove(place: Path, token: str) -> None:
    _file(place, token).unlink(missing_ok=True)


def remove_abandoned(origin: Path) -> None:
    """Remove the cluster's own part of a shared directory that a note names; another machine may be removing it too."""
    try:
        place = Path(str(json.loads(origin.read_text())[KEY]))
    except (OSError, ValueError, KeyError, TypeError):
        return
    if OWN.fullmatch(place.name) and place.is_absolute() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)


def _file(place: Path, token: str) -> Path:
    return place / f".vtax-shared-{token}"
