"""A campaign as one file: what is in it, what a check on another machine finds, and what it refuses to read."""

from __future__ import annotations

import io
import json
import re
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from builders.small import SAYS, planned
from unit.sealing.conftest import BEFORE, change
from vtax.errors import UsageError
from vtax.model.plan import Plan
from vtax.sealing import archive
from vtax.sealing.archive import SealError, opened
from vtax.sealing.check import Checked, State, check, differing
from vtax.sealing.opening import as_campaign
from vtax.sealing.seal import Wanted, seal
from vtax.store import Campaign, plan_digest

LATER = "2025-10-09T08:53:22Z"  # two seconds after the first trial


def sealed(campaign: Campaign, wanted: Wanted | None = None) -> Path:
    file = campaign.directory.with_name("mine.vtax.zip")
    file.unlink(missing_ok=True)
    seal(campaign.directory, file, wanted or Wanted())
    return file


def states(found: Checked) -> dict[str, State]:
    return {claim.what: claim.state for claim in found.claims}


def differences(found: Checked, what: str) -> str:
    return "\n".join(one for claim in found.claims if claim.what == what for one in claim.differences)


def rewritten(file: Path, changes: dict[str, bytes | None], *, agree: bool = False) -> Path:
    """The file with members that are changed, added or removed; `agree`: and the manifest names their new hashes."""
    with zipfile.ZipFile(file) as old:
        members = {about.filename: old.read(about) for about in old.infolist()}
    for name, content in changes.items():
        if content is None:
            del members[name]
        else:
            members[name] = content
    if agree:
        manifest = json.loads(members["seal.json"])
        for name, content in changes.items():
            assert content is not None
            about = archive_about(content)
            manifest["files"][name.removeprefix("campaign/")].update(about)
        members["seal.json"] = json.dumps(manifest).encode()
    buffer = io.BytesIO()
    archive.write(buffer, members.items())
    file.write_bytes(buffer.getvalue())
    return file


def archive_about(content: bytes) -> dict[str, object]:
    import hashlib

    return {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}


def member(file: Path, name: str) -> bytes:
    with zipfile.ZipFile(file) as read:
        return read.read(name)


def first_trial(campaign: Campaign) -> str:
    return planned(campaign.plan())[0]


# --- what is in it --------------------------------------------------------------------------------------------------


def test_a_sealed_campaign_holds(campaign: Campaign) -> None:
    found = check(sealed(campaign))
    assert states(found) == {
        "files": State.HOLDS,
        "signature": State.NOT_CHECKED,
        "plan before runs": State.NOT_CHECKED,  # these records are of a version that did not name the plan
        "numbers": State.HOLDS,
        "verdicts": State.HOLDS,
    }
    assert found.holds


def test_the_same_campaign_gives_the_same_bytes(campaign: Campaign) -> None:
    first = sealed(campaign).read_bytes()
    (campaign.directory / "report").mkdir()
    (campaign.directory / "report" / "index.html").write_text("made again at any time")
    for path in campaign.directory.rglob("*"):
        path.touch()
    assert sealed(campaign).read_bytes() == first


def test_sealing_leaves_the_campaign_as_it_was(campaign: Campaign) -> None:
    before = {path: path.read_bytes() for path in campaign.directory.rglob("*") if path.is_file()}
    sealed(campaign)
    assert {path: path.read_bytes() for path in campaign.directory.rglob("*") if path.is_file()} == before


def test_an_existing_file_is_never_replaced(campaign: Campaign, tmp_path: Path) -> None:
    file = tmp_path / "there.zip"
    file.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        seal(campaign.directory, file, Wanted())
    assert file.read_text() == "mine"


def test_raw_output_by_hash_is_not_there_and_numbers_are_not_checked(campaign: Campaign) -> None:
    file = sealed(campaign, Wanted(raw="hashes"))
    trial = first_trial(campaign)
    with zipfile.ZipFile(file) as read:
        names = set(read.namelist())
        manifest = json.loads(read.read("seal.json"))
    raw = f"trials/{trial}/{SAYS}"
    assert f"campaign/{raw}" not in names
    assert f"campaign/trials/{trial}/measurements.json" in names
    content = (campaign.directory / raw).read_bytes()
    assert manifest["files"][raw] == {**archive_about(content), "whole": False}
    found = check(file)
    assert found.holds
    assert states(found)["numbers"] is State.NOT_CHECKED
    assert states(found)["verdicts"] is State.HOLDS


def test_readings_in_the_campaign_are_not_believed(campaign: Campaign) -> None:
    """Somebody changed a number in `measurements.json` and left its digests: the seal has what the output says."""
    trial = first_trial(campaign)
    good = sealed(campaign)
    place = f"trials/{trial}/measurements.json"
    reading = json.loads(member(good, f"campaign/{place}"))
    reading["values"][0]["value"] *= 2
    (campaign.directory / place).write_text(json.dumps(reading))
    assert member(sealed(campaign), f"campaign/{place}") == json_bytes(good, place)


def json_bytes(file: Path, name: str) -> bytes:
    file_content = member(file, f"campaign/{name}")
    assert json.loads(file_content)["values"]
    return file_content


# --- what a check finds ---------------------------------------------------------------------------------------------


def test_a_changed_raw_file_is_found(campaign: Campaign) -> None:
    name = f"campaign/trials/{first_trial(campaign)}/{SAYS}"
    file = sealed(campaign)
    found = check(rewritten(file, {name: member(file, name).replace(b"1092.04", b"1192.04")}))
    assert not found.holds
    assert name.removeprefix("campaign/") in differences(found, "files")
    assert "its hash is another one" in differences(found, "files")


def test_a_number_that_the_raw_output_does_not_say_is_found(campaign: Campaign) -> None:
    name = f"campaign/trials/{first_trial(campaign)}/measurements.json"
    file = sealed(campaign)
    reading = json.loads(member(file, name))
    was = reading["values"][0]["value"]
    reading["values"][0]["value"] = 2 * was
    found = check(rewritten(file, {name: json.dumps(reading).encode()}, agree=True))
    assert states(found)["files"] is State.HOLDS
    assert f"sealed {2 * was}, raw output says {was}" in differences(found, "numbers")
    assert states(found)["verdicts"] is State.FAILS


def test_a_verdict_that_the_numbers_do_not_give_is_found(campaign: Campaign) -> None:
    file = sealed(campaign, Wanted(raw="hashes"))
    analysis = json.loads(member(file, "campaign/analysis.json"))
    analysis["comparisons"][0]["verdict"] = "faster"
    found = check(rewritten(file, {"campaign/analysis.json": json.dumps(analysis).encode()}, agree=True))
    said = differences(found, "verdicts")
    assert said == 'analysis.json: comparisons[0].verdict: sealed "faster", recomputed "data only"'
    assert states(found)["files"] is State.HOLDS


@pytest.mark.parametrize("how", ["missing", "more"])
def test_files_that_are_missing_or_too_many_are_found(campaign: Campaign, how: str) -> None:
    trial = first_trial(campaign)
    gone, more = f"campaign/trials/{trial}/{SAYS}", f"campaign/trials/{trial}/other.stdout"
    changes: dict[str, bytes | None] = {gone: None} if how == "missing" else {more: b"x"}
    found = check(rewritten(sealed(campaign), changes))
    assert differences(found, "files").endswith("it is missing" if how == "missing" else "it was not sealed")


def sealed_records(campaign: Campaign, *, created: str = BEFORE) -> Path:
    """Records that name their plan, as today's versions write them."""
    plan = campaign.plan().sha256

    def named(record: dict[str, object]) -> None:
        record["plan_sha256"] = plan

    for path in (campaign.directory / "trials").rglob("record.json"):
        change(path, named)
    change(campaign.directory / "campaign.json", lambda about: about.update(created=created, plan_sha256=plan))
    return sealed(campaign)


def test_the_plan_was_there_before_the_runs_as_the_records_say(campaign: Campaign) -> None:
    assert states(check(sealed_records(campaign)))["plan before runs"] is State.HOLDS


def test_runs_before_the_campaign_are_found(campaign: Campaign) -> None:
    found = check(sealed_records(campaign, created=LATER))
    assert states(found)["plan before runs"] is State.FAILS
    assert differences(found, "plan before runs").count("began before the campaign") == 2


def test_a_plan_that_was_changed_after_the_runs_is_found(campaign: Campaign) -> None:
    sealed_records(campaign)

    def other(plan: dict[str, object]) -> None:
        plan["estimate_s"] = 1.0
        plan["sha256"] = plan_digest(plan)

    change(campaign.directory / "plan.json", other)
    found = check(sealed(campaign))
    said = differences(found, "plan before runs")
    assert "campaign.json is of another plan" in said
    assert "records of trials is of another plan" in said


def test_documents_are_the_same_up_to_the_last_digits() -> None:
    one = {"a": [1.0, {"b": 0.1 + 0.2}], "c": True}
    assert list(differing(one, {"a": [1.0, {"b": 0.3}], "c": True})) == []
    assert list(differing(one, {"a": [1.0, {"b": 0.31}], "c": True})) == [
        "a[1].b: sealed 0.30000000000000004, recomputed 0.31"
    ]
    assert list(differing({"c": True}, {"c": 1.5})) == ["c: sealed true, recomputed 1.5"]


# --- what it refuses to read ----------------------------------------------------------------------------------------


def plain(tmp_path: Path, members: dict[str, bytes], **about: int) -> Path:
    """A zip archive that vtax did not make."""
    file = tmp_path / "theirs.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = about.get("mode", stat.S_IFREG | 0o644) << 16
            info.compress_type = about.get("compress_type", zipfile.ZIP_DEFLATED)
            made.writestr(info, content)
    return file


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "campaign/../../evil",
        "/etc/cron.d/evil",
        "campaign//etc/evil",
        "campaign/trials/../../evil/x",
        "campaign/trials/a/b/..",
        "campaign/trials/a/b/c/d",
        "campaign/trials/a/b/.hidden",
        "campaign/cells/a\nb.json",
        "campaign/raw/a\\..\\b",
        "campaign/report/index.html",
        "campaign/.lock",
    ],
)
def test_names_that_no_campaign_has_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SealError, match="no file of a campaign has that name"), opened(plain(tmp_path, {name: b"x"})):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.zip"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR])
def test_anything_but_regular_files_is_refused(tmp_path: Path, kind: int) -> None:
    file = plain(tmp_path, {"campaign/plan.json": b"/etc/passwd"}, mode=kind | 0o644)
    with pytest.raises(SealError, match="not a regular file"), opened(file):
        pass


def test_archives_that_would_grow_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = plain(tmp_path, {"campaign/plan.json": bytes(2**20)})  # a kilobyte that becomes a megabyte
    with opened(file) as found:
        assert len(found.read("campaign/plan.json")) == 2**20
    monkeypatch.setattr(archive, "RATIO", 100)
    with pytest.raises(SealError, match="too large"), opened(file):
        pass
    monkeypatch.undo()
    monkeypatch.setattr(archive, "MEMBER_BYTES", 2**20 - 1)
    with pytest.raises(SealError, match="more than"), opened(file):
        pass


def test_too_many_members_are_refused_before_they_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = plain(tmp_path, {f"campaign/cells/{n}.json": b"" for n in range(20)})
    monkeypatch.setattr(archive, "MEMBERS", 19)
    with pytest.raises(SealError, match="more than 19 members"), opened(file):
        pass
    monkeypatch.setattr(archive, "DIRECTORY_BYTES", 1000)  # twenty entries of 46 bytes and their names are more
    with pytest.raises(SealError, match="list of members is too long"), opened(file):
        pass


def test_a_member_that_is_longer_than_it_says_is_refused(tmp_path: Path) -> None:
    file = plain(tmp_path, {"campaign/plan.json": b"0123456789"}, compress_type=zipfile.ZIP_STORED)
    content = bytearray(file.read_bytes())
    listed = content.rindex(b"PK\x01\x02")
    struct.pack_into("<L", content, listed + 24, 9)  # the list says nine bytes, the member has ten
    file.write_bytes(content)
    with pytest.raises(SealError, match=r"damaged|another size"), opened(file) as found:
        found.read("campaign/plan.json")


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "theirs.zip"
    with zipfile.ZipFile(file, "w") as made, pytest.warns(UserWarning, match="Duplicate name"):
        made.writestr("campaign/plan.json", b"1")
        made.writestr("campaign/plan.json", b"2")
    with pytest.raises(SealError, match="there twice"), opened(file):
        pass


def test_every_cut_of_a_file_and_other_files_are_refused(campaign: Campaign) -> None:
    file = sealed(campaign)
    whole = file.read_bytes()
    for length in (0, 1, 21, 22, 1000, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        found = check(file)
        assert not found.holds
        assert "not a sealed campaign" in found.claims[0].said
    file.write_bytes(whole + b"x")
    assert not check(file).holds


def test_a_byte_that_was_flipped_anywhere_never_holds_unnoticed(campaign: Campaign) -> None:
    """Either a check fails, or the byte has no meaning (dates and comments of members) and nothing that was sealed is
    another."""
    file = sealed(campaign, Wanted(raw="hashes"))
    whole = file.read_bytes()
    said = check(file).model_dump(exclude={"file"})
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        found = check(file)
        assert not found.holds or found.model_dump(exclude={"file"}) == said


def test_a_file_that_is_not_as_it_was_sealed_is_not_read_as_a_campaign(campaign: Campaign) -> None:
    name = "campaign/study.toml"
    file = rewritten(sealed(campaign), {name: b"name = 'other'\n"})
    with pytest.raises(SealError, match=re.escape("study.toml: it was changed")), as_campaign(file):
        pass


def test_a_sealed_campaign_is_a_campaign(campaign: Campaign) -> None:
    with as_campaign(sealed(campaign)) as (read, readings):
        assert isinstance(read.plan(), Plan)
        trials = readings.all(read.trials(texts=False))
        assert len(trials) == 8
        assert all(one.measurements for one in trials)
        place = read.directory
    assert not place.exists()
