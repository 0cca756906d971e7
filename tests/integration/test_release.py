"""A release, made here as the workflow's first job makes it: from a tag to files, hashes, bill of materials and notes.

What needs GitHub or the package index (identity, attestations, publishing) is not run; only that it is given the files.
"""

from __future__ import annotations

import base64
import csv
import email
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclonedx.schema import OutputFormat
from cyclonedx.validation import make_schemabased_validator
from packaging.utils import canonicalize_name

from vtax import __version__
from vtax.image.sbom import SPECIFICATION

pytestmark = [pytest.mark.integration, pytest.mark.long]
SOURCE = Path(__file__).parents[2]
WORKFLOW = SOURCE / ".github" / "workflows" / "release.yml"
TAG = f"v{__version__}"
WHEEL, SDIST = f"vtax-{__version__}-py3-none-any.whl", f"vtax-{__version__}.tar.gz"
GIT = ("git", "-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@example.org")


def git(place: Path, *words: str) -> str:
    env = {**os.environ, "GIT_AUTHOR_DATE": "2026-11-01T12:00:00Z", "GIT_COMMITTER_DATE": "2026-11-01T12:00:00Z"}
    done = subprocess.run((*GIT, *words), cwd=place, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def checkout(place: Path, change: Callable[[str], str]) -> Path:
    """The repository as it is here, in one commit, with another changelog."""
    for name in git(SOURCE, "ls-files", "-z").split("\0"):
        if name and (SOURCE / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, place / name, follow_symlinks=False)
    path = place / "CHANGELOG.md"
    path.write_text(change(path.read_text()))
    git(place, "init", "-q")
    git(place, "add", "--all")
    git(place, "commit", "-q", "-m", "release")
    git(place, "tag", TAG)
    return place


def dated(changelog: str) -> str:
    return re.sub(rf"^## \[{re.escape(__version__)}\] - .*$", f"## [{__version__}] - 2026-11-01", changelog, flags=re.M)


def undated(changelog: str) -> str:
    return re.sub(rf"^## \[{re.escape(__version__)}\] - .*$", f"## [{__version__}] - Unreleased", changelog, flags=re.M)


def release(place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["scripts/release", TAG], cwd=place, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = checkout(tmp_path_factory.mktemp("release"), dated)
    done = release(place)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_an_unreleased_version_is_refused(tmp_path: Path) -> None:
    done = release(checkout(tmp_path, undated))
    assert done.returncode == 2
    assert done.stderr.startswith(f"release: CHANGELOG.md has no date for {__version__}\n  next: ")
    assert not (tmp_path / "dist").exists()


def test_a_release_is_two_packages_a_bill_and_notes(made: Path) -> None:
    found = {str(path.relative_to(made / "dist")) for path in (made / "dist").rglob("*") if path.is_file()}
    assert found == {f"packages/{WHEEL}", f"packages/{SDIST}", "vtax.cdx.json", "notes.md"}
    assert not (made / ".release").exists()
    changelog = (made / "CHANGELOG.md").read_text()
    section = changelog.partition(f"## [{__version__}] - 2026-11-01\n")[2].partition("\n## [")[0]
    assert (made / "dist" / "notes.md").read_text().strip() == section.strip() != ""


def test_the_wheel_is_what_its_record_says(made: Path) -> None:
    with zipfile.ZipFile(made / "dist" / "packages" / WHEEL) as wheel:
        place = f"vtax-{__version__}.dist-info"
        rows = list(csv.reader(io.StringIO(wheel.read(f"{place}/RECORD").decode())))
        recorded = {name: digest for name, digest, _ in rows}
        assert set(recorded) == set(wheel.namelist())
        for name, digest in recorded.items():
            if name != f"{place}/RECORD":
                own = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip("=")
                assert digest == f"sha256={own}", name
        metadata = email.message_from_bytes(wheel.read(f"{place}/METADATA"))
        sources = {name.removeprefix("vtax/") for name in recorded if name.startswith("vtax/")}
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == (
        "vtax",
        __version__,
        "Apache-2.0",
    )
    tracked = {name.removeprefix("src/vtax/") for name in git(made, "ls-files", "-z", "src/vtax").split("\0") if name}
    assert sources == tracked, "all that is tracked, and nothing else"


def test_the_sdist_has_only_what_is_tracked(made: Path) -> None:
    with tarfile.open(made / "dist" / "packages" / SDIST) as sdist:
        members = sdist.getmembers()
    assert all(member.isreg() for member in members)
    assert {member.mtime for member in members} == {1793534400}, "2026-11-01, 12:00 UTC: the commit's time"
    names = {member.name.removeprefix(f"vtax-{__version__}/") for member in members}
    tracked = set(git(made, "ls-files", "-z").split("\0"))
    assert names - tracked == {"PKG-INFO"}
    assert {"pyproject.toml", "LICENSE", "src/vtax/__init__.py"} <= names


def test_the_bill_is_of_the_wheel(made: Path) -> None:
    text = (made / "dist" / "vtax.cdx.json").read_text()
    assert make_schemabased_validator(OutputFormat.JSON, SPECIFICATION).validate_str(text) is None
    bill = json.loads(text)
    digest = hashlib.sha256((made / "dist" / "packages" / WHEEL).read_bytes()).hexdigest()
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    locked = re.findall(r"^([a-z0-9._-]+)==(\S+)", (made / "requirements.lock").read_text(), re.M)
    named = {(canonicalize_name(one["name"]), one["version"]) for one in bill["components"]}
    assert named <= {(canonicalize_name(name), version) for name, version in locked}, "what it was tested with"
    assert {"numpy", "pydantic", "typer"} <= {name for name, _ in named}


def test_the_same_commit_gives_the_same_files_elsewhere(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(made), str(place))
    done = release(place)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in sorted((made / "dist").rglob("*")):
        if path.is_file():
            assert (place / path.relative_to(made)).read_bytes() == path.read_bytes(), path.name


def test_the_workflow_names_the_files_that_are_there(made: Path, tmp_path: Path) -> None:
    """What the other jobs attest, publish and attach. The last one's command is run, with a stand-in for `gh`."""
    text = WORKFLOW.read_text(encoding="utf-8")
    given = re.findall(r"(?:subject-path|sbom-path|packages-dir): (\S+)", text)
    assert given == ["dist/packages/*", "dist/packages/*", "dist/vtax.cdx.json", "dist/packages/"]
    assert all(list(made.glob(one)) for one in given)
    (line,) = re.findall(r"^      - run: (gh release .*)$", text, re.MULTILINE)
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    gh.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TAG": TAG}
    done = subprocess.run(["bash", "-e", "-c", line], cwd=made, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        *("release", "create", TAG, "--verify-tag", "--title", TAG, "--notes-file", "dist/notes.md"),
        *(f"dist/packages/{WHEEL}", f"dist/packages/{SDIST}", "dist/vtax.cdx.json"),
    ]
