"""A cluster that is brought up by hand: by one process at a time, and its file names no path."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from builders.small import IMAGE
from fakes.cluster import node_shape
from vtax import files
from vtax.errors import UsageError
from vtax.events import ignore
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.running import clusters
from vtax.running.clusters import SavedCluster


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    def make(*_: object) -> SavedCluster:
        raise AssertionError("it was made all the same")

    monkeypatch.setattr(clusters, "_up", make)
    return Paths(tmp_path / "cache", tmp_path / "state")


def test_two_processes_do_not_bring_up_the_same_cluster(paths: Paths) -> None:
    (paths.state / "clusters").mkdir(parents=True)
    with (
        files.locked(paths.state / "clusters" / "host.lock") as mine,
        pytest.raises(UsageError, match="host is being brought up by another process"),
    ):
        assert mine
        clusters.up("host", None, paths, ignore)
    with pytest.raises(AssertionError, match="it was made"):
        clusters.up("host", None, paths, ignore)


def test_what_is_up_is_not_brought_up_again(paths: Paths) -> None:
    (paths.state / "clusters").mkdir(parents=True)
    (paths.state / "clusters" / "host.json").write_text("{}")
    with pytest.raises(UsageError, match="host is already up"):
        clusters.up("host", None, paths, ignore)


@pytest.mark.parametrize("label", ["/etc", "..", "", "up-1234", "c1c1c1c1/.."])
def test_the_label_of_a_saved_cluster_is_no_path(label: str) -> None:
    spec = EnvironmentSpec(name="host", provider="host", options={})
    shape = ClusterShape(nodes=(node_shape("master", (0,)),))
    parts = {"spec": spec, "shape": shape, "shared_path": "/shared", "image": IMAGE, "checks": ()}
    assert SavedCluster(campaign="up-12345678", **parts)
    with pytest.raises(ValidationError, match="campaign"):
        SavedCluster(campaign=label, **parts)
