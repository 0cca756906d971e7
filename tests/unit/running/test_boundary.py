"""What a campaign that somebody else made cannot do to its reader."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from builders.small import PRINTED, new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax import files
from vtax.errors import DamagedError, StoreError, UsageError
from vtax.evaluation import readings as readings_module
from vtax.evaluation.readings import Readings
from vtax.model.facts import KINDS
from vtax.model.names import is_campaign_id
from vtax.model.trial import OUTPUT_BYTES, Status
from vtax.providers.base import UNKNOWN, Site, elsewhere
from vtax.running import provision
from vtax.store import OUTPUT_LINES, Campaign, alive, is_alive, records


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign whose trials all ran."""
    providers = {name: FakeProvider(name, tmp_path / "run") for name in ("host", "box")}
    made = new_campaign(tmp_path / "received", providers, rounds=1, iterations=1)
    store(made, dict.fromkeys(planned(made.plan()), PRINTED))
    return made


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """Rewrite a file of JSON."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


# --- names ---------------------------------------------------------------------------------------------------------

OUTSIDE = ["", ".", "..", "/etc", "../../..", "/root/.ssh", "c1c1c1c1/..", "c1c1c1c1\n", "C1C1C1C1", "-c1c1c1c", "up-"]


@pytest.mark.parametrize("label", [*OUTSIDE, 7, None, ["c1c1c1c1"]])
def test_the_id_of_a_campaign_is_no_path(campaign: Campaign, label: object) -> None:
    changed(campaign.directory / "campaign.json", lambda about: about.update(id=label))
    with pytest.raises(DamagedError, match="its id is not one that vtax gives"):
        Campaign.open(campaign.directory).about()


@pytest.mark.parametrize("label", OUTSIDE)
def test_only_run_time_directories_are_removed(tmp_path: Path, label: str) -> None:
    assert not is_campaign_id(label)
    victim = tmp_path / "victim"
    (victim / "keys").mkdir(parents=True)
    (victim / "keys" / "user").touch()
    campaign: Any = Site("c1c1c1c1", victim / "keys", None, victim / "keys")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not the run-time directory of a campaign"):
        provision.remove_campaign(victim)
    with pytest.raises(UsageError, match="is not the run-time directory of a campaign"):
        provision.remove_site(campaign)
    assert (victim / "keys" / "user").exists()


@pytest.mark.parametrize("label", OUTSIDE)
def test_a_label_that_vtax_does_not_give_belongs_to_nobody(tmp_path: Path, label: str) -> None:
    assert elsewhere(tmp_path, label, None) == UNKNOWN
    assert elsewhere(tmp_path, label, tmp_path / "c1c1c1c1") == UNKNOWN


PLACES: dict[str, Callable[[Any, str], None]] = {
    "the id of a trial": lambda plan, name: plan["cells"][0]["trials"][0].update(id=name),
    "the id of a cell": lambda plan, name: plan["cells"][0].update(id=name),
    "the environment of a cell": lambda plan, name: plan["cells"][0].update(environment=name),
    "an environment": lambda plan, name: plan["environments"][0].update(name=name),
    "an environment of the study": lambda plan, name: plan["study"]["environments"][0].update(name=name),
    "a node": lambda plan, name: plan["shape"]["nodes"][0].update(name=name),
    "work": lambda plan, name: plan["work"][0].update(id=name),
    "the shared file system": lambda plan, name: plan["study"].update(shared_path=name),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["..", "../../etc", "/etc/ssh", ".hidden", "a/../../b", "x\n", "-rf", "x\x1b[2J", ""])
def test_no_name_in_a_plan_is_a_path(campaign: Campaign, place: str, name: str) -> None:
    changed(campaign.directory / "plan.json", lambda plan: PLACES[place](plan, name))
    with pytest.raises(DamagedError, match="should match pattern"):
        campaign.plan()


# --- files that lead out of the campaign ---------------------------------------------------------------------------


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of the reader's, and a directory around it."""
    place = tmp_path / "home" / "precious"
    place.parent.mkdir()
    place.write_text("TOPSECRET-LINE-0x42\n")
    return place


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "the report": lambda root, home: (root / "report").symlink_to(home.parent),
    "the lock": lambda root, home: (root / ".lock").symlink_to(home),
    "the analysis": lambda root, home: (root / "analysis.json").symlink_to(home),
    "a temporary file": lambda root, home: (root / ".audit.json.1.1.tmp").symlink_to(home),
    "cells": lambda root, home: (root / "cells").symlink_to(home.parent),
    "a dangling link": lambda root, home: (root / "x").symlink_to("/no/such/file"),
    "a pipe": lambda root, home: os.mkfifo(root / "trials" / "x"),
}


@pytest.mark.parametrize("kind", LINKS)
def test_a_campaign_with_links_or_pipes_is_refused(campaign: Campaign, precious: Path, kind: str) -> None:
    LINKS[kind](campaign.directory, precious)
    with pytest.raises(DamagedError, match="cannot be part of a campaign: it is a"):
        Campaign.open(campaign.directory)


@pytest.mark.parametrize("name", ["analysis.json", "report/index.html", "report/figures/x.svg"])
def test_a_link_that_is_made_after_all_is_not_followed(campaign: Campaign, precious: Path, name: str) -> None:
    (campaign.directory / "report").symlink_to(precious.parent)
    (campaign.directory / "analysis.json").symlink_to(precious)
    with suppress(StoreError):
        campaign.save(name, b"overwritten")
    assert precious.read_text() == "TOPSECRET-LINE-0x42\n"
    assert [path.name for path in precious.parent.iterdir()] == ["precious"]


@pytest.mark.parametrize("make", [Path.hardlink_to, Path.symlink_to])
def test_a_file_with_the_temporary_name_is_not_written(
    make: Callable[[Path, Path], None], precious: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where somebody guessed it: a new file is made exclusively, and a hard link is no symbolic one."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "ab" * size)
    place = tmp_path / "place"
    place.mkdir()
    make(place / f".{'ab' * 8}.tmp", precious)
    with pytest.raises(FileExistsError):
        files.write(place, "audit.json", b"{}")
    assert precious.read_text() == "TOPSECRET-LINE-0x42\n"
    assert not (place / "audit.json").exists()


def test_a_lock_truncates_nothing(campaign: Campaign, precious: Path) -> None:
    (campaign.directory / ".lock").symlink_to(precious)
    with pytest.raises(StoreError), campaign.exclusive():
        pass
    assert precious.read_text() == "TOPSECRET-LINE-0x42\n"
    assert not campaign.running()


@pytest.mark.parametrize(
    "name", ["../../../../home/precious", "/etc/passwd", "..", ".", "", ".hidden", "a/b", "a\0b", "a\nb", "x" * 256]
)
def test_a_record_names_no_file_of_the_reader(campaign: Campaign, name: str) -> None:
    record = next(campaign.directory.glob("trials/*/*/record.json"))
    for key in ("stdout", "stderr"):
        changed(record, lambda content: content["steps"][0].update({key: name}))  # noqa: B023
        with pytest.raises(DamagedError, match="should match pattern"):
            campaign.trials(texts=False)


SPECIAL: dict[str, Callable[[Path, Path], None]] = {
    "a link": lambda place, home: place.symlink_to(home),
    "a device": lambda place, home: place.symlink_to("/dev/zero"),
    "a pipe": lambda place, home: os.mkfifo(place),
    "a directory": lambda place, home: place.mkdir(),
}


@pytest.mark.parametrize("name", ["../precious", "trials/../../precious", "/etc/passwd", "trials/.."])
def test_a_path_out_of_the_directory_is_refused(campaign: Campaign, name: str) -> None:
    """Whatever the pattern of a record let through."""
    with pytest.raises(OSError, match="it is outside of its directory"):
        files.read(campaign.directory, name, 100)
    with pytest.raises(OSError, match="it is outside of its directory"):
        files.write(campaign.directory, name, b"")


@pytest.mark.parametrize("kind", SPECIAL)
def test_output_that_is_no_regular_file_is_not_read(campaign: Campaign, precious: Path, kind: str) -> None:
    """Neither followed nor waited for, when it is put there after the campaign was opened."""
    output = next(campaign.directory.glob("trials/*/*/*.stdout"))
    output.unlink()
    SPECIAL[kind](output, precious)
    with pytest.raises(DamagedError, match=r"it is (a symbolic link|not a regular file)|Is a directory") as caught:
        campaign.trials()
    assert "TOPSECRET" not in str(caught.value)


def test_a_directory_of_a_trial_that_is_a_link_is_not_followed(campaign: Campaign, tmp_path: Path) -> None:
    cell = next((campaign.directory / "trials").iterdir())
    cell.rename(tmp_path / "moved")
    cell.symlink_to(tmp_path / "moved")
    with pytest.raises(DamagedError, match="Not a directory"):
        campaign.trials()


# --- what survives a loss of power ---------------------------------------------------------------------------------


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was flushed and renamed, in order."""
    done: list[str] = []
    fsync, replace, rename = os.fsync, os.replace, Path.rename

    def seen_fsync(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        done.append(f"{kind} {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    def seen_replace(*places: Any, **more: Any) -> None:
        done.append("rename")
        replace(*places, **more)

    def seen_rename(path: Path, target: Path) -> Path:
        done.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    monkeypatch.setattr(Path, "rename", seen_rename)
    return done


def test_the_directory_of_a_written_file_is_flushed_too(campaign: Campaign, flushed: list[str]) -> None:
    campaign.save("analysis.json", b"{}")
    assert [one.partition(" ")[0] for one in flushed] == ["file", "rename", "directory"]
    assert flushed[-1] == "directory received"


def test_the_directories_of_a_trial_are_flushed(campaign: Campaign, flushed: list[str]) -> None:
    with campaign.new_trial("r009-box/new.1") as place:
        (place / "record.json").write_text("{}")
    before, after = flushed[: flushed.index("rename")], flushed[flushed.index("rename") + 1 :]
    assert sorted(before) == ["directory .new.1.tmp", "file record.json"]  # they are flushed at the same time
    assert after == ["directory r009-box", "directory trials"]


# --- locks ---------------------------------------------------------------------------------------------------------


def test_locks_as_nfs_answers(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """There an exclusive lock needs a file that is open for writing, and fails with EBADF on any other."""
    flock = fcntl.flock

    def nfs(stream: Any, operation: int) -> None:
        writable = fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        if operation & fcntl.LOCK_EX and not writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(stream, operation)

    monkeypatch.setattr(fcntl, "flock", nfs)
    place = campaign.directory.parent / "run" / "c1c1c1c1"
    with alive(place):
        assert is_alive(place)
    assert not is_alive(place)
    with campaign.exclusive():
        assert campaign.running()
    assert not campaign.running()


def test_a_lock_that_only_asks_does_not_stop_a_run(campaign: Campaign) -> None:
    with campaign.exclusive():
        pass
    asking = (campaign.directory / ".lock").open()
    fcntl.flock(asking, fcntl.LOCK_SH)
    threading.Timer(0.2, asking.close).start()
    with campaign.exclusive():
        pass


# --- limits --------------------------------------------------------------------------------------------------------


def enlarged(campaign: Campaign, content: bytes) -> str:
    """Something behind what the first trial printed. Returns the trial's id."""
    output = next(campaign.directory.glob("trials/*/*/*.stdout"))
    output.write_bytes(output.read_bytes() + content)
    return output.parent.relative_to(campaign.directory / "trials").as_posix()


@pytest.mark.parametrize("content", [b"x" * (OUTPUT_BYTES + 1), b"\n" * (OUTPUT_LINES + 1)])
def test_a_trial_that_printed_too_much_failed(campaign: Campaign, content: bytes) -> None:
    """One trial of a campaign, not all of it."""
    name = enlarged(campaign, content)
    found = {one.record.id: one for one in Readings(campaign).all(campaign.trials(texts=False))}
    assert found[name].record.status is Status.FAILED
    assert "a trial may print 64 MiB and 2000000 lines, and this is more" in found[name].record.failure
    assert found[name].measurements == ()
    others = [one for one in found.values() if one.record.id != name]
    assert others
    assert all(one.measurements for one in others)


def test_a_file_of_json_has_a_limit(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "JSON_BYTES", 2**20)
    for name, read in (("plan.json", campaign.plan), ("campaign.json", campaign.about)):
        (campaign.directory / name).write_bytes(b" " * (2**20 + 1))
        with pytest.raises(DamagedError, match=rf"{name} cannot be read: it is larger than 1 MiB"):
            read()


def test_a_campaign_has_limits(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings_module, "VALUES", 1)
    with pytest.raises(DamagedError, match="has more than 1 measurements"):
        Readings(campaign).all(campaign.trials(texts=False))
    monkeypatch.setattr("vtax.store.campaign.TRIALS", 1)
    with pytest.raises(DamagedError, match="has 2 trials, and at most 1 are read"):
        campaign.trials(texts=False)
    monkeypatch.setattr(files, "ENTRIES", 3)
    with pytest.raises(DamagedError, match="it has more than 3 files"):
        Campaign.open(campaign.directory)


def test_a_record_of_many_gigabytes_is_not_read(campaign: Campaign) -> None:
    """The size is asked first: a file with 10 GB of nothing takes no time to make, and none to refuse."""
    path = next(campaign.directory.glob("trials/*/*/record.json"))
    os.truncate(path, 10 * 2**30)
    with pytest.raises(DamagedError, match=r"record\.json cannot be read: it is larger than 256 MiB"):
        campaign.trials()


def test_json_of_many_values_is_not_taken_apart(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair of brackets and a comma each is 60 bytes of memory or more for three of the file."""
    monkeypatch.setattr(records, "JSON_VALUES", 1000)
    (campaign.directory / "plan.json").write_text(f"[{'[],' * 501}[]]")
    for read in (campaign.plan, lambda: campaign.read_json("plan.json"), campaign.plan_bytes):
        with pytest.raises((DamagedError, OSError), match="it has more than 1000 values"):
            read()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("shape.nodes", "1000000 nodes", "shape.nodes: Tuple should have at most 65 items"),
        ("study.rounds", 10**12, "study.rounds: Input should be less than or equal to 500000"),
        ("cells.0.round", 10**12, "cells.0.round: Input should be less than or equal to 500000"),
        ("study.benchmarks.0.iterations", 10**12, "iterations: Input should be less than or equal to 500000"),
    ],
)
def test_a_plan_has_limits(campaign: Campaign, place: str, value: object, said: str) -> None:
    plan = json.loads((campaign.directory / "plan.json").read_bytes())
    *above, last = [int(part) if part.isdecimal() else part for part in place.split(".")]
    here = plan
    for part in above:
        here = here[part]
    here[last] = here[last] * 500_000 if value == "1000000 nodes" else value
    (campaign.directory / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(DamagedError) as caught:
        campaign.plan()
    assert said in str(caught.value) or "values" in str(caught.value)


def test_json_that_is_nested_too_deeply_is_damaged(campaign: Campaign) -> None:
    (campaign.directory / "campaign.json").write_text("[" * 100_000)
    with pytest.raises(DamagedError, match="is damaged"):
        campaign.about()


# --- files that somebody named ---------------------------------------------------------------------------------------


def test_a_file_that_was_named_is_a_regular_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(tmp_path / "socket"))
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/proc/kmsg"), Path("/proc/self/environ")):
        with pytest.raises(OSError, match="it is not a regular file"):
            files.read_given(path, 2**20)
    for path in (tmp_path / "socket", tmp_path, Path(), Path("/")):
        with pytest.raises(OSError, match=r"No such device|Is a directory"):
            files.read_given(path, 2**20)


def test_a_link_of_the_same_folder_may_be_named_and_no_other(tmp_path: Path, precious: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "real.toml").write_text("text")
    (folder / "study.toml").symlink_to("below/real.toml")
    (folder / "elsewhere.toml").symlink_to(precious)
    (tmp_path / "to-the-folder").symlink_to(folder)
    assert files.read_given(folder / "study.toml", 4) == b"text"
    assert files.read_given(tmp_path / "to-the-folder" / "study.toml", 4) == b"text"
    with pytest.raises(OSError, match="it is a symbolic link out of its folder"):
        files.read_given(folder / "elsewhere.toml", 2**20)
    with pytest.raises(OSError, match="it is larger than"):
        files.read_given(folder / "study.toml", 3)


# --- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_facts_are_of_the_kinds_that_vtax_records(campaign: Campaign, name: str) -> None:
    """Of nodes and machines, in the records of cells and in campaign.json: what reads them need not ask."""
    odd: object = [[5]] if name not in ("cpus", "cpus_usable") else "x"
    cell = campaign.plan().cells[0]
    table = {"cell": cell.id, "environment": cell.environment, "round": 1, "instance": 1, "status": "ok"}
    table |= {"started": 1.0, "provision_s": 1.0}
    place = campaign.directory / "cells" / f"{cell.id}.1.json"
    place.parent.mkdir(exist_ok=True)
    for where in ({"host_facts": {name: odd}}, {"machine_facts": {"a": {name: odd}}}):
        place.write_text(json.dumps({**table, **where}))
        with pytest.raises(DamagedError, match=f"the fact '{name}' is not of its kind"):
            campaign.cells()
    place.write_text(json.dumps({**table, "facts": [{"node": "worker1", "values": {name: odd}}]}))
    with pytest.raises(DamagedError, match=f"the fact '{name}' is not of its kind"):
        campaign.cells()
    about = json.loads((campaign.directory / "campaign.json").read_bytes())
    for given in ({"host": {name: odd}}, {"machines": {"a": {name: odd}}}):
        (campaign.directory / "campaign.json").write_text(json.dumps({**about, **given}))
        with pytest.raises(DamagedError, match=f"the fact '{name}' is not of its kind"):
            campaign.about()


def test_facts_of_other_names_are_of_any_kind(campaign: Campaign) -> None:
    """A newer version may record more."""
    about = json.loads((campaign.directory / "campaign.json").read_bytes())
    about["host"] = {"kernel": "6.1", "something_new": [{"x": [1]}]}
    (campaign.directory / "campaign.json").write_text(json.dumps(about))
    assert campaign.about()["host"] == about["host"]
