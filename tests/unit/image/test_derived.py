"""Root file systems with more packages: keys, archives, and what apt's refusals mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax.errors import ImageError, UsageError
from vtax.events import ignore
from vtax.image import build, derived
from vtax.image.recipe import recipe
from vtax.model.cluster import Image
from vtax.model.study import ImageSpec

BASE = recipe(ImageSpec(), "")


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
