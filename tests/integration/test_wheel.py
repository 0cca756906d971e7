"""The wheel installs and runs alone: guest programs, presets and templates are in it."""

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


def test_the_wheel_works_alone(tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(SOURCE / ".tools" / "bin" / "uv")
    run(uv, "build", "--wheel", "-o", tmp_path / "dist", cwd=SOURCE)
    wheel = next((tmp_path / "dist").glob("*.whl"))
    run(uv, "venv", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path)
    run(uv, "pip", "install", "--python", tmp_path / "venv" / "bin" / "python", wheel, cwd=tmp_path)
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
