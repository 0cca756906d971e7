"""What `vtax doctor --machines` says of a machine that may have to serve or mount the shared directory."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from builders.small import FACTS
from vtax.cli.doctor import machine_lines
from vtax.machines.agent import Agent
from vtax.planning.study import existing_nodes, parse
from vtax.running.doctor import Diagnosis
from vtax.running.machine_states import MachineState, _may_share

FOUND = Diagnosis(
    host={**FACTS, "cpus_usable": [0, 1], "memory_total_bytes": 2**30},
    programs={},
    providers=(),
    image_reason="",
    image_cached="",
    blas_core="",
    left_behind=0,
    notes=(),
)


@pytest.mark.parametrize(
    ("nfs", "said"),
    [
        (None, []),  # nothing in the study needs it
        ({}, ["  /shared by NFS: can serve and mount"]),
        (
            {"serve": "port 2049 is taken by another program", "mount": "its kernel has no module nfsv4"},
            [
                "  /shared by NFS: cannot serve: port 2049 is taken by another program",
                "  /shared by NFS: cannot mount: its kernel has no module nfsv4",
            ],
        ),
    ],
)
def test_doctor_says_what_nfs_lacks(nfs: Mapping[str, str] | None, said: list[str]) -> None:
    state = MachineState(name="a", ssh="lab@a", works=True, clock_offset_s=0.0, nfs=nfs, found=FOUND)
    assert machine_lines(state)[1:] == said


STUDY = """\
name = "test"
baseline = "one"
[environments.one]
provider = "host"
{more}
[nodes]
workers = 1
{place}
[[benchmarks]]
name = "ping"
"""
MACHINES = '[machines.a]\nssh = "a"\n{0}[machines.b]\nssh = "b"\n{0}'
NODES = '[environments.two]\nprovider = "{}"\nnodes = {{ master = "a", worker1 = "b" }}\n'
SHARED = 'shared = "/srv"\n'


@pytest.mark.parametrize(
    ("more", "place", "asked"),
    [
        (MACHINES.format(""), 'place = "spread"', True),
        (MACHINES.format(SHARED), 'place = "spread"', False),
        (MACHINES.format(""), "", False),  # a cluster is on one machine
        (NODES.format("ssh"), "", True),
        (NODES.format("ssh") + SHARED, "", False),
        (NODES.format("ssh"), "[shared]\nnfs = false", False),
        (NODES.format("kubernetes-host"), "", False),
    ],
)
def test_machines_are_asked_where_they_may_have_to_share(more: str, place: str, asked: bool) -> None:
    study = parse(STUDY.format(more=more, place=place), "test.toml")
    named = {**study.machines, **existing_nodes(study)}
    agents = [SimpleNamespace(name=name, machine=SimpleNamespace(spec=spec)) for name, spec in named.items()]
    assert len(agents) == 2 and {_may_share(study, cast(Agent, one)) for one in agents} == {asked}
