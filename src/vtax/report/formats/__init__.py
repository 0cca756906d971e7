"""Formats of the report: a file each, which spells the document and no more.

A format is a module with `files(document, made)`, the files that it makes below `report/`, by their path; and a line in
`vtax.publishing.formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Made:
    """What a command made before: files by their path below `report/`, and figures for papers with their captions.
    `cache` is a directory that keeps what is the same in all reports.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)
    cache: Path | None = None
