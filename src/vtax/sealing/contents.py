"""The files of a campaign that are sealed, copied to where they can be read, redacted and packed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from vtax import files
from vtax.errors import DamagedError, StoreError, UsageError
from vtax.sealing.archive import CAMPAIGN, MANIFEST, MEMBER_BYTES, MEMBERS, NAMES, WHOLE_BYTES, Archive, SealError
from vtax.sealing.manifest import Manifest, sealed_file
from vtax.store import READING

ANALYSIS, AUDIT = "analysis.json", "audit.json"
MADE_AGAIN = re.compile(rf"{ANALYSIS}|{AUDIT}|trials/.*/{READING}")  # from the rest, by the version that seals


def names_of(directory: Path) -> list[str]:
    """What of a campaign's directory is sealed, in the order of names: not reports, locks, or files of others."""
    found = (path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    return sorted(name for name in found if NAMES.fullmatch(name))


def contents(directory: Path, *, recorded: bool = False) -> Iterator[tuple[str, bytes]]:
    """Every file that is sealed, with its content; only what was `recorded`, and not what vtax made of it.

    Raises UsageError for more than `vtax seal --check` reads.
    """
    names, total = names_of(directory), 0
    names = [name for name in names if MADE_AGAIN.fullmatch(name) is None] if recorded else names
    for name in names:
        try:
            content = files.read(directory, name, MEMBER_BYTES)
        except OSError as error:
            raise DamagedError(
                f"{directory / name} cannot be sealed: {error.strerror}", remedy="restore the file, or remove its trial"
            ) from error
        total += len(content)
        if total > WHOLE_BYTES or len(names) > MEMBERS:
            raise UsageError(
                f"{directory} is too large to be sealed: at most {WHOLE_BYTES // 2**30} GiB in {MEMBERS} files",
                remedy="seal smaller campaigns",
            )
        yield name, content


def put(directory: Path, name: str, content: bytes) -> None:
    """Write one file below a directory that nobody else uses."""
    try:
        files.write(directory, name, content, flush=False)
    except OSError as error:
        raise StoreError(
            f"{directory / name} cannot be written: {error.strerror}", remedy="free some space, or set TMPDIR"
        ) from error


def manifest_of(archive: Archive) -> Manifest:
    """What a sealed campaign says that it contains. Raises SealError."""
    try:
        return Manifest.model_validate_json(archive.read(MANIFEST))
    except ValueError as error:
        raise SealError(f"{MANIFEST} is damaged, or of another version of vtax", detail=str(error)[:500]) from error


def unpack(archive: Archive, sealed: Manifest, directory: Path) -> Mapping[str, str]:
    """Write the campaign's files into an empty directory. Returns what is not as it was sealed: file -> what is wrong.

    Such a file is not written, so that nothing is computed from it.
    """
    wrong: dict[str, str] = {}
    there = set(archive.names())
    for name in sorted(there | sealed.files.keys()):
        about = sealed.files.get(name)
        if about is None:
            wrong[name] = "it was not sealed"
        elif name not in there:
            if about.whole:
                wrong[name] = "it is missing"
        elif not about.whole:
            wrong[name] = "it was sealed by its hash alone"
        else:
            content = archive.read(f"{CAMPAIGN}{name}")
            if sealed_file(content) != about:
                wrong[name] = "it was changed: its hash is another one"
            else:
                put(directory, name, content)
    return wrong
