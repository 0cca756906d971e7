"""What makes a root file system of a day: the hooks of its build on real files, and a mirror that nobody signed.

That two builds are the same, byte for byte, is tested in `test_ordinary_user.py`, where there are two.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vtax.errors import ImageError
from vtax.events import ignore
from vtax.image import build, recipe, snapshot
from vtax.model.study import ImageSpec

pytestmark = pytest.mark.integration
HOOKS = {option.partition("-hook=")[0].strip("-"): option.partition("=")[2] for option in snapshot.OPTIONS}
NOVEMBER = "20261101T000000Z"
PLAIN = "deb http://mirror.example/debian trixie main non-free\n"
KEYED = PLAIN.replace("deb ", 'deb [signed-by="/usr/share/keyrings/debian-archive-keyring.gpg"] ')
DATED = PLAIN.replace("deb ", "deb [check-valid-until=no] ")


def run(hook: str, root: Path) -> subprocess.CompletedProcess[str]:
    """A hook as mmdebstrap runs it."""
    words = ["sh", "-c", HOOKS[hook], "exec", str(root)]
    variables = snapshot.environment(NOVEMBER, {"PATH": "/usr/bin:/bin"})
    return subprocess.run(words, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("source", [PLAIN, KEYED])
def test_one_source_may_have_expired_and_is_the_same_on_every_machine(tmp_path: Path, source: str) -> None:
    written = tmp_path / "etc" / "apt" / "sources.list"
    written.parent.mkdir(parents=True)
    written.write_text(source)
    assert run("setup", tmp_path).returncode == 0
    assert written.read_text() == source.replace("deb [", "deb [check-valid-until=no ").replace(
        "deb http", "deb [check-valid-until=no] http"
    )
    assert run("customize", tmp_path).returncode == 0
    assert written.read_text() == DATED


@pytest.mark.parametrize("source", ["", "Types: deb\n", "# deb http://mirror.example/debian trixie main\n"])
def test_a_source_that_is_written_differently_ends_the_build(tmp_path: Path, source: str) -> None:
    written = tmp_path / "etc" / "apt" / "sources.list"
    written.parent.mkdir(parents=True)
    written.write_text(source)
    assert run("setup", tmp_path).returncode != 0


@pytest.mark.parametrize(
    ("date", "code"),
    [
        ("Date: Sat, 12 Sep 2026 07:55:41 UTC\n", 0),
        ("Date: Sun, 01 Nov 2026 00:00:00 UTC\n", 0),
        ("Date: Sun, 01 Nov 2026 00:00:01 UTC\n", 1),
        ("", 1),
    ],
)
def test_a_mirror_that_changed_since_ends_the_build(tmp_path: Path, date: str, code: int) -> None:
    lists = tmp_path / "var" / "lib" / "apt" / "lists"
    lists.mkdir(parents=True)
    (lists / "mirror.example_debian_dists_trixie_InRelease").write_text(
        f"Codename: trixie\n{date}Acquire-By-Hash: yes\n"
    )
    done = run("extract", tmp_path)
    assert done.returncode == code
    assert ("after the snapshot" in done.stderr) is bool(code)


def test_a_mirror_without_lists_ends_the_build(tmp_path: Path) -> None:
    assert run("extract", tmp_path).returncode != 0


def test_an_expired_mirror_must_be_signed_like_any_other(tmp_path: Path) -> None:
    release = tmp_path / "debian" / "dists" / "trixie" / "Release"
    release.parent.mkdir(parents=True)
    release.write_text("Suite: stable\nCodename: trixie\nDate: Sat, 12 Sep 2026 07:55:41 UTC\nComponents: main\n")
    made = recipe.recipe(ImageSpec(mirror=f"file://{tmp_path}/debian", snapshot="2026-11-01"), "")
    with pytest.raises(ImageError, match="could not be built") as caught:
        build.ensure(tmp_path / "images", made, ignore)
    assert "is not signed" in caught.value.detail
    assert [path.name for path in (tmp_path / "images").iterdir()] == [f"{made.key}.lock"]
