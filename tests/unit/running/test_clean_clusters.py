"""`vtax clean --machines` of a study with pods: namespaces whose vtax is gone, and no others."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from fakes.kubectl import FakeKubectl
from vtax.model.study import Study
from vtax.paths import Paths
from vtax.planning.study import in_clusters, parse, with_machines
from vtax.running.machine_states import clean_machines
from vtax.store import alive

STUDY = """\
name = "pods"
baseline = "pods"
[environments.pods]
provider = "kubernetes"
nodes = { master = "n1", worker1 = "n2" }
[nodes]
workers = 1
[[benchmarks]]
name = "sysbench-cpu"
"""
GONE, USED = "0123abcd", "4567abcd"


@pytest.fixture
def study() -> Study:
    return parse(STUDY, "study.toml")


def space(label: str, runtime: Path) -> dict[str, Any]:
    about = {"vtax.runtime": str(runtime.resolve()), "vtax.host": socket.gethostname()}
    return {"metadata": {"name": f"vtax-{label}-1", "labels": {"vtax.campaign": label}, "annotations": about}}


def test_only_namespaces_whose_vtax_is_gone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Study
) -> None:
    assert in_clusters(study)
    assert with_machines(study) is study
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place), prepend=":")
    fake, paths = FakeKubectl(place), Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    fake.answer("^version", {"serverVersion": {}})
    fake.answer(f"--selector=vtax.campaign={GONE}", {"items": [space(GONE, paths.runtime)]})
    fake.answer("^get namespaces", {"items": [space(label, paths.runtime) for label in (GONE, USED)]})
    fake.answer("^delete")
    with alive(paths.runtime / USED):
        (listed,) = clean_machines(study, paths, check=True, everything=False)
        assert [one[2] for one in listed.found if one[0] == "kubernetes"] == [f"vtax-{GONE}-1"]
        assert not [line for line in fake.calls if line.startswith("delete")]
        (cleaned,) = clean_machines(study, paths, check=False, everything=False)
    assert cleaned.removed
    deleted = [line for line in fake.calls if line.startswith("delete")]
    assert len(deleted) == 2
    assert all(f"vtax-{GONE}-1" in line for line in deleted)
