"""Drawings of Vega-Lite as SVG, kept by what they were drawn from: a report that is made again draws nothing anew."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert

MOST = 1000  # drawings that are kept, some 50 kB each; then the older half goes
PLACE = "drawings"


def svg_of(specification: Mapping[str, Any], directory: Path | None = None) -> str:
    """The drawing of a specification, from `directory` where it has been drawn before. The same specification and the
    same version of the library give the same drawing."""
    if directory is None:
        return _drawn(specification)
    content = json.dumps([_version(), specification], sort_keys=True, allow_nan=False).encode()
    kept = directory / PLACE / f"{hashlib.sha256(content).hexdigest()}.svg"
    with suppress(OSError, UnicodeDecodeError):
        found = kept.read_text(encoding="utf-8")
        if found.startswith("<svg") and found.endswith("</svg>"):
            return found
    made = _drawn(specification)
    with suppress(OSError):  # without a cache it is drawn again next time
        _keep(kept, made)
    return made


def _keep(kept: Path, drawing: str) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_text(drawing, encoding="utf-8")
    partial.replace(kept)
    several = sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime)
    for old in several[: len(several) // 2] if len(several) > MOST else ():
        old.unlink(missing_ok=True)


def _drawn(specification: Mapping[str, Any]) -> str:
    return str(vl_convert.vegalite_to_svg(dict(specification)))


@cache
def _version() -> str:
    return version("vl-convert-python")
