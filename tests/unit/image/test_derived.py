"""Root file systems with more packages: keys, archives, and what apt's refusals mean."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vtax.errors import ImageError, UsageError
from vtax.events import ignore
from vtax.image import build, derived
from vtax.image.recipe import recipe
from vtax.model.cluster import Image
from vtax.model.study import ImageSpec, Study
from vtax.model.trial import CommandResult
from vtax.paths import Paths
from vtax.planning.preparation import image_of, refuse_unknown_packages
from vtax.planning.study import parse
from vtax.transport import process

BASE = recipe(ImageSpec(), "")
STUDY = """
name = "mine"
baseline = "host"
environments = { host = { provider = "host" } }
[image]
mirror = "http://mirror.example/debian"
EXTRA
[[benchmarks]]
name = "command"
label = "mine"
command = ["true"]
PACKAGES
"""


def study(packages: str = "", extra: str = "") -> Study:
    return parse(STUDY.replace("PACKAGES", packages).replace("EXTRA", extra), "mine.toml")


class Mirror:
    """apt's answer to every question, and the questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, exit_code: int = 0, stderr: str = "") -> None:
        self.asked: list[tuple[str, ...]] = []
        self.made: list[str] = []
        self.exit_code, self.stderr = exit_code, stderr
        monkeypatch.setattr(process, "run", self.run)
        monkeypatch.setattr(build, "missing", lambda: "")
        monkeypatch.setattr(build, "delete", lambda place: shutil.rmtree(place))
        monkeypatch.setattr(derived, "ensure", lambda *_: self.made.append("derived"))

    def run(self, argv: tuple[str, ...], **_: object) -> CommandResult:
        if "--simulate" not in argv:
            return CommandResult(argv=argv, exit_code=1, stdout="", stderr="", started=0, elapsed_s=0)
        self.asked.append(argv)
        return CommandResult(argv=argv, exit_code=self.exit_code, stdout="", stderr=self.stderr, started=0, elapsed_s=0)


def test_the_key_is_of_the_base_and_the_set_of_packages() -> None:
    keys = {derived.key(BASE, names) for names in (["redis-server", "nginx-light"], ["nginx-light", "redis-server"])}
    assert len(keys) == 1
    assert derived.key(BASE, ["redis-server"]) not in keys
    assert derived.key(recipe(ImageSpec(suite="bookworm"), ""), ["redis-server", "nginx-light"]) not in keys
    assert derived.key(BASE, []) == BASE.key


def test_what_the_base_has_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert derived.additional(BASE, ["procps", "redis-server", "redis-server"]) == ("redis-server",)
    image = Image(recipe=BASE.key, digest="", directory="", archive="")
    monkeypatch.setattr(build, "ensure", lambda *_: image)
    assert derived.ensure(tmp_path, BASE, ("procps",), ignore) == image


def test_an_unknown_package_is_named() -> None:
    printed = "Reading package lists...\nE: Unable to locate package nosuch\nE: Unable to locate package no-such2\n"
    error = derived.refused(("nosuch", "no-such2", "redis-server"), printed)
    assert isinstance(error, UsageError)
    assert error.message == "the packages nosuch and no-such2 do not exist in the study's Debian suite and components"
    virtual = "Package awk is a virtual package\nE: Package 'mail-agent' has no installation candidate\n"
    only = derived.refused(("mail-agent",), virtual)
    assert only.message.startswith("the package mail-agent does not exist")


def test_packages_that_do_not_go_together() -> None:
    printed = (
        "The following packages have unmet dependencies:\n a-server : Conflicts: b-server but 2 is to be installed\n"
    )
    error = derived.refused(("a-server", "b-server"), printed)
    assert (type(error), error.detail) == (UsageError, "a-server conflicts b-server but 2 is to be installed")


def test_a_mirror_that_does_not_answer() -> None:
    error = derived.refused(("redis-server",), "\nE: Failed to fetch http://mirror/x  Could not resolve\n")
    assert isinstance(error, ImageError)
    assert "Could not resolve" in error.detail


def test_the_archive_has_no_kernel() -> None:
    command = derived.archive_command(Path("/c/rootfs"), Path("/c/rootfs.tar"))
    assert [word for word in command if word.startswith("--exclude")] == [
        "--exclude=./boot",
        "--exclude=./usr/lib/modules",
    ]


# --- before anything is made ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [study('packages = ["nosuch"]'), study(extra='extra_packages = ["nosuch"]')])
def test_an_unknown_package_is_reported_before_anything_is_made(
    wanted: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror(monkeypatch, 100, "E: Unable to locate package nosuch\nE: apt-get --yes install failed\n")
    paths = Paths(tmp_path / "cache", tmp_path / "state")
    with pytest.raises(UsageError, match="the package nosuch does not exist"):
        image_of(wanted, paths, ignore)
    (argv,) = mirror.asked
    assert argv[-1] == "http://mirror.example/debian"
    assert mirror.made == []
    assert [path.suffix for path in paths.images.iterdir()] == [".lock"]


def test_the_mirror_is_asked_only_about_what_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = Mirror(monkeypatch)
    paths = Paths(tmp_path / "cache", tmp_path / "state")
    refuse_unknown_packages(study(), paths, ignore)
    assert mirror.asked == [], "all packages are vtax's own"
    image = Image(recipe="", digest="", directory="", archive="")
    monkeypatch.setattr(build, "cached", lambda *_: image)  # the base
    refuse_unknown_packages(study(extra='extra_packages = ["gdb"]'), paths, ignore)
    refuse_unknown_packages(study('packages = ["procps"]'), paths, ignore)
    assert mirror.asked == [], "the base has them"
    refuse_unknown_packages(study('packages = ["redis-server"]'), paths, ignore)
    assert len(mirror.asked) == 1
    monkeypatch.setattr(derived, "cached", lambda *_: image)
    refuse_unknown_packages(study('packages = ["redis-server"]'), paths, ignore)
    assert len(mirror.asked) == 1, "it was installed before"
