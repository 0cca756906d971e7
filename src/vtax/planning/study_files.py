"""The files of a study's folder that its commands need: read once, when it is loaded, and known by their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vtax import files
from vtax.errors import Mistake, StudyError
from vtax.model.study import BenchmarkSpec, Study
from vtax.planning.workloads import shipped
from vtax.units import format_bytes

LARGEST = 16 * 2**20  # of one file
MOST = 128 * 2**20  # of all files of a study


def with_files(study: Study, directory: Path, source: str) -> Study:
    """The study with the files that its entries name, their hashes and their sizes. They are below `directory`, and no
    links are followed. Raises StudyError with every file that cannot be taken."""
    kept: dict[str, bytes] = {}
    mistakes: list[Mistake] = []
    entries = tuple(_entry(spec, directory, kept, mistakes) for spec in study.benchmarks)
    total = sum(map(len, kept.values()))
    if total > MOST:
        hint = "put large files into an image of your own"
        mistakes.append(Mistake("benchmarks", f"the files of all entries have {format_bytes(total)}", hint))
    if mistakes:
        raise StudyError(source, mistakes)
    return study.model_copy(update={"benchmarks": entries, "files": kept}) if kept else study


def _entry(spec: BenchmarkSpec, directory: Path, kept: dict[str, bytes], mistakes: list[Mistake]) -> BenchmarkSpec:
    given = spec.params.get("files")
    if not isinstance(given, list) or not given:
        return spec
    tables = [table for table in given if isinstance(table, dict)]
    found = [
        _file(table, directory, f"benchmarks.{spec.label}.files[{index}]", kept, mistakes)
        for index, table in enumerate(tables)
    ]
    return spec.model_copy(update={"params": {**spec.params, "files": found}})


def _file(
    table: Mapping[str, Any], directory: Path, path: str, kept: dict[str, bytes], mistakes: list[Mistake]
) -> dict[str, Any]:
    name = str(table["from"])
    try:
        own = str(table.get("shipped", ""))
        content = shipped(own, name) if own else files.read(directory, name, LARGEST)
    except OSError as error:
        hint = "it must be a regular file in the study's folder or below it, with at most 16 MiB"
        mistakes.append(Mistake(f"{path}.from", f"{name} cannot be read: {error.strerror}", hint))
        return dict(table)
    sha256 = hashlib.sha256(content).hexdigest()
    if table["sha256"] not in ("", sha256):
        mistakes.append(Mistake(f"{path}.sha256", f"{name} has another one: {sha256}", "correct it, or leave it out"))
    kept[sha256] = content
    return {**table, "sha256": sha256, "size_bytes": len(content)}
