"""The wheel installs and runs alone, with guest programs, presets and templates. The same source is the same wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SOURCE = Path(__file__).parents[2]


def run(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(place: Path, kind: str) -> Path:
    """A wheel or sdist, built as a release builds it: by the locked hatchling."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", place, cwd=SOURCE)
    return next(place.iterdir())


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_the_same_source_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1793491200")
    first, second = (built(tmp_path / name, kind) for name in ("first", "second"))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_a_release_is_of_its_tag() -> None:
    done = subprocess.run(["scripts/release", "v99.0.0"], cwd=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("release: the tag is v99.0.0, but vtax is version")


def test_the_wheel_works_alone(tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(SOURCE / ".tools" / "bin" / "uv")
    wheel = built(tmp_path / "dist", "wheel")
    run(uv, "venv", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path)
    locked = ("--constraint", SOURCE / "requirements.lock")
    run(uv, "pip", "install", "--python", tmp_path / "venv" / "bin" / "python", *locked, wheel, cwd=tmp_path)
    vtax = tmp_path / "venv" / "bin" / "vtax"
    assert run(vtax, "--version", cwd=tmp_path).startswith("vtax ")
    assert "Commands:" in run(vtax, "--help", cwd=tmp_path)
    assert "quick.toml is written" in run(vtax, "init", cwd=tmp_path)
    host_only = (tmp_path / "quick.toml").read_text().partition("[environments.container]")
    (tmp_path / "host.toml").write_text(host_only[0] + host_only[2].partition("\n\n")[2])
    assert "hpcc.workers" in run(vtax, "plan", "--commands", "host.toml", cwd=tmp_path)
    assert "_VTAX_COMPLETE" in run(vtax, "--show-completion", "bash", cwd=tmp_path)
    held = run(sys.executable, "-m", "zipfile", "-l", wheel, cwd=tmp_path)
    for name in (
        "image/guest/build.sh",
        "image/guest/vtax-enter.c",
        "planning/presets/strict.toml",
        "report/formats/templates/style.css",
        "report/formats/templates/figures.js",
        "report/formats/templates/tables.js",
    ):
        assert f"vtax/{name}" in held
    assert os.access(vtax, os.X_OK)
