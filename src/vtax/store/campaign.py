"""One campaign's directory: its study, plan, cells and trials, and how it is made, opened and locked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from vtax import files
from vtax.errors import DamagedError, UsageError
from vtax.model.cluster import CellRecord, Workload
from vtax.model.facts import Facts
from vtax.model.look import Look, LookLog
from vtax.model.names import StudyName, is_campaign_id
from vtax.model.plan import Plan
from vtax.model.reading import TrialReading
from vtax.model.record import TRIALS, Record
from vtax.model.seal import Seal
from vtax.model.trial import TrialRecord
from vtax.store import output, records
from vtax.store.records import R, unwritable, written

LOCK = ".lock"
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")  # a file that `files.write` had not finished
READING = "measurements.json"
CLAIMS = "claims.json"  # of an imported campaign: what was published of its runs
FILES = "files"  # of the study, by their hashes
ABOUT_KEYS = {"host", "id", "image"}
IMAGE_KEYS = {"digest", "recipe", "versions"}


class _AboutImage(BaseModel):
    digest: str
    recipe: str
    versions: Mapping[str, str]


class _About(BaseModel):
    """The kinds of what is read of `campaign.json` besides the id; it may have more."""

    host: Facts
    image: _AboutImage
    machines: Mapping[StudyName, Facts] = Field(default_factory=dict)
    created: str = ""
    vtax_version: str = ""


FILE_BYTES = 16 * 2**20  # of one file of the study
FREE_BYTES = 64 * 2**20  # below this a campaign stops before it writes half a file


def refuse_occupied(directory: Path) -> None:
    """Raise UsageError for what cannot become a campaign."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", remedy="choose another one")
    names = {path.name for path in directory.iterdir()} if directory.exists() else set()
    if names and not _is_abandoned(names):
        raise UsageError(
            f"{directory} is not empty",
            remedy="choose another directory, or go on with what it holds: `vtax run --resume`",
        )


def _is_abandoned(names: Set[str]) -> bool:
    """Whether a directory has nothing but what `Campaign.create` writes before the plan. The lock, which is there
    first, tells it from a directory with somebody's study."""
    rest = {name for name in names if TEMPORARY.fullmatch(name) is None}
    return LOCK in names and rest <= {LOCK, "study.toml", "campaign.json"}


class Campaign:
    """One campaign's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def create(
        cls, directory: Path, study_text: bytes, plan: Plan, about: Mapping[str, Any], kept: Iterable[bytes] = ()
    ) -> Campaign:
        """A new directory with study, its files to be `kept`, frozen plan and provenance. Raises UsageError when it is
        not empty, but for what a process that was killed here left before it had a plan."""
        refuse_occupied(directory)
        for path in directory.glob(".*.tmp"):
            path.unlink()
        campaign = cls(directory)
        campaign._write("study.toml", study_text)
        for content in kept:
            campaign._write(f"{FILES}/{hashlib.sha256(content).hexdigest()}", content)
        sealed = {"plan_sha256": plan.sha256} if plan.sha256 else {}
        campaign.save("campaign.json", {**about, **sealed})
        campaign.save("plan.json", plan)
        return campaign

    @classmethod
    def open(cls, directory: Path) -> Campaign:
        """An existing campaign. Raises UsageError when the directory is not a campaign, DamagedError when it contains
        links, devices or pipes, which lead out of it."""
        if not (directory / "plan.json").exists():
            why = "is not a campaign: it has no plan.json" if directory.exists() else "does not exist"
            raise UsageError(
                f"{directory} {why}", remedy="give a campaign's directory; `vtax run` and `vtax import` make one"
            )
        try:
            files.refuse_special(directory)
        except OSError as error:
            raise DamagedError(
                f"{error.filename} cannot be part of a campaign: {error.strerror}",
                detail="a campaign consists of regular files; anything else could make vtax read or write elsewhere",
                remedy="remove it if you know what it is; if the campaign is somebody else's, ask for it again",
            ) from error
        return cls(directory)

    def kept(self, sha256: str) -> bytes:
        """A file of the study. Raises DamagedError for one that is missing or is not what its name says."""
        path = self.directory / FILES / sha256
        try:
            content = files.read(self.directory, f"{FILES}/{sha256}", FILE_BYTES)
        except OSError as error:
            raise DamagedError(f"{path} cannot be read: {error.strerror}", remedy="restore the file") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DamagedError(f"{path} was changed: its sha256 is another one", remedy="restore the file")
        return content

    def _write(self, name: str, content: bytes, *, flush: bool = True) -> None:
        try:
            files.write(self.directory, name, content, flush=flush)
        except OSError as error:
            raise unwritable(self.directory / name, error) from error

    def plan(self) -> Plan:
        return self.read("plan.json", Plan)

    def plan_bytes(self) -> bytes:
        """The plan's file as it is."""
        return records.json_bytes(self.directory, "plan.json")

    def seal(self, trials: Iterable[TrialRecord]) -> Seal:
        """The hashes of the plan that the campaign's files record, those of `trials` included.

        The hash is of the file as it is, so that a plan written by another version of vtax does not count as changed.
        """
        content = json.loads(self.plan_bytes())
        sealed = str(content.get("sha256", ""))
        log = self.look_log()
        named = {
            "campaign.json": (str(self.about().get("plan_sha256", "")),),
            "looks.json": tuple(dict.fromkeys(look.plan_sha256 for look in log.looks)) if log else (),
            "records of trials": tuple(dict.fromkeys(trial.plan_sha256 for trial in trials)),
        }
        intact = records.plan_digest(content) == sealed if sealed else None
        return Seal(plan=sealed, intact=intact, named=named)

    def about(self) -> dict[str, Any]:
        """What was recorded when the campaign began: its id, the machine, the image. Raises DamagedError."""
        path = self.directory / "campaign.json"
        try:
            content: Any = json.loads(
                records.json_bytes(self.directory, path.name), parse_constant=records.refuse_constant
            )
            if not isinstance(content, dict) or not content.keys() >= ABOUT_KEYS:
                raise ValueError(f"it does not contain a JSON object with {', '.join(sorted(ABOUT_KEYS))}")
            if not isinstance(content["id"], str) or not is_campaign_id(content["id"]):
                raise ValueError("its id is not one that vtax gives")
            if not isinstance(content["image"], dict) or not content["image"].keys() >= IMAGE_KEYS:
                raise ValueError(f"its image is not a JSON object with {', '.join(sorted(IMAGE_KEYS))}")
            _About.model_validate(content)
        except OSError as error:
            raise DamagedError(f"{path} cannot be read: {error.strerror}", remedy="restore the file") from error
        except (ValueError, RecursionError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise DamagedError(f"{path} is damaged: {why}", remedy="restore the file") from error
        return content

    def workload(self) -> Workload | None:
        """The user's own image that the campaign was started with; None without one. Raises DamagedError."""
        found = self.about()["image"].get("workload")
        try:
            return None if found is None else Workload.model_validate(found)
        except ValidationError as error:
            where = self.directory / "campaign.json"
            raise DamagedError(f"{where} is damaged: the own image: {error}", remedy="restore the file") from error

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Only one process makes or runs a campaign; its directory is made if need be. Raises UsageError when another
        does."""
        path = self.directory / LOCK
        with contextlib.ExitStack() as stack:
            try:
                self.directory.mkdir(parents=True, exist_ok=True)
                mine = stack.enter_context(files.locked(path))
            except OSError as error:
                raise unwritable(path, error) from error
            if not mine:
                raise UsageError(
                    f"{self.directory} is being run by another process", remedy="wait until it ends, or stop it"
                )
            yield

    def running(self) -> bool:
        """Whether a process runs this campaign now."""
        with contextlib.suppress(OSError):
            return files.is_locked(self.directory / LOCK)
        return False

    def has(self, trial: str) -> bool:
        return (self.directory / "trials" / trial / "record.json").exists()

    @contextlib.contextmanager
    def new_trial(self, trial: str) -> Iterator[Path]:
        """A directory for a trial's raw output, which gets its name when everything is written, the record included."""
        place = self.directory / "trials" / trial
        work = place.with_name(f".{place.name}.tmp")
        try:
            if work.exists():
                shutil.rmtree(work)
            new = [above for above in (place.parent, place.parent.parent) if not above.exists()]
            work.mkdir(parents=True)
            if shutil.disk_usage(work).free < FREE_BYTES:
                raise OSError(28, f"less than {FREE_BYTES // 2**20} MiB free")
            yield work
            files.flush_tree(work)
            work.rename(place)
            for changed in (place.parent, *(above.parent for above in new)):
                files.flush_directory(changed)
        except OSError as error:
            shutil.rmtree(work, ignore_errors=True)
            raise unwritable(place, error) from error
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise

    def look_log(self) -> LookLog | None:
        """Every interim analysis so far; None when none was recorded."""
        return self.read("looks.json", LookLog) if (self.directory / "looks.json").exists() else None

    def note_look(self, look: Look) -> None:
        """Add an interim analysis to the log."""
        log = self.look_log() or LookLog()
        self.save("looks.json", log.model_copy(update={"looks": (*log.looks, look)}))

    def save_cell(self, cell: CellRecord) -> None:
        self.save(f"cells/{cell.cell}.{cell.instance}.json", cell)

    def cells(self) -> tuple[CellRecord, ...]:
        """Every cell's record, in the order of time."""
        found = [self.read(f"cells/{path.name}", CellRecord) for path in (self.directory / "cells").glob("*.json")]
        return tuple(sorted(found, key=lambda cell: (cell.started, cell.cell, cell.instance)))

    def instances(self, cell: str) -> int:
        """How many clusters a cell has had."""
        return sum(record.cell == cell for record in self.cells())

    def trials(self, texts: bool = True) -> tuple[TrialRecord, ...]:
        """Every trial's record, in the order of time; with `texts`, all raw output that it names.

        Raises DamagedError for what is missing or damaged, and for a record of another trial than its directory's.
        """
        paths = [path for path in (self.directory / "trials").glob("*/*/record.json") if path.parent.name[0] != "."]
        if len(paths) > TRIALS:
            raise DamagedError(
                f"{self.directory} has {len(paths)} trials, and at most {TRIALS} are read",
                remedy="import the logs in parts, into several campaigns",
            )
        found = [self._trial(path, texts) for path in sorted(paths)]
        return tuple(sorted(found, key=lambda trial: (trial.started, _row(trial), trial.id)))

    def _trial(self, path: Path, texts: bool) -> TrialRecord:
        record = self.read(str(path.relative_to(self.directory)), TrialRecord)
        if self.directory / "trials" / record.id != path.parent:
            raise DamagedError(
                f"{path} is the record of another trial: {record.id}",
                detail=f"that one has its own directory, {self.directory / 'trials' / record.id}",
                remedy=f"remove {path.parent} if it is a copy; if not, rename it back",
            )
        return self.with_texts(record) if texts else record

    def raw(self, record: TrialRecord) -> dict[str, bytes]:
        """Every file that a trial's record names, by name. Raises DamagedError for one that cannot be read, LargeOutput
        for more than is read of one trial."""
        return output.raw(self.directory, record)

    def with_texts(self, record: TrialRecord) -> TrialRecord:
        """A record with all raw output that it names."""
        return record.model_copy(update={"texts": output.texts_of(self.raw(record))})

    def reading(self, trial: str) -> TrialReading | None:
        """What was read from a trial's output last; None where no reading of this version is kept."""
        try:
            return TrialReading.model_validate_json(records.json_bytes(self.directory, f"trials/{trial}/{READING}"))
        except (OSError, ValidationError):
            return None

    def keep_reading(self, reading: TrialReading) -> None:
        """Write a reading next to its trial's record. Not flushed to the disk: it can be made again from the output."""
        content = reading.model_dump_json(exclude_defaults=True) + "\n"
        self._write(f"trials/{reading.trial}/{READING}", content.encode(), flush=False)

    def read(self, name: str, kind: type[R]) -> R:
        """A record from its file in the campaign. Raises DamagedError when it is missing, damaged or too large."""
        return records.read(kind, self.directory, name)

    def read_json(self, name: str) -> Any:
        """The content of any other file of JSON. Raises OSError, ValueError or RecursionError."""
        return json.loads(records.json_bytes(self.directory, name))

    def save(self, name: str, content: Record | Mapping[str, Any] | bytes) -> Path:
        """Write a file. Returns its path."""
        self._write(name, content if isinstance(content, bytes) else written(content))
        return self.directory / name


def _row(trial: TrialRecord) -> int:
    """Where a trial began in the table that it was imported from; 0 for all others."""
    known = trial.imported
    return known.first_line if known is not None and known.reader == "vtax table" else 0
