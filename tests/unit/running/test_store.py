"""The campaign directory: whole files or none, and an error a person understands for everything else."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vtax.errors import DamagedError, StoreError, UsageError
from vtax.model.cluster import CellRecord, NodeFacts
from vtax.model.look import Decision, Look
from vtax.model.nodes import ClusterShape, HostCapacity, Scope
from vtax.model.plan import Plan
from vtax.model.record import Record
from vtax.model.study import ImageSpec, Study
from vtax.model.trial import Status, StepRecord, TrialRecord
from vtax.planning.plan import digest
from vtax.store import FREE_BYTES, Campaign, alive, is_alive, write_atomic

STUDY = Study(
    name="test",
    seed=1,
    rounds=1,
    baseline="host",
    margin=0.02,
    settle_s=0,
    environments=(),
    workers=2,
    cpus=None,
    memory_bytes=None,
    disk_bytes=None,
    shared_path="/shared",
    image=ImageSpec(),
    benchmarks=(),
)
PLAN = Plan(
    vtax_version="0",
    study=STUDY,
    capacity=HostCapacity(cpu_ids=(0,), memory_bytes=2**30),
    shape=ClusterShape(nodes=()),
    environments=(),
    work=(),
    cells=(),
    estimate_s=0,
)
ABOUT = {
    "id": "c1c1c1c1",
    "created": "2026-01-01T00:00:00Z",
    "host": {"kernel": "6.1"},
    "image": {"digest": "d", "recipe": "r", "versions": {}},
}


def trial(name: str = "r001-host/ping.a-b.1", started: float = 1.0, status: Status = Status.OK) -> TrialRecord:
    step = StepRecord(
        step=0,
        node="a",
        argv=("ping", "b"),
        exit_code=0,
        timed_out=False,
        background=False,
        started=started,
        elapsed_s=0.5,
        stdout="0.a.stdout",
        stderr="0.a.stderr",
        outputs={"result.txt": "0.a.result.txt"},
    )
    return TrialRecord(
        id=name,
        environment="host",
        round=1,
        cell="r001-host",
        work="ping.a-b",
        benchmark="ping",
        label="ping",
        scope=Scope.PAIRS,
        nodes=("a", "b"),
        iteration=1,
        warmup=False,
        params={"count": 3},
        status=status,
        started=started,
        elapsed_s=0.6,
        steps=(step,),
        counters={"a": {"load1": 0.5}},
    )


def cell(instance: int = 1, started: float = 1.0) -> CellRecord:
    return CellRecord(
        cell="r001-host",
        environment="host",
        round=1,
        instance=instance,
        status=Status.OK,
        started=started,
        provision_s=2.0,
        commands=(("docker", "create"),),
        facts=(NodeFacts(node="a", values={"cpus": 2, "interfaces": [{"name": "eth0"}]}),),
        checks=("limits of a",),
    )


def write(campaign: Campaign, record: TrialRecord) -> None:
    with campaign.new_trial(record.id) as place:
        (place / "0.a.stdout").write_text("3 packets\n")
        (place / "0.a.stderr").write_text("")
        (place / "0.a.result.txt").write_bytes(b"bytes \xff that are not UTF-8\n")
        (place / "record.json").write_text(record.model_dump_json(indent=1))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.create(tmp_path / "campaign", b"name = 'test'\n", PLAN, ABOUT)


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


# --- one file ------------------------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_directory(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b.json", b"new")
    assert (tmp_path / "a" / "b.json").read_bytes() == b"new"
    assert files(tmp_path) == ["a/b.json"]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fsync(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    place = tmp_path / "plan.json"
    place.write_bytes(b"old")
    with pytest.raises(StoreError, match=r"plan\.json cannot be written: No space left on device") as caught:
        write_atomic(place, b"new")
    assert caught.value.exit_code == 3
    assert "vtax run --resume" in caught.value.remedy
    assert place.read_bytes() == b"old"
    assert files(tmp_path) == ["plan.json"]


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_atomic(tmp_path / "file" / "plan.json", b"new")


@given(st.binary(max_size=300))
@settings(max_examples=20)
def test_any_content_is_written_as_it_is(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    place = tmp_path_factory.mktemp("store") / "x"
    write_atomic(place, content)
    assert place.read_bytes() == content


# --- a campaign ----------------------------------------------------------------------------------------------------


def test_a_new_campaign(campaign: Campaign) -> None:
    assert files(campaign.directory) == ["campaign.json", "plan.json", "study.toml"]
    assert (campaign.directory / "study.toml").read_bytes() == b"name = 'test'\n"
    again = Campaign.open(campaign.directory)
    assert again.plan() == PLAN
    assert again.about() == ABOUT
    assert again.cells() == ()
    assert again.trials() == ()


def test_a_campaign_says_which_plan_it_began_with(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"sha256": digest(PLAN)})
    campaign = Campaign.create(tmp_path / "c", b"", plan, ABOUT)
    campaign.note_look(Look(rounds=1, decision=Decision.LAST, reason="", at=1.0, plan_sha256=plan.sha256))
    record = trial().model_copy(update={"plan_sha256": plan.sha256})
    seal = campaign.seal([record])
    assert campaign.about()["plan_sha256"] == plan.sha256
    assert (seal.plan, seal.intact, seal.frozen) == (plan.sha256, True, "yes")
    assert set(seal.named.values()) == {(plan.sha256,)}
    assert campaign.seal([record, trial()]).frozen == "unknown"  # one of an older version


def test_a_plan_that_was_changed_and_sealed_again_is_seen(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"sha256": digest(PLAN)})
    campaign = Campaign.create(tmp_path / "c", b"", plan, ABOUT)
    other = PLAN.model_copy(update={"study": STUDY.model_copy(update={"margin": 0.5})})
    campaign.save("plan.json", other.model_copy(update={"sha256": digest(other)}))
    seal = campaign.seal([trial().model_copy(update={"plan_sha256": plan.sha256})])
    assert (seal.intact, seal.frozen) == (True, "no")
    assert dict(seal.others) == {"campaign.json": (plan.sha256,), "records of trials": (plan.sha256,)}


def test_a_plan_that_was_changed_alone_is_seen(tmp_path: Path) -> None:
    campaign = Campaign.create(tmp_path / "c", b"", PLAN.model_copy(update={"sha256": digest(PLAN)}), ABOUT)
    campaign.save("plan.json", campaign.plan().model_copy(update={"estimate_s": 9}))
    assert (campaign.seal([]).intact, campaign.seal([]).frozen) == (False, "no")


def test_a_campaign_of_an_older_version_does_not_say_which_plan_it_began_with(campaign: Campaign) -> None:
    assert (campaign.seal([trial()]).intact, campaign.seal([trial()]).frozen) == (None, "unknown")
    campaign.save("plan.json", PLAN.model_copy(update={"sha256": digest(PLAN)}))
    seal = campaign.seal([trial()])
    assert (seal.intact, seal.silent, seal.frozen) == (True, ("campaign.json", "records of trials"), "unknown")


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    assert Campaign.create(tmp_path, b"", PLAN, ABOUT).plan() == PLAN


def test_a_directory_that_holds_something_will_not(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        Campaign.create(tmp_path, b"", PLAN, ABOUT)
    assert files(tmp_path) == ["thesis.tex"]


def test_what_a_killed_start_left_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / ".0123456789abcdef.tmp").write_text("half")
    (tmp_path / "campaign.json").write_text("{}")
    (tmp_path / "study.toml").write_text("")
    with Campaign(tmp_path).exclusive():
        assert Campaign.create(tmp_path, b"new", PLAN, ABOUT).plan() == PLAN
    assert files(tmp_path) == [".lock", "campaign.json", "plan.json", "study.toml"]
    assert (tmp_path / "study.toml").read_bytes() == b"new"


@pytest.mark.parametrize("names", [("study.toml",), (".lock", "study.toml", "notes.txt"), (".0123456789abcdef.tmp",)])
def test_a_directory_that_a_start_did_not_leave_is_not_begun_again(names: tuple[str, ...], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        Campaign.create(tmp_path, b"", PLAN, ABOUT)
    assert files(tmp_path) == sorted(names)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is not a directory"):
        Campaign.create(tmp_path / "file", b"", PLAN, ABOUT)


@pytest.mark.parametrize(
    ("name", "why"), [("", r"is not a campaign: it has no plan\.json"), ("none", "does not exist")]
)
def test_what_is_not_a_campaign(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        Campaign.open(tmp_path / name)
    assert caught.value.exit_code == 2


def test_one_process_at_a_time(campaign: Campaign) -> None:
    with (campaign.directory / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(UsageError, match="is being run by another process"), campaign.exclusive():
            pytest.fail("two at a time")
    with campaign.exclusive(), pytest.raises(UsageError), Campaign.open(campaign.directory).exclusive():
        pytest.fail("two at a time")
    with campaign.exclusive():
        pass


def test_a_directory_that_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"\.lock cannot be written"), Campaign(tmp_path / "file" / "c").exclusive():
        pytest.fail("locked nothing")


def test_a_run_time_directory_is_alive_while_someone_works_for_it(tmp_path: Path) -> None:
    place = tmp_path / "run" / "c1c1c1c1"
    assert not is_alive(place)
    with alive(place):
        assert is_alive(place)
        assert place.stat().st_mode & 0o777 == 0o700
    assert not is_alive(place)


# --- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "damaged, or of another version: the file: Invalid JSON"),
        ('{"format": 1', "the file: Invalid JSON"),
        ("[]", "the file: Input should be an object"),
        ("{}", "vtax_version: Field required"),
        (PLAN.model_dump_json().replace('"estimate_s":0.0', '"estimate_s":"soon"'), "estimate_s: Input should be"),
        (PLAN.model_dump_json().replace('"rounds":1', '"rounds":1,"more":1'), "study.more: Extra inputs are not perm"),
    ],
)
def test_a_damaged_plan(campaign: Campaign, text: str, said: str) -> None:
    (campaign.directory / "plan.json").write_text(text)
    with pytest.raises(DamagedError) as caught:
        campaign.plan()
    assert said in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"id": "c1c1c1c1", "host": {"load": NaN}, "image": {"digest": "", "recipe": "", "versions": {}}}',
        b'{"id": "c1c1c1c1", "host": {}, "image": "d"}',
        b'{"id": "c1c1c1c1", "host": {}, "image": {"digest": "d"}}',
    ],
)
def test_damaged_provenance(campaign: Campaign, content: bytes) -> None:
    (campaign.directory / "campaign.json").write_bytes(content)
    with pytest.raises(DamagedError, match=r"campaign\.json is damaged"):
        campaign.about()


def test_missing_provenance(campaign: Campaign) -> None:
    (campaign.directory / "campaign.json").unlink()
    with pytest.raises(DamagedError, match=r"campaign\.json cannot be read: No such file"):
        campaign.about()


def test_a_missing_output(campaign: Campaign) -> None:
    write(campaign, trial())
    (campaign.directory / "trials/r001-host/ping.a-b.1/0.a.stdout").unlink()
    with pytest.raises(DamagedError, match=r"0\.a\.stdout cannot be read: No such file"):
        campaign.trials()
    assert len(campaign.trials(texts=False)) == 1


WHOLE = trial().model_dump_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        WHOLE[:200],
        "\0\1",
        WHOLE.replace('"elapsed_s":0.6', '"elapsed_s":-5'),
        WHOLE.replace('"elapsed_s":0.6', '"elapsed_s":NaN'),
        WHOLE.replace('"elapsed_s":0.5', '"elapsed_s":-0.1'),
        WHOLE.replace('"started":1.0', '"started":-1.0'),
        WHOLE.replace('"started":1.0', '"started":Infinity'),
        WHOLE.replace('"load1":0.5', '"load1":NaN'),
        WHOLE.replace('"count":3', '"count":NaN'),
    ],
)
def test_a_damaged_record(campaign: Campaign, text: str) -> None:
    assert text != WHOLE
    write(campaign, trial())
    path = campaign.directory / "trials/r001-host/ping.a-b.1/record.json"
    path.write_text(text)
    with pytest.raises(DamagedError, match=rf"^{re.escape(str(path))} is damaged") as caught:
        campaign.trials(texts=False)
    assert caught.value.exit_code == 2


def test_a_word_that_only_looks_like_no_number_is_no_damage(campaign: Campaign) -> None:
    write(campaign, trial().model_copy(update={"failure": "it printed NaN and Infinity"}))
    assert campaign.trials()[0].failure == "it printed NaN and Infinity"


@pytest.mark.parametrize("place", ["trials/r001-host/ping.a-b.1 (copy)", "trials/r002-host/ping.a-b.1"])
def test_a_copied_trial_is_refused_and_both_are_named(campaign: Campaign, place: str) -> None:
    write(campaign, trial())
    first, copy = campaign.directory / "trials/r001-host/ping.a-b.1", campaign.directory / place
    shutil.copytree(first, copy)
    with pytest.raises(DamagedError) as caught:
        campaign.trials(texts=False)
    assert str(copy / "record.json") in caught.value.message
    assert str(first) in caught.value.detail
    assert str(copy) in caught.value.remedy
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cells/r001-host.1.json", "{"),
        ("cells/r001-host.1.json", cell().model_dump_json().replace('"provision_s":2.0', '"provision_s":-2')),
        ("cells/r001-host.1.json", cell().model_dump_json().replace('"cpus":2', '"cpus":NaN')),
        ("looks.json", ""),
        ("looks.json", '{"looks": [1]}'),
    ],
)
def test_a_damaged_cell_or_look(campaign: Campaign, name: str, text: str) -> None:
    campaign.save(name, text.encode())
    with pytest.raises(DamagedError, match=rf"{re.escape(name)} is damaged") as caught:
        (campaign.cells(), campaign.look_log())
    assert caught.value.exit_code == 2


# --- cells ---------------------------------------------------------------------------------------------------------


def test_cells_come_back_in_the_order_of_time(campaign: Campaign) -> None:
    later, first = cell(instance=2, started=9.0), cell(instance=1, started=3.0)
    campaign.save_cell(later)
    campaign.save_cell(first)
    assert campaign.cells() == (first, later)
    assert files(campaign.directory / "cells") == ["r001-host.1.json", "r001-host.2.json"]


def test_a_cell_is_saved_over_itself(campaign: Campaign) -> None:
    campaign.save_cell(cell())
    lost = cell().model_copy(update={"status": Status.FAILED, "failure": "lost"})
    campaign.save_cell(lost)
    assert campaign.cells() == (lost,)


# --- trials --------------------------------------------------------------------------------------------------------


def test_a_trial_comes_back_with_its_texts(campaign: Campaign) -> None:
    write(campaign, trial())
    assert campaign.has(trial().id)
    (found,) = campaign.trials()
    assert found.model_copy(update={"texts": {}}) == trial()
    assert found.output() == "3 packets\n"
    assert found.file("result.txt") == "bytes � that are not UTF-8\n"
    assert campaign.trials(texts=False) == (trial(),)


def test_trials_come_back_in_the_order_of_time(campaign: Campaign) -> None:
    names = {"r002-host/b.1": 2.0, "r001-host/z.1": 1.0, "r001-host/a.1": 1.0}
    for name, started in names.items():
        write(campaign, trial(name, started))
    assert [record.id for record in campaign.trials(texts=False)] == ["r001-host/a.1", "r001-host/z.1", "r002-host/b.1"]


def test_a_trial_has_no_name_until_it_is_whole(campaign: Campaign) -> None:
    record = trial()
    with campaign.new_trial(record.id) as place:
        (place / "record.json").write_text(record.model_dump_json())
        assert not campaign.has(record.id)
        assert campaign.trials(texts=False) == ()
    assert campaign.has(record.id)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_trial_that_is_interrupted_leaves_nothing(campaign: Campaign, error: type[BaseException]) -> None:
    with pytest.raises(error), campaign.new_trial("r001-host/ping.a-b.1") as place:
        (place / "record.json").write_text("{")
        raise error
    assert campaign.trials() == ()
    assert files(campaign.directory / "trials") == []


def test_what_a_killed_process_left_is_no_trial_and_in_nobody_s_way(campaign: Campaign) -> None:
    left = campaign.directory / "trials/r001-host/.ping.a-b.1.tmp"
    left.mkdir(parents=True)
    (left / "record.json").write_text(trial().model_dump_json())
    assert not campaign.has(trial().id)
    assert campaign.trials() == ()
    write(campaign, trial())
    assert len(campaign.trials()) == 1
    assert not left.exists()


def test_a_trial_is_never_replaced(campaign: Campaign) -> None:
    write(campaign, trial())
    with pytest.raises(StoreError, match="cannot be written"):
        write(campaign, trial(started=5.0))
    assert campaign.trials(texts=False) == (trial(),)


def test_a_campaign_stops_before_the_disk_is_full(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(campaign.directory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=FREE_BYTES - 1))
    with pytest.raises(StoreError, match="less than 64 MiB free") as caught:
        write(campaign, trial())
    assert caught.value.exit_code == 3
    assert files(campaign.directory / "trials") == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=FREE_BYTES))
    write(campaign, trial())


def test_a_disk_that_fills_up_during_a_trial(campaign: Campaign, full_disk: None) -> None:
    with pytest.raises(StoreError, match="No space left on device"):
        write(campaign, trial())
    assert files(campaign.directory / "trials") == []
    assert not campaign.has(trial().id)


# --- derived files -------------------------------------------------------------------------------------------------


def test_derived_files(campaign: Campaign) -> None:
    assert campaign.save("report/index.html", b"<html>").read_bytes() == b"<html>"
    saved = campaign.save("analysis.json", {"name": "größe"})
    assert saved.read_bytes() == '{\n "name": "größe"\n}\n'.encode()
    assert json.loads(campaign.save("image.json", ImageSpec()).read_text())["suite"] == "trixie"


# --- any record ----------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.from_regex(r"[a-h1-3][a-h1-3.-]{0,8}", fullmatch=True)
TIMES = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TIMES, TEXTS),
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(TEXTS, inside, max_size=3)),
    max_leaves=6,
)
COUNTS = st.integers(1, 500_000)
STEPS = st.builds(
    StepRecord,
    step=st.integers(0, 9),
    node=NAMES,
    argv=st.lists(TEXTS, max_size=3).map(tuple),
    exit_code=st.integers(-64, 255),
    timed_out=st.booleans(),
    background=st.booleans(),
    started=TIMES,
    elapsed_s=TIMES,
    stdout=NAMES,
    stderr=NAMES,
    outputs=st.dictionaries(TEXTS, NAMES, max_size=2),
)
RECORDS = st.builds(
    TrialRecord,
    id=NAMES,
    environment=NAMES,
    round=COUNTS,
    cell=NAMES,
    work=NAMES,
    benchmark=TEXTS,
    label=TEXTS,
    scope=st.sampled_from(Scope),
    nodes=st.lists(NAMES, max_size=3).map(tuple),
    iteration=COUNTS,
    warmup=st.booleans(),
    params=st.dictionaries(TEXTS, JSON, max_size=3),
    status=st.sampled_from(Status),
    failure=TEXTS,
    started=TIMES,
    elapsed_s=TIMES,
    steps=st.lists(STEPS, max_size=2).map(tuple),
    counters=st.dictionaries(NAMES, st.dictionaries(NAMES, TIMES, max_size=2), max_size=2),
    texts=st.just({}),
)


def back(record: Record) -> Record:
    return type(record).model_validate_json(record.model_dump_json(indent=1))


@given(RECORDS)
@settings(max_examples=100, deadline=None)
def test_any_record_survives_the_file(record: TrialRecord) -> None:
    assert back(record) == record


@given(RECORDS)
@settings(max_examples=40, deadline=None)
def test_the_start_of_a_record_is_never_a_record(record: TrialRecord) -> None:
    text = record.model_dump_json()
    for end in range(0, len(text), max(1, len(text) // 20)):
        with pytest.raises(ValueError):
            TrialRecord.model_validate_json(text[:end])
