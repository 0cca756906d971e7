"""Clusters of many nodes that share this machine's CPUs: verified as strictly, by work that grows as they do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

import pytest

from vtax.facts.host import capacity, host_facts
from vtax.launchers.base import Ranks
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape, Scope, Target
from vtax.paths import Paths
from vtax.planning.shape import cluster_shape
from vtax.planning.study import parse
from vtax.providers import provider
from vtax.running.placement import placement
from vtax.running.provision import provision
from vtax.running.verify import parallel_targets

from .conftest import CPU, study
from .test_clusters import finish, site_for, spec_for

pytestmark = pytest.mark.integration


class Apart(Mpirun):
    """A launcher that starts every rank by itself: no rank knows another one, and all end with exit code 0."""

    interface: str = "unused"

    @property
    def program(self) -> str:
        return "apart"

    def argv(
        self, program: Sequence[str], target: Target, ranks: Ranks, yield_when_idle: bool = False
    ) -> tuple[str, ...]:
        return ("sh", "-c", "; ".join([shlex.join(program)] * ranks.total))


def shape_of(nodes: int) -> ClusterShape:
    """So many nodes with one CPU each, of those that this machine has."""
    text = study(["host"], CPU.format(seconds=1)).replace("512 MiB", "256 MiB")
    text = text.replace("workers = 2", f"workers = {nodes - 1}\nshare_cpus = true")
    shape, problems = cluster_shape(parse(text, "(test)"), capacity(host_facts()))
    assert not [problem for problem in problems if problem.severity is Severity.BLOCKER]
    return shape


def verified(name: str, nodes: int, places: Paths, image: Image, **options: object) -> tuple[str, ...]:
    """The checks that a cluster passed, after a look at what a launcher that starts singletons comes to."""
    supplier, shape = provider(name, places.runtime), shape_of(nodes)
    site = site_for(places, image, f"scale{nodes}")
    ready = provision(supplier, spec_for(name, supplier, **options), shape, "/shared", site, [Scope.CLUSTER], seed=5)
    try:
        (target,) = parallel_targets(ready.cluster, [Scope.CLUSTER])
        passed, wrong = placement(replace(ready.cluster, launcher=Apart()), target)
        assert passed == []
        assert len(wrong) == 1
        assert wrong[0].startswith(f"apart started {nodes} programs of one rank each, but the plan has one program of")
    finally:
        finish(supplier, site, ready.cluster)
    return ready.checks


def is_whole(checks: Sequence[str], nodes: int) -> None:
    """Every node was logged in to and has its rank in one world, by fewer logins than there are pairs."""
    names = ["master", *(f"worker{number}" for number in range(1, nodes))]
    assert f"mpi world cluster: {nodes} ranks, each of which sees all" in checks
    assert "mpi placement cluster: " + " ".join(f"{name}=1" for name in names) in checks
    (logins,) = (found for check in checks if (found := re.search(r"SSH between (\d+) of (\d+) pairs", check)))
    assert int(logins[2]) == nodes * (nodes - 1)
    assert 2 * nodes - 2 <= int(logins[1]) <= 3 * nodes
    assert sum(check.startswith("limits of ") for check in checks) == nodes


def test_twelve_nodes(places: Paths, image: Image) -> None:
    is_whole(verified("host", 12, places, image, network="bridge"), 12)


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), [("host", {"network": "bridge"}), ("docker", {})])
def test_sixty_four_nodes(name: str, options: dict[str, object], places: Paths, image: Image) -> None:
    is_whole(verified(name, 64, places, image, **options), 64)
