"""Studies with commands of their author: their files are taken once, plans show them, foreign campaigns need trust."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from builders.small import new_campaign
from fakes.cluster import GIB, FakeProvider
from vtax.cli.own_code import own_commands
from vtax.errors import DamagedError, StudyError, UsageError
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import EnvironmentSpec, Study
from vtax.planning.plan import make_plan
from vtax.planning.resuming import note_made, refuse_changed, refuse_stranger, was_made
from vtax.planning.study import load
from vtax.store import Campaign
from vtax.tools.command.params import CommandParams

MACHINE = HostCapacity(cpu_ids=(0, 1, 2, 3), memory_bytes=32 * GIB)
CONTENT = b"select 1;\n\xff\0"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
TEXT = """
name = "own"
baseline = "host"
[environments.host]
provider = "host"
[nodes]
workers = 1
cpus = 1
[[benchmarks]]
name = "command"
label = "own"
nodes = ["worker1"]
command = ["sh", "-c", "echo one\\necho two", "{{cpus}}"]
files = [{{ from = "{name}"{more} }}]
"""


def study(top: Path, name: str = "sub/init.sql", more: str = "") -> Study:
    path = top / "own.toml"
    path.write_text(TEXT.format(name=name, more=more))
    return load(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "init.sql").write_bytes(CONTENT)
    return tmp_path


def planned(found: Study) -> Plan:
    spec = EnvironmentSpec(name="host", provider="host")
    return make_plan(found.model_copy(update={"environments": (spec,)}), MACHINE, providers())


def providers() -> dict[str, FakeProvider]:
    return {"host": FakeProvider("host", Path("run"), separate_nodes=False)}


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_file_is_read_once_and_known_by_its_hash(folder: Path) -> None:
    found = study(folder)
    assert found.files == {SHA256: CONTENT}
    (file,) = CommandParams.model_validate(dict(found.benchmarks[0].params)).files
    assert (file.sha256, file.size_bytes) == (SHA256, len(CONTENT))
    plan = planned(found)
    assert plan.work[0].steps[0].inputs[0].sha256 == SHA256
    assert "select 1" not in plan.model_dump_json()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "nothing cannot be read: No such file"),
        ("sub", "sub cannot be read"),
        ("link", "link cannot be read: it is a symbolic link"),
        ("linked/init.sql", "linked/init.sql cannot be read"),
        ("large", "large cannot be read: it is larger than 16 MiB"),
    ],
)
def test_a_file_that_cannot_be_taken_is_a_mistake(folder: Path, name: str, says: str) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to("sub")
    with (folder / "large").open("wb") as large:
        large.truncate(16 * 2**20 + 1)
    with pytest.raises(StudyError) as error:
        study(folder, name)
    assert f"benchmarks.own.files[0].from: {says}" in str(error.value)


@pytest.mark.parametrize("name", ["../own.toml", "/etc/passwd", "sub/../../x", ".hidden"])
def test_a_file_is_below_the_study(folder: Path, name: str) -> None:
    with pytest.raises(StudyError, match=r"benchmarks\[0\].files\[0\].from"):
        study(folder, name)


def test_a_pinned_file_must_be_that_one(folder: Path) -> None:
    assert study(folder, more=f', sha256 = "{SHA256}"').files
    with pytest.raises(StudyError, match=r"sub/init\.sql has another one"):
        study(folder, more=f', sha256 = "{"0" * 64}"')


def test_a_campaign_keeps_the_files(folder: Path) -> None:
    found = study(folder)
    campaign = Campaign.create(folder / "campaign", b"", planned(found), about("c1c1c1c1"), found.files.values())
    assert campaign.kept(SHA256) == CONTENT
    (folder / "campaign" / "files" / SHA256).write_bytes(b"changed")
    with pytest.raises(DamagedError, match="was changed"):
        campaign.kept(SHA256)


# --- what a plan shows ---------------------------------------------------------------------------------------------


def test_a_plan_shows_every_command_on_one_line(folder: Path) -> None:
    assert own_commands(planned(study(folder)))[2:] == [
        f"  own: worker1: writes init.sql (sha256 {SHA256})",
        "  own: worker1: setup: vtax-supervise vtax-run -- chmod -- 0755 .",
        "  own: worker1: run: vtax-supervise vtax-run --report usage.json -- sh -c 'echo one\\necho two' 1",
    ]


# --- trust ---------------------------------------------------------------------------------------------------------


def about(name: str) -> dict[str, object]:
    return {"id": name, "image": {"digest": "d", "recipe": "r", "versions": {}}, "host": {}}


def test_a_campaign_that_was_not_made_here_needs_trust(folder: Path) -> None:
    plan = planned(study(folder))
    campaign = Campaign.create(folder / "campaign", b"", plan, about("c1c1c1c1"))
    state = folder / "state"
    with pytest.raises(UsageError, match="was not made here, and its own runs commands"):
        refuse_stranger(campaign, plan, state)
    note_made(campaign, state)
    refuse_stranger(campaign, plan, state)
    refuse_changed(campaign, plan, providers())


def test_a_plan_that_was_changed_was_not_made_here(folder: Path) -> None:
    campaign = Campaign.create(folder / "campaign", b"", planned(study(folder)), about("c1c1c1c1"))
    note_made(campaign, folder / "state")
    assert was_made(campaign, folder / "state")
    path = folder / "campaign" / "plan.json"
    content = json.loads(path.read_text())
    content["work"][0]["steps"][-1]["argv"][-1] = "rm"
    path.write_text(json.dumps(content))
    assert not was_made(campaign, folder / "state")


def test_a_campaign_with_machines_that_was_not_made_here_needs_trust(folder: Path) -> None:
    """Resuming one logs in to whatever it names, with the user's own keys."""
    made = new_campaign(folder / "campaign", {"host": FakeProvider("host", folder)}, machines={"a": "root@node17"})
    with pytest.raises(UsageError, match="was not made here, and uses machines: root@node17") as refused:
        refuse_stranger(made, made.plan(), folder / "state")
    assert "--trust" in refused.value.remedy
    note_made(made, folder / "state")
    refuse_stranger(made, made.plan(), folder / "state")
