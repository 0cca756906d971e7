"""What is counted from outside, and what is not: with files in place of a kernel, and without processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fakes.cluster import FakeProvider, node_shape
from vtax.facts.perf import Subject
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Cluster, Outside, Site
from vtax.running import outside
from vtax.running.outside import NO_GROUP, NO_MARK, ONE_NODE, Seen, seen

NODES = ("worker1", "worker2")


def cluster(top: Path, *where: Outside) -> Cluster:
    shape = ClusterShape(nodes=tuple(map(node_shape, ("master", *NODES))))
    image = Image(recipe="k", digest="d", directory="/", archive="/a")
    spec = EnvironmentSpec(name="box", provider="fake")
    made = FakeProvider("fake", top).create(spec, shape, "/shared", Site("c1", top / "site", image, top / "keys"))
    return replace(made, outside=lambda _: where) if where else made


class Counts:
    """Counters that say these numbers, one for each node."""

    def __init__(self, *numbers: int | None) -> None:
        self.numbers, self.closed = list(numbers), 0

    def __call__(self, event: str, subject: Subject) -> Counts:
        if event == "cycles":
            raise OSError(95, "not here")
        return self

    def read(self) -> int | None:
        return self.numbers.pop(0)

    def close(self) -> None:
        self.closed += 1


def test_counts_of_all_nodes_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts(7, 5)
    monkeypatch.setattr(outside, "Counter", counts)
    where = Outside(Subject(process=1))
    with seen(cluster(tmp_path, where, where), NODES, ("context-switches", "cycles")) as found:
        assert found.counted == {}
    assert (found.counted, found.missing) == ({"context-switches": 12}, {"cycles": "not here"})
    assert counts.closed == 2


def test_a_count_that_lacks_a_part_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "Counter", Counts(7, None))
    where = Outside(Subject(process=1))
    with seen(cluster(tmp_path, where, where), NODES, ("context-switches",)) as found:
        pass
    assert found.counted == {}
    assert found.missing == {"context-switches": "it was counted for a part of the time only"}


def test_without_a_place_to_count_nothing_is_counted(tmp_path: Path) -> None:
    for made in (cluster(tmp_path), cluster(tmp_path, Outside())):
        with seen(made, NODES[:1], ("context-switches", "memory_peak")) as found:
            pass
        assert found.counted == {}
        assert set(found.missing) == {"context-switches", "memory_peak"}
        assert found.missing["context-switches"] == NO_GROUP


def test_the_peak_of_the_memory_begins_anew(tmp_path: Path) -> None:
    peak = tmp_path / "memory.max_usage_in_bytes"
    peak.write_text("9999\n")
    with seen(cluster(tmp_path / "x", Outside(memory=tmp_path)), NODES[:1], ("memory_peak",)) as found:
        assert peak.read_text().startswith("0")
        peak.write_text("4096\n")
    assert found.counted == {"memory_peak": 4096}


def test_a_peak_that_cannot_begin_anew_is_none(tmp_path: Path) -> None:
    with seen(cluster(tmp_path / "x", Outside(memory=tmp_path / "gone")), NODES[:1], ("memory_peak",)) as found:
        pass
    assert found.missing == {"memory_peak": "its control group does not count it"}


@pytest.mark.parametrize(
    ("report", "nodes", "counted", "missing"),
    [
        ('{"wall_s": 1, "memory_peak_bytes": 4096, "status": 0}\n', 1, 4096, ""),
        ('{"wall_s": 1, "memory_peak_bytes": 4096, "status": 0}\n', 2, None, ONE_NODE),
        ('{"wall_s": 1, "status": 0}\n', 1, None, NO_MARK),
        ('{"memory_peak_bytes": -1, "status": 0}\n', 1, None, NO_MARK),
        ("\0" * 5000 + '"memory_peak_bytes": 4096, ', 1, None, NO_MARK),
        (None, 1, None, NO_GROUP),
    ],
)
def test_a_guest_counts_its_own_memory(
    tmp_path: Path, report: str | None, nodes: int, counted: int | None, missing: str
) -> None:
    place = tmp_path / "usage.json"
    if report is not None:
        place.write_text(report)
    found = Seen(missing={"memory_peak": NO_GROUP, "cycles": "not here"})
    found.of_guest(None if report is None else place, nodes)
    assert found.counted == ({} if counted is None else {"memory_peak": counted})
    assert found.missing == {"cycles": "not here", **({"memory_peak": missing} if missing else {})}


def test_what_was_counted_from_outside_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text('{"memory_peak_bytes": 4096, "status": 0}\n')
    found = Seen(counted={"memory_peak": 8192.0})
    found.of_guest(tmp_path / "usage.json", 1)
    assert found.counted == {"memory_peak": 8192.0}
