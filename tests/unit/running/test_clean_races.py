"""`vtax clean`, `up` and `down` at the same moment: every order of what two of them do, forced by a hook."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.small import IMAGE
from fakes.cluster import FakeProvider, node_shape
from vtax import files
from vtax.errors import UsageError
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.providers.base import Leftover
from vtax.running import clusters, leftovers
from vtax.running.clusters import SavedCluster
from vtax.store import alive, is_alive, unused

LABEL = "up-12345678"
SPEC = EnvironmentSpec(name="host", provider="host", options={})


class Destroying(FakeProvider):
    """A provider that notes the labels whose clusters it destroyed."""

    def __init__(self) -> None:
        super().__init__("host", Path("run"))
        self.labels: list[str] = []

    def destroy(self, campaign: str) -> None:
        self.labels.append(campaign)

    def leftovers(self) -> tuple[Leftover, ...]:
        return (Leftover("host", "process", "1", LABEL),)


@pytest.fixture
def supplier(monkeypatch: pytest.MonkeyPatch) -> Destroying:
    one = Destroying()

    def all_providers(_: Path) -> Mapping[str, Destroying]:
        return {"host": one}

    monkeypatch.setattr(leftovers, "all_providers", all_providers)
    monkeypatch.setattr(clusters, "provider", lambda *_: one)
    return one


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "cache", tmp_path / "state")


def saved(paths: Paths, label: str = LABEL) -> Path:
    """What `vtax up` writes when its cluster is up."""
    shape = ClusterShape(nodes=(node_shape("master", (0,)),))
    about = SavedCluster(campaign=label, spec=SPEC, shape=shape, shared_path="/shared", image=IMAGE, checks=())
    place = paths.state / "clusters" / "host.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(about.model_dump_json())
    return place


def test_a_cluster_that_comes_up_meanwhile_is_not_left_behind(
    paths: Paths, supplier: Destroying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`vtax up` saves it and ends between two looks of `vtax clean`: at the first of them it is not alive any more."""

    def ends(_: Path) -> bool:
        saved(paths)
        return False

    monkeypatch.setattr(leftovers, "is_alive", ends)
    assert leftovers.leftovers(paths) == []


def test_what_is_used_again_since_it_was_listed_stays(paths: Paths, supplier: Destroying) -> None:
    """A campaign that is resumed has the labels that it had."""
    found = leftovers.leftovers(paths)
    assert [item.campaign for item in found] == [LABEL]
    with alive(paths.runtime / LABEL):
        assert leftovers.clean(found, paths) == found
        assert supplier.labels == []
        assert leftovers.clean(found, paths, everything=True) == []
    assert leftovers.clean(found, paths) == []
    assert supplier.labels == [LABEL, LABEL]


def test_nobody_begins_to_use_what_is_being_removed(
    paths: Paths, supplier: Destroying, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paths.runtime / LABEL).mkdir(parents=True)

    def destroy(label: str) -> None:
        with pytest.raises(UsageError, match="is used by another process"), alive(paths.runtime / label):
            raise AssertionError("it was used")
        supplier.labels.append(label)

    monkeypatch.setattr(supplier, "destroy", destroy)
    monkeypatch.setattr(files, "PROBE_S", 0.0)
    leftovers.clean(leftovers.leftovers(paths), paths)
    assert supplier.labels == [LABEL]
    assert not (paths.runtime / LABEL).exists()


def test_a_directory_that_goes_before_it_is_locked_is_made_again(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """`vtax clean` takes one for left behind that a process has only just made, or whose file it is about to lock."""
    place, real, moments = paths.runtime / LABEL, fcntl.flock, ["before the lock", "before it is opened"]

    def flock(stream: int, kind: int) -> None:
        if kind & fcntl.LOCK_EX and moments:
            moments.pop()
            for path in (place / "alive", place):
                path.unlink() if path.is_file() else path.rmdir()
        real(stream, kind)

    monkeypatch.setattr(fcntl, "flock", flock)
    with alive(place):
        assert is_alive(place)
        assert (place / "alive").exists()
    assert moments == []
    with unused(paths.runtime / "up-00000000") as free:
        assert free, "what is not there is used by nobody"


def test_down_does_not_take_another_cluster_down(
    paths: Paths, supplier: Destroying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look and its lock the cluster was taken down, and another one of that name brought up."""
    saved(paths)
    real = files.locked

    def locked(path: Path) -> object:
        saved(paths, "up-87654321")
        return real(path)

    monkeypatch.setattr(files, "locked", locked)
    clusters.down("host", paths)
    assert supplier.labels == ["up-87654321"]
    assert clusters.saved_clusters(paths) == []


def test_a_cluster_that_is_taken_down_meanwhile_is_not_up(
    paths: Paths, supplier: Destroying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that lists it may go between the list of files and its reading."""
    place, real = saved(paths), Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        place.unlink(missing_ok=True)
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    with pytest.raises(UsageError, match="host is not up"):
        clusters.down("host", paths)
