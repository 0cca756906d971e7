"""The cache of root file systems, without building one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.small import IMAGE
from fakes.cluster import result_of
from vtax import files
from vtax.errors import ImageError, UsageError
from vtax.events import ignore
from vtax.image import build, integrity, travel
from vtax.image.recipe import recipe
from vtax.model.cluster import Image
from vtax.model.study import ImageSpec
from vtax.model.trial import CommandResult
from vtax.paths import replacing
from vtax.providers.guest import disk
from vtax.transport import process


def test_the_cache_is_private_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has setuid programs of the day when it was built; also a cache that an earlier version made."""
    cache = tmp_path / "images"
    cache.mkdir(mode=0o755)
    monkeypatch.setattr(build, "cached", lambda *_: IMAGE)
    verified: list[Image] = []
    monkeypatch.setattr(integrity, "verify", verified.append)
    assert build.ensure(cache, recipe(ImageSpec(), ""), ignore) == IMAGE
    assert cache.stat().st_mode & 0o777 == 0o700
    assert verified == [IMAGE]


def test_the_cache_of_another_machine_is_private_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "images"
    cache.mkdir(mode=0o755)

    def unpacked(*_: object) -> None:
        raise ImageError("not here")

    monkeypatch.setattr(travel, "_unpacked", unpacked)
    with pytest.raises(ImageError, match="not here"):
        travel.install(cache, IMAGE)
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_program_of_the_tree_that_is_asked_about_this_cpu_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **_: object) -> CommandResult:
        asked.append(argv)
        return result_of(argv, (0, "Haswell\n", ""))

    monkeypatch.setattr("vtax.transport.process.run", run)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert build.blas_core(IMAGE) == "Haswell"
    assert asked[0][:3] == ("chroot", "--userspec=65534:65534", "--groups=65534")


LISTED = (
    "rootfs\td 0755 0 0 4096 1.5 1.5 ",
    "rootfs/bin\td 0755 0 0 4096 1.5 1.5 ",
    "rootfs/bin/a b\tf 0755 0 0 7 1.5 2.5 ",
    "rootfs/link\tl 0777 0 0 5 1.5 2.5 bin/a",
    "rootfs/scratch\td 0755 0 0 4096 1.5 1.5 ",
    "rootfs.tar\tf 0644 0 0 70 1.5 2.5 ",
)


def listing(*entries: str) -> str:
    return "".join(f"{entry}\0" for entry in entries)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("7 1.5 2.5", "7 1.5 2.6"),
        ("f 0755", "f 04755"),
        ("bin/a\0", "bin/b\0"),
        ("rootfs/bin\td 0755", "rootfs/bin\td 0777"),
        ("rootfs/bin\td 0755 0", "rootfs/bin\td 0755 9"),
        ("rootfs.tar\tf 0644 0 0 70", "rootfs.tar\tf 0644 0 0 71"),
        ("rootfs/scratch\td", "rootfs/scratch\tf"),
    ],
)
def test_any_change_of_a_tree_changes_its_hash(before: str, after: str) -> None:
    whole = listing(*LISTED)
    assert before in whole
    assert integrity.digest(whole.replace(before, after)) != integrity.digest(whole)


def test_neither_order_nor_empty_directories_change_the_hash() -> None:
    known = integrity.digest(listing(*LISTED))
    assert integrity.digest(listing(*reversed(LISTED))) == known
    assert integrity.digest(listing(*LISTED, "rootfs/mnt/shared\td 0700 0 0 4096 9.5 9.5 ")) == known
    assert integrity.digest(listing(*LISTED).replace("4096 1.5 1.5", "4096 9.5 9.5")) == known
    assert integrity.digest(listing(*LISTED, "rootfs/new\tf 0644 0 0 0 9.5 9.5 ")) != known


@pytest.mark.parametrize(
    ("noted", "message"),
    [(None, "it is not known what .* contained"), ("other", "has been changed since it was built"), ("same", "")],
)
def test_a_tree_that_was_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: str | None, message: str
) -> None:
    monkeypatch.setattr(integrity, "found", lambda place: {tmp_path: "same"}[place])
    image = IMAGE.model_copy(update={"directory": str(tmp_path / "rootfs"), "recipe": "12ab"})
    if noted is not None:
        (tmp_path / integrity.FILE).write_text(noted)
    if not message:
        integrity.verify(image)
        return
    with pytest.raises(ImageError, match=message) as refused:
        integrity.verify(image)
    assert refused.value.remedy == "`vtax image remove 12ab`, then `vtax image build`"


def test_a_snapshot_of_the_future_is_refused(tmp_path: Path) -> None:
    """Archives answer with their newest state then, so tomorrow's build would be another one."""
    with pytest.raises(UsageError, match="20990101T000000Z is in the future") as caught:
        build.ensure(tmp_path / "images", recipe(ImageSpec(snapshot="2099-01-01"), ""), ignore)
    assert "up to today" in caught.value.remedy


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


def test_what_is_being_packed_for_another_machine_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`vtax clean` of another campaign runs meanwhile."""
    place = tmp_path / KEY
    place.mkdir()
    found: list[tuple[Path, ...]] = []

    def run(argv: Sequence[str], **more: Any) -> CommandResult:
        fresh = more.get("stdout") or Path(argv[argv.index("-czf") + 1])
        fresh.write_text("half")
        found.append(build.unfinished(tmp_path))
        return result_of(argv, (0, "", ""))

    monkeypatch.setattr(process, "run", run)
    changed = {"archive": str(place / "rootfs.tar"), "directory": str(place / "rootfs")}
    made = travel.packed(IMAGE.model_copy(update=changed))
    assert found == [(), ()]
    assert [path.read_text() for path in made.values()] == ["half", "half"]


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
    assert build.marked({}, place)[build.MARK] == place.name
    assert build.working_on(place) == []
