"""A directory that machines share: tried before the start, and cleaned of what a crash left there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vtax.running import shared
from vtax.running.sites import ORIGIN

OWN = "vtax-0123abcd-89abcdef"


def test_what_one_machine_writes_the_others_read(tmp_path: Path) -> None:
    assert shared.written(tmp_path, "t1") == ""
    assert shared.read(tmp_path, "t1") == "t1"
    assert shared.read(tmp_path, "t2") == ""
    shared.remove(tmp_path, "t1")
    shared.remove(tmp_path, "t1")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert shared.written(tmp_path / "x", "t") == f"it has no directory {tmp_path}/x"
    assert shared.read(tmp_path / "x", "t") is None


def note(tmp_path: Path, **content: str) -> Path:
    path = tmp_path / ORIGIN
    path.write_text(json.dumps(content))
    return path


def test_the_part_of_a_crashed_cluster_is_removed_and_nothing_else(tmp_path: Path) -> None:
    common = tmp_path / "common"
    for name in (OWN, "vtax-0123abcd-00000000", "home"):
        (common / name / "x").mkdir(parents=True)
    shared.remove_abandoned(note(tmp_path, shared=str(common / OWN)))
    assert sorted(path.name for path in common.iterdir()) == ["home", "vtax-0123abcd-00000000"]
    shared.remove_abandoned(note(tmp_path, shared=str(common / OWN)))  # twice is fine


@pytest.mark.parametrize("name", ["home", "vtax-0123abcd", "../home", f"{OWN}/../home", ""])
def test_a_note_that_names_something_else_removes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "common/home/x").mkdir(parents=True)
    shared.remove_abandoned(note(tmp_path, shared=f"{tmp_path}/common/{name}"))
    assert (tmp_path / "common/home/x").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home/x").mkdir(parents=True)
    (tmp_path / OWN).symlink_to(tmp_path / "home")
    shared.remove_abandoned(note(tmp_path, shared=str(tmp_path / OWN)))
    assert (tmp_path / "home/x").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"shared": 3}'])
def test_a_note_without_a_directory(tmp_path: Path, text: str) -> None:
    (tmp_path / ORIGIN).write_text(text)
    shared.remove_abandoned(tmp_path / ORIGIN)
