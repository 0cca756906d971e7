"""From a campaign to one file: plan, records, raw output or its hashes, facts, analysis, versions."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from vtax import __version__, files
from vtax.errors import StoreError, UsageError
from vtax.evaluation.evaluate import evaluate
from vtax.evaluation.readings import Readings
from vtax.sealing import archive, signature
from vtax.sealing.contents import ANALYSIS, AUDIT, contents, put
from vtax.sealing.manifest import Manifest, RawOutput, is_raw, of_tables, sealed_file
from vtax.sealing.redaction import Here, Redacted, redact
from vtax.store import Campaign, written


@dataclass(frozen=True)
class Wanted:
    """How a campaign is sealed. `redact`: without names, among them those of the machine and the user that seal."""

    raw: RawOutput = "whole"
    key: Path | None = None
    redact: Here | None = None


@dataclass(frozen=True)
class Sealed:
    """What was sealed, and the sha256 of the manifest's text, which is also what a signature is of. `stayed` are words
    that a redaction found and could not replace."""

    manifest: Manifest
    sha256: str
    stayed: tuple[str, ...] = ()


def seal(directory: Path, file: Path, wanted: Wanted, cache: Path | None = None) -> Sealed:
    """Write the sealed campaign; the campaign stays as it is. Raises UsageError for one that runs now, and for a file
    that exists."""
    campaign = Campaign.open(directory)
    if campaign.running():
        raise UsageError(f"{directory} is being run by a process", remedy="wait until it ends")
    if os.path.lexists(file):
        raise UsageError(f"{file} exists", remedy="give another file to --output, or remove that one")
    with tempfile.TemporaryDirectory(prefix="vtax-") as temporary:
        place = Path(temporary)
        for name, content in contents(directory, recorded=True):
            put(place, name, content)
        redacted = redact(campaign, place, wanted.redact) if wanted.redact else None
        sealed = _computed(place, wanted.raw, redacted, cache)
        text = written(sealed)
        signed = ((archive.SIGNATURE, signature.sign(text, wanted.key)),) if wanted.key else ()
        _write(file, ((archive.MANIFEST, text), *signed), place, sealed)
    return Sealed(sealed, sealed_file(text).sha256, redacted.stayed if redacted else ())


def _computed(place: Path, raw: RawOutput, redacted: Redacted | None, cache: Path | None) -> Manifest:
    """Read and analyse the copy of a campaign, and list its files."""
    campaign = Campaign.open(place)
    found = evaluate(campaign, cache=cache, readings=Readings(campaign))
    campaign.save(ANALYSIS, found.analysis)
    campaign.save(AUDIT, found.audit)
    for reading in found.readings.values():
        if campaign.reading(reading.trial) is None:  # its output was too large to be read
            campaign.keep_reading(reading)
    tables, binary = of_tables(found.trials), redacted.binary if redacted else frozenset()
    about = campaign.about()
    listed = {}
    for name, content in contents(place):
        left_out = (raw == "hashes" and is_raw(name, tables)) or name in binary
        listed[name] = sealed_file(content, whole=not left_out)
    return Manifest(
        campaign=found.plan.study.name,
        id=str(about["id"]),
        plan_sha256=found.plan.sha256,
        versions={
            "vtax": __version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
        },
        raw=raw,
        redacted=redacted.counts if redacted else None,
        files=listed,
    )


def _write(file: Path, first: Iterable[tuple[str, bytes]], place: Path, sealed: Manifest) -> None:
    """Write the archive under another name, then rename it: a file of that name is always a whole one."""

    def members() -> Iterator[tuple[str, bytes]]:
        yield from first
        for name, about in sorted(sealed.files.items()):
            if about.whole:
                yield f"{archive.CAMPAIGN}{name}", files.read(place, name, archive.MEMBER_BYTES)

    work = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        with work.open("xb") as stream:
            archive.write(stream, members())
            stream.flush()
            os.fsync(stream.fileno())
        os.link(work, file)  # unlike a rename, it never replaces a file that was made meanwhile
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}", remedy="choose another place") from error
    finally:
        with contextlib.suppress(OSError):
            work.unlink()
