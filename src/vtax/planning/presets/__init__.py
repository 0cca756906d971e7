"""Studies to start from, commented: what `vtax init` writes, and what commands take by name instead of a file."""

from __future__ import annotations

import difflib
from importlib.resources import files as resources
from pathlib import Path

from vtax import files
from vtax.errors import UsageError

PRESETS = (
    *("quick", "glance", "standard", "strict", "ladder"),
    *("kernel", "storage", "interference", "databases", "web", "hpc"),
)
STUDY_BYTES = 2**19  # of a study file; a long one has 10 KB


def preset(name: str) -> str:
    """The text of a preset study."""
    return (resources("vtax.planning.presets") / f"{name}.toml").read_text(encoding="utf-8")


def study_text(given: Path) -> bytes:
    """What is in the file `given`, or the preset of that name where there is no such file.

    Raises UsageError when the file cannot be read, and when there is neither.
    """
    if str(given) in PRESETS and not given.is_file():
        return preset(str(given)).encode()
    try:
        return files.read_given(given, STUDY_BYTES)
    except OSError as error:
        raise UsageError(
            f"the study {given} cannot be read: {error.strerror}",
            remedy=f"{_meant(given)}give a file, which `vtax init` writes, or a preset: {', '.join(PRESETS)}",
        ) from error


def _meant(given: Path) -> str:
    """The preset whose name is nearest, where one is near and nothing of that name is there."""
    close = difflib.get_close_matches(given.stem, PRESETS, n=1)
    return f'did you mean "{close[0]}"? ' if close and not given.exists() else ""
