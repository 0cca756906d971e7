"""The keys of a campaign, and the cache of root file systems: whole pairs, and for nobody else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.small import IMAGE
from vtax.cluster.keys import make_keys
from vtax.image import build, integrity
from vtax.image.recipe import recipe
from vtax.model.study import ImageSpec
from vtax.transport import process


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the keys that ssh-keygen is asked for; it refuses to replace any, as it does."""
    names: list[str] = []

    def run(argv: Sequence[str], **_: Any) -> None:
        place = Path(argv[argv.index("-f") + 1])
        assert not place.exists()
        place.write_text("private")
        place.with_name(f"{place.name}.pub").write_text("ssh-ed25519 AAAA\n")
        names.append(place.name)

    monkeypatch.setattr(process, "run", run)
    return names


def test_half_a_pair_is_made_anew(tmp_path: Path, made: list[str]) -> None:
    make_keys(tmp_path / "keys", ["master", "worker1"])
    assert sorted(made) == ["master", "user", "worker1"]
    (tmp_path / "keys" / "worker1.pub").unlink()  # as a killed ssh-keygen leaves it
    made.clear()
    make_keys(tmp_path / "keys", ["master", "worker1"])
    assert made == ["worker1"]
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("uid", [0, 1000])
def test_the_cache_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    """Its trees have setuid programs of the day of the build."""
    (tmp_path / "images").mkdir(mode=0o755)
    (tmp_path / "images").chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(integrity, "verify", lambda image: None)
    monkeypatch.setattr(build, "cached", lambda cache, made: IMAGE)
    assert build.ensure(tmp_path / "images", recipe(ImageSpec(), ""), lambda event: None) == IMAGE
    assert (tmp_path / "images").stat().st_mode & 0o777 == 0o700
