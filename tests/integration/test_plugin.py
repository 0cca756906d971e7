"""A plug-in package with a tool and a provider that vtax does not know: one folder each, and everything follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
SOURCE = Path(__file__).parents[1] / "plugin"
STUDY = """
name = "plugin"
rounds = 2
baseline = "host"

[environments.host]
provider = "host"

[environments.other]
provider = "toy"

[nodes]
workers = 2
cpus = 1
memory = "512 MiB"

[[benchmarks]]
name = "dd"
blocks = 32
nodes = ["worker1"]
"""
LOG = """\
user@box:~$ dd if=/dev/zero of=/dev/null bs=1M count=4096
4096+0 records in
4096+0 records out
4294967296 bytes (4.3 GB, 4.0 GiB) copied, 0.5 s, 8.6 GB/s
"""
Vtax = Callable[..., str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of Python packages into which the plug-in is installed, as from a wheel."""
    place = tmp_path_factory.mktemp("site")
    checkout = SOURCE.parents[1]
    uv = shutil.which("uv") or str(checkout / ".tools" / "bin" / "uv")
    source = shutil.copytree(SOURCE, place / "source", ignore=shutil.ignore_patterns("__pycache__"))
    alone = ("--no-deps", "--no-build-isolation")  # by the locked build backend that is in this environment
    words = (uv, "-q", "pip", "install", "--python", sys.executable, *alone, "--target", place / "lib", source)
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "lib"


@pytest.fixture
def vtax(site: Path, tmp_path: Path, state: Path, cache: Path) -> Vtax:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(site), os.environ.get("PYTHONPATH", ""))),
        "XDG_STATE_HOME": str(state),
        "XDG_CACHE_HOME": str(cache),
    }

    def run(*words: str, code: int = 0) -> str:
        argv = [sys.executable, "-m", "vtax", *words]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_a_tool_and_a_provider_of_others_are_like_those_of_vtax(vtax: Vtax, tmp_path: Path) -> None:
    assert "toy: works" in vtax("doctor").replace("  ", " ")
    (tmp_path / "study.toml").write_text(STUDY)
    vtax("run", "study.toml", "--output", "c")
    campaign = tmp_path / "c"
    plan = json.loads((campaign / "plan.json").read_text())
    assert plan["capabilities"]["other"]["kind"] == "host"
    facts = [
        node["values"]["versions"]["coreutils"]
        for path in (campaign / "cells").glob("*.json")
        for node in json.loads(path.read_text())["facts"]
    ]
    assert len(facts) == 4 * 3
    assert len(set(facts)) == 1
    read = json.loads(next((campaign / "trials").glob("*other/dd*/measurements.json")).read_text())
    assert read["outputs"][0]["facts"]["copied_bytes"] == 32 * 2**20
    assert [value["metric"] for value in read["values"]] == ["copy_rate"]
    rows = {row["id"]: row for row in json.loads((campaign / "audit.json").read_text())["rows"]}
    assert rows["X01"]["outcome"] == "fail"
    assert "dd in other copied 33554432 bytes" in str(rows["X01"]["findings"])
    page = (campaign / "report" / "index.html").read_text()
    for text in ("copy_rate", "Times of copies", "copied 33554432 bytes", "coreutils", 'id="memory"'):
        assert text in page, text
    assert "copy\\_rate" in (campaign / "report" / "report.md").read_text()
    vtax("report", "c", "--format", "latex", "--figures", "svg")
    assert list((campaign / "report" / "figures").glob("dd-times-of-copies*.svg"))
    assert "copy_rate" in vtax("export", "c")


def test_its_logs_are_imported(vtax: Vtax, tmp_path: Path) -> None:
    (tmp_path / "logs" / "vm").mkdir(parents=True)
    (tmp_path / "logs" / "vm" / "one.txt").write_text(LOG)
    (tmp_path / "logs" / "vm" / "two.txt").write_text(LOG.replace("0.5 s, 8.6", "0.4 s, 10.7"))
    said = vtax("import", "logs", "--layout", "logs/{environment}/*", "--into", "theirs")
    assert "dd" in said
    table = [line for line in vtax("export", "theirs").splitlines() if "copy_rate" in line]
    assert len(table) == 2
    vtax("report", "theirs")
    assert "copy\\_rate" in (tmp_path / "theirs" / "report" / "report.md").read_text()
    rows = {row["id"]: row for row in json.loads((tmp_path / "theirs" / "audit.json").read_text())["rows"]}
    assert rows["X01"]["outcome"] == "pass"


def test_its_reference_is_written(site: Path) -> None:
    script = SOURCE.parents[1] / "scripts" / "metrics-reference"
    path = os.pathsep.join((str(site), os.environ.get("PYTHONPATH", "")))
    words = [sys.executable, str(script), "-"]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "copy_rate" in done.stdout
    assert "bytes copied a second" in done.stdout
