"""What a sealed campaign claims, checked on this machine: each claim from what it is made of. Runs nothing of it."""

from __future__ import annotations

import json
import math
import tempfile
from calendar import timegm
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from time import strptime
from typing import Any

from vtax import __version__
from vtax.errors import VtaxError
from vtax.evaluation.evaluate import Evaluation, evaluate
from vtax.evaluation.readings import Readings, StoredReadings
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin, Plan
from vtax.model.record import Record
from vtax.model.trial import TrialRecord
from vtax.sealing import signature
from vtax.sealing.archive import MANIFEST, SIGNATURE, Archive, SealError, opened
from vtax.sealing.contents import ANALYSIS, AUDIT, manifest_of, unpack
from vtax.sealing.manifest import Manifest, sealed_file
from vtax.store import Campaign, written

DIGITS = 1e-9  # relative: what other versions of numpy and other processors may round differently
SHOWN = 200  # differences that are listed, of each claim


class State(StrEnum):
    HOLDS = "holds"
    FAILS = "fails"
    NOT_CHECKED = "not checked"


class Claim(Record):
    """One claim of a seal. `differences` are sentences, of which there may be more than are listed (`count`)."""

    what: str
    state: State
    said: str
    differences: tuple[str, ...] = ()
    count: int = 0


class Checked(Record):
    """All claims of a sealed campaign."""

    file: str
    campaign: str = ""
    sha256: str = ""  # of the manifest, which names the hash of every file
    sealed_by: str = ""
    redacted: Mapping[str, int] | None = None
    claims: tuple[Claim, ...]

    @property
    def holds(self) -> bool:
        return all(claim.state is not State.FAILS for claim in self.claims)


def check(file: Path, signers: Path | None = None, cache: Path | None = None) -> Checked:
    """Check a sealed campaign. Raises UsageError for a file that does not exist, or for `signers` that do not."""
    try:
        with tempfile.TemporaryDirectory(prefix="vtax-") as temporary, opened(file) as archive:
            return _checked(file, archive, Path(temporary), signers, cache)
    except SealError as error:
        if not file.is_file():
            raise
        return Checked(file=str(file), claims=(_claim("files", str(error.message), (error.detail or error.message,)),))


def _checked(file: Path, archive: Archive, place: Path, signers: Path | None, cache: Path | None) -> Checked:
    sealed, text = manifest_of(archive), archive.read(MANIFEST)
    wrong = unpack(archive, sealed, place)
    claims = [
        _claim("files", f"{len(sealed.files)} files", [f"{name}: {why}" for name, why in wrong.items()]),
        _signature(archive, text, signers),
    ]
    try:
        claims += _recomputed(Campaign.open(place), sealed, cache)
    except VtaxError as error:
        claims.append(_claim("records", "the records cannot be read", (str(error),)))
    return Checked(
        file=str(file),
        campaign=sealed.campaign,
        sha256=sealed_file(text).sha256,
        sealed_by=sealed.versions.get("vtax", ""),
        redacted=sealed.redacted,
        claims=tuple(claims),
    )


def _claim(what: str, said: str, differences: tuple[str, ...] | list[str]) -> Claim:
    state = State.FAILS if differences else State.HOLDS
    return Claim(what=what, state=state, said=said, differences=tuple(differences[:SHOWN]), count=len(differences))


def _signature(archive: Archive, text: bytes, signers: Path | None) -> Claim:
    if SIGNATURE not in archive.members:
        said = "it is not signed"
        return (
            Claim(what="signature", state=State.NOT_CHECKED, said=said)
            if signers is None
            else _claim("signature", said, (f"{said}, so it is by none of {signers}",))
        )
    try:
        by = signature.check(text, archive.read(SIGNATURE), signers)
    except SealError as error:
        return _claim("signature", error.message, (error.detail or error.message,))
    return Claim(what="signature", state=State.HOLDS, said=f"signed {by}" if signers is None else f"signed by {by}")


def _recomputed(campaign: Campaign, sealed: Manifest, cache: Path | None) -> Iterator[Claim]:
    """What follows from the files: plan, numbers, verdicts."""
    trials = campaign.trials(texts=False)
    stored = StoredReadings(campaign)
    yield _planned(campaign, sealed, trials)
    yield _numbers(campaign, sealed, trials, stored)
    found = evaluate(campaign, cache=cache, readings=stored)
    differences = [*_different(campaign, ANALYSIS, found), *_different(campaign, AUDIT, found)]
    other = sealed.versions.get("vtax", "")
    if differences and other != __version__:
        differences.append(f"sealed by vtax {other} and checked by vtax {__version__}, which may be why")
    said = f"{len(found.analysis.comparisons)} comparisons and {len(found.audit.rows)} rows of the audit, recomputed"
    yield _claim("verdicts", said, differences)


def _planned(campaign: Campaign, sealed: Manifest, trials: tuple[TrialRecord, ...]) -> Claim:
    """The plan before the runs, as the records claim: a signature proves who sealed them, never when they ran."""
    plan, what = campaign.plan(), "plan before runs"
    if plan.origin is Origin.IMPORTED:
        return Claim(what=what, state=State.NOT_CHECKED, said="imported logs: there was no plan")
    found = campaign.seal(trials)
    differences: list[str] = []
    if found.intact is False:
        differences.append("plan.json was changed: it does not have the sha256 that it names")
    if plan.sha256 != sealed.plan_sha256:
        differences.append(f"plan.json has sha256 {plan.sha256}, the seal says {sealed.plan_sha256}")
    differences += [f"{name} is of another plan: {', '.join(others)}" for name, others in found.others.items()]
    differences += _out_of_plan(plan, trials)
    differences += _too_early(campaign, trials)
    said = "all records name the plan, and began after it"
    if not differences and found.frozen != "yes":
        silent = ", ".join(found.silent) or "the plan"
        return Claim(what=what, state=State.NOT_CHECKED, said=f"{silent} names no plan (an older version of vtax)")
    return _claim(what, f"{said} (as they say)", differences)


def _out_of_plan(plan: Plan, trials: tuple[TrialRecord, ...]) -> Iterator[str]:
    planned = {(cell.id, trial.id, trial.work) for cell in plan.cells for trial in cell.trials}
    for trial in trials:
        if (trial.cell, trial.id, trial.work) not in planned:
            yield f"trial {trial.id} is not in the plan"


def _too_early(campaign: Campaign, trials: tuple[TrialRecord, ...]) -> Iterator[str]:
    created = str(campaign.about().get("created", ""))
    try:
        began = timegm(strptime(created, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return  # an older version: its hashes are all that there is
    for trial in trials:
        if 0 < trial.started < began:
            yield f"trial {trial.id} began before the campaign, which was created at {created}"


def _numbers(campaign: Campaign, sealed: Manifest, trials: tuple[TrialRecord, ...], stored: Readings) -> Claim:
    """The numbers from raw output."""
    what = "numbers"
    if sealed.raw == "hashes":
        return Claim(what=what, state=State.NOT_CHECKED, said="numbers not checked: raw output is there by hash alone")
    differences: list[str] = []
    count = 0
    fresh = Readings(campaign, keep=False, again=True)
    for trial in trials:
        one, other = stored.of(trial), fresh.of(trial)
        count += len(other.measurements)
        differences += _other_values(trial.id, one.measurements, other.measurements)
        if one.reading.failure != other.reading.failure:
            differences.append(
                f"{trial.id}: sealed as {one.reading.failure or 'read'!r}, now {other.reading.failure!r}"
            )
    return _claim(what, f"{count} values of {len(trials)} trials, read again from raw output", differences)


def _other_values(trial: str, sealed: tuple[Measurement, ...], again: tuple[Measurement, ...]) -> Iterator[str]:
    mine, other = _by_place(sealed), _by_place(again)
    for key in sorted(mine.keys() | other.keys()):
        if mine.get(key) != other.get(key):
            before, now = mine.get(key, "nothing"), other.get(key, "nothing")
            yield f"{trial}: {key[0]} {key[1]}: sealed {before}, raw output says {now}"


def _by_place(values: tuple[Measurement, ...]) -> dict[tuple[str, str, int], float]:
    """Values by metric, labels, and their place among those with the same ones."""
    found: dict[tuple[str, str, int], float] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for one in values:
        key = one.metric, " ".join(f"{name}={label}" for name, label in sorted(one.labels.items()))
        found[*key, seen[key]] = one.value
        seen[key] += 1
    return found


def _different(campaign: Campaign, name: str, found: Evaluation) -> Iterator[str]:
    """Where a file that was computed is not what the rest of the campaign gives."""
    try:
        before = campaign.read_json(name)
    except (OSError, ValueError, RecursionError):
        yield f"{name} is missing or damaged"
        return
    again = json.loads(written(found.analysis if name == ANALYSIS else found.audit))
    yield from (f"{name}: {one}" for one in differing(before, again))


def differing(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Where two documents of JSON are not the same, up to the last digits of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differing(one.get(key), other.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (mine, its) in enumerate(zip(one, other, strict=True)):
            yield from differing(mine, its, f"{where}[{place}]")
    elif not _alike(one, other):
        yield f"{where}: sealed {_short(one)}, recomputed {_short(other)}"


def _alike(one: Any, other: Any) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if numbers and not isinstance(one, bool) and not isinstance(other, bool):
        return math.isclose(one, other, rel_tol=DIGITS, abs_tol=1e-12)
    return bool(one == other)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 100 else f"{text[:97]}..."
