"""The cache of root file systems, without building one."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.small import IMAGE
from vtax import files
from vtax.events import ignore
from vtax.image import build
from vtax.image.recipe import recipe
from vtax.model.study import ImageSpec
from vtax.paths import replacing
from vtax.providers.guest import disk


def test_the_cache_is_private_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has setuid programs of the day when it was built; also a cache that an earlier version made."""
    cache = tmp_path / "images"
    cache.mkdir(mode=0o755)
    monkeypatch.setattr(build, "cached", lambda *_: IMAGE)
    assert build.ensure(cache, recipe(ImageSpec(), ""), ignore) == IMAGE
    assert cache.stat().st_mode & 0o777 == 0o700


KEY = "0123456789abcdef"


def abandoned(cache: Path) -> dict[str, Path]:
    """What killed processes left in a cache: a root file system, and a disk of another one."""
    found = {KEY: cache / f".building-{KEY}-a_b1c2d3", "disk.raw": cache / KEY / f".disk.raw.{KEY}.tmp"}
    (found[KEY] / "rootfs").mkdir(parents=True)
    (cache / KEY).mkdir()
    found["disk.raw"].write_text("half")
    (cache / KEY / "disk.raw").write_text("whole")
    (cache / f".building-{KEY}").mkdir()  # none of vtax's names
    return found


def test_what_killed_processes_left_in_the_cache_is_found_and_removed(tmp_path: Path) -> None:
    left = abandoned(tmp_path)
    assert set(build.unfinished(tmp_path)) == set(left.values())
    for place in left.values():
        build.discard(place)
        build.discard(place)  # twice is fine
    assert build.unfinished(tmp_path) == ()
    assert (tmp_path / KEY / "disk.raw").read_text() == "whole"


@pytest.mark.parametrize("name", [KEY, "disk.raw"])
def test_what_is_being_made_in_the_cache_stays(name: str, tmp_path: Path) -> None:
    place = abandoned(tmp_path)[name]
    lock = tmp_path / f"{KEY}.lock" if name == KEY else tmp_path / KEY / "disk.raw.lock"
    with files.locked(lock) as mine:
        assert mine
        assert place not in build.unfinished(tmp_path)
        build.discard(place)
        assert place.exists()


def test_the_next_build_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recipe(ImageSpec(), "")
    left, other = tmp_path / f".building-{made.key}-12345678", tmp_path / f".building-{KEY}-12345678"
    left.mkdir()
    other.mkdir()
    monkeypatch.setattr(build, "_build", lambda *_: IMAGE)
    assert build.ensure(tmp_path, made, ignore) == IMAGE
    assert (left.exists(), other.exists()) == (False, True)


def test_the_next_disk_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    image = IMAGE.model_copy(update={"directory": str(tmp_path / "rootfs")})
    with pytest.raises(OSError, match="full"), replacing(tmp_path / "a.raw") as fresh:
        fresh.write_text("half")
        kept = fresh.rename(tmp_path / f".a.raw.{KEY}.tmp")  # as if this process had been killed here
        raise OSError("full")
    other = tmp_path / f".b.raw.{KEY}.tmp"
    other.write_text("half")

    def make(path: Path) -> None:
        path.write_text("whole")

    assert disk.ensure(image, "a.raw", make).read_text() == "whole"
    assert (kept.exists(), other.exists()) == (False, True)


def test_a_build_marks_what_it_starts(tmp_path: Path) -> None:
    place = tmp_path / f".building-{KEY}-12345678"
    assert build._environment(place)[build.MARK] == place.name
    assert build.working_on(place) == []
