"""What is downloaded to build, test, check and release vtax is named by version and hash."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.machinery import SourceFileLoader
from importlib.metadata import distribution
from pathlib import Path

import pytest
from cyclonedx.schema import OutputFormat
from cyclonedx.validation import make_schemabased_validator
from packaging.requirements import Requirement

from vtax.image.sbom import SPECIFICATION, rendered

TOP = Path(__file__).parents[2]
WORKFLOWS = sorted((TOP / ".github" / "workflows").glob("*.yml"))
PINNED = (
    "--require-hashes",
    "--constraint requirements.lock",
    "--no-build-isolation --no-deps",  # a working tree, by the backend that is there
    "--no-index --no-deps",  # a file that was just built
)


def jobs(path: Path) -> dict[str, str]:
    """The text of every job of a workflow, by its name."""
    text = path.read_text(encoding="utf-8").partition("\njobs:\n")[2]
    parts = re.split(r"^  (\w+):$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def permissions(text: str, indentation: str = "    ") -> list[str]:
    """What a job, or with no indentation a whole workflow, may do."""
    found = re.search(rf"^{indentation}permissions:(.*)\n((?:{indentation}  .*\n)*)", text, re.MULTILINE)
    assert found, "no permissions are named, so GitHub chooses"
    if found[1]:
        assert found[1].strip() == "{}"
        return []
    return [line.partition("#")[0].strip() for line in found[2].splitlines()]


@pytest.mark.parametrize("name", ["requirements.lock", "scripts/uv.lock", "scripts/build.lock"])
def test_every_locked_package_has_hashes(name: str) -> None:
    text = (TOP / name).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert [
        one for one in entries if re.match(r"[a-z0-9._-]+==\S+ (?s:.*)--hash=sha256:[0-9a-f]{64}", one) is None
    ] == []


def test_no_lock_names_an_address() -> None:
    for path in (TOP / "requirements.lock", *(TOP / "scripts").glob("*.lock")):
        assert "://" not in path.read_text(encoding="utf-8")


def installs() -> Iterator[tuple[str, str]]:
    """Every line that installs Python packages or builds one, with its file."""
    for path in (TOP / "Makefile", TOP / ".ci" / "run", *sorted((TOP / "scripts").iterdir()), *WORKFLOWS):
        for line in path.read_text(encoding="utf-8").splitlines():
            drives = re.search(r"\b(pip3?|uv|pipx|uvx)\b.*\b(install|build|run|sync)\b|python -m build", line)
            if drives and not line.lstrip().startswith("#"):
                yield path.name, line.strip()


def test_nothing_is_installed_without_a_hash() -> None:
    found = list(installs())
    assert [name for name, _ in found] == ["bootstrap"] * 3 + ["release"] * 2
    assert [line for _, line in found if not any(one in line for one in PINNED)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_keep_no_credentials(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: *(.*)", text)
    assert [one for one in used if re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) is None] == []
    checkouts = sum(one.startswith("actions/checkout@") for one in used)
    assert checkouts
    assert text.count("persist-credentials: false") == checkouts


def test_an_action_has_one_commit_everywhere() -> None:
    used = {one for path in WORKFLOWS for one in re.findall(r"uses: *(\S+)", path.read_text(encoding="utf-8"))}
    assert len(used) == len({one.partition("@")[0] for one in used})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert permissions(text, "") in ([], ["contents: read"])
    assert "pull_request_target" not in text
    assert "secrets." not in text


def test_only_the_job_that_publishes_has_an_identity() -> None:
    """It runs none of our code: a script of the repository, or a package that builds, never sees the identity."""
    found = jobs(TOP / ".github" / "workflows" / "release.yml")
    assert {name: permissions(text) for name, text in found.items()} == {
        "build": ["contents: read"],
        "publish": ["attestations: write", "id-token: write"],
        "announce": ["contents: write"],
    }
    assert [name for name, text in found.items() if "environment:" in text] == ["publish"]
    assert "run:" not in found["publish"]
    assert [re.search(r"needs: (\w+)", text)[1] for text in list(found.values())[1:]] == ["build", "publish"]  # type: ignore[index]
    for name in ("attest-build-provenance", "attest-sbom", "gh-action-pypi-publish"):
        assert f"/{name}@" in found["publish"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_text_of_github_becomes_a_command(path: Path) -> None:
    """A tag or a branch may be called `$(id)`; in a variable of the environment it stays a text."""
    assert [line for line in re.findall(r"run: .*", path.read_text(encoding="utf-8")) if "${{" in line] == []


def test_the_bill_of_a_release_names_all_that_vtax_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("release_sbom", str(TOP / "scripts" / "release-sbom"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    (tmp_path / "vtax.whl").write_bytes(b"wheel")
    bom = module.bill(datetime(2026, 11, 1, tzinfo=UTC), tmp_path / "vtax.whl")
    text = rendered(bom, "json")
    assert make_schemabased_validator(OutputFormat.JSON, SPECIFICATION).validate_str(text) is None
    assert text == rendered(module.bill(datetime(2026, 11, 1, tzinfo=UTC), tmp_path / "vtax.whl"), "json")
    named = {module.key(one.name): one.version for one in bom.components}
    for requirement in map(Requirement, distribution("vtax").requires or ()):
        assert named[module.key(requirement.name)] == distribution(requirement.name).version
    assert {"numpy", "pydantic-core", "typst"} <= set(named)
    assert not {"pytest", "ruff", "lxml"} & set(named)  # what vtax is tested with is not what it needs
