"""What a sealed campaign contains: `seal.json`, the first member of the file and all that a signature is about."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from vtax.model.names import Sha256
from vtax.model.record import Record
from vtax.model.trial import TrialRecord
from vtax.tools.trials import TABLE

RawOutput = Literal["whole", "hashes"]
OWN = re.compile(r"(?:record|measurements)\.json")  # of a trial's files, what vtax wrote


class SealedFile(Record):
    """One file of the campaign; not `whole`: its hash alone is in the archive."""

    sha256: Sha256
    size_bytes: int = Field(ge=0)
    whole: bool = True


class Manifest(Record):
    """`versions` are of what computed the numbers. `redacted` counts what was replaced before all hashes were made, by
    kind; None where nothing was asked for."""

    format: Literal["vtax-seal/1"] = "vtax-seal/1"
    campaign: str
    id: str
    plan_sha256: str
    versions: Mapping[str, str]
    raw: RawOutput
    redacted: Mapping[str, int] | None = None
    files: Mapping[str, SealedFile]

    @property
    def by_hash(self) -> int:
        return sum(not one.whole for one in self.files.values())


def sealed_file(content: bytes, *, whole: bool = True) -> SealedFile:
    return SealedFile(sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content), whole=whole)


def is_raw(name: str, tables: frozenset[str] = frozenset()) -> bool:
    """Whether a file of a campaign is what a program printed, and not what vtax recorded or read. The rows of a table
    of measurements, for the trials in `tables`, are numbers."""
    top, _, rest = name.partition("/")
    if top == "trials":
        trial, _, file = rest.rpartition("/")
        return OWN.fullmatch(file) is None and trial not in tables
    return top == "raw" or (top == "cells" and not name.endswith(".json"))


def of_tables(trials: tuple[TrialRecord, ...]) -> frozenset[str]:
    """The trials that are rows of an imported table."""
    return frozenset(trial.id for trial in trials if trial.imported and trial.imported.reader == TABLE)
