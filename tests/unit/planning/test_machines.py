"""Machines of a study: its table, the cells on each of them, the CPUs of their nodes; no trace of them without."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from fakes.cluster import FakeProvider
from vtax.errors import StudyError
from vtax.model.nodes import HostCapacity, LastCache
from vtax.model.plan import Plan
from vtax.model.study import EnvironmentSpec, Study
from vtax.planning.placement import common_capacity, covering, placements, shape_in
from vtax.planning.plan import make_plan
from vtax.planning.resuming import made_again
from vtax.planning.study import parse

GIB = 2**30
STUDY = """\
name = "test"
seed = 5
rounds = 6
baseline = "one"
[environments.one]
provider = "host"
[environments.two]
provider = "docker"
[[benchmarks]]
name = "sysbench-cpu"
"""
A, B = '[machines.a]\nssh = "lab@node17"\n', '[machines.b]\nssh = "node18"\ndirectory = "/srv/vtax"\n'
LARGE = HostCapacity(
    cpu_ids=(0, 4, 1, 5, 2, 6), memory_bytes=16 * GIB, last_caches=(LastCache(cpu_ids=tuple(range(8)), size_bytes=32),)
)
SMALL = HostCapacity(
    cpu_ids=(10, 11, 12), memory_bytes=64 * GIB, last_caches=(LastCache(cpu_ids=(10, 11, 12), size_bytes=8),)
)
KEYS = {"machine", "machines", "place", "placement", "capacities"}


def study_of(more: str = A + B) -> Study:
    study = parse(STUDY + more, "test.toml")
    specs = tuple(EnvironmentSpec(name=spec.name, provider="fake") for spec in study.environments)
    return study.model_copy(update={"environments": specs})


def plan_of(study: Study) -> Plan:
    providers = {spec.name: FakeProvider(spec.name, Path("run")) for spec in study.environments}
    capacities = {name: (LARGE, SMALL)[place % 2] for place, name in enumerate(study.machines)}
    room = common_capacity(capacities) if capacities else LARGE
    return make_plan(study, room, providers, capacities=capacities)


def mistakes(more: str) -> list[str]:
    with pytest.raises(StudyError) as raised:
        parse(STUDY + more, "test.toml")
    return [f"{one.path}: {one.message}" for one in raised.value.mistakes]


def keys(value: Any) -> set[str]:
    """The keys of all tables inside."""
    if isinstance(value, dict):
        return set(value) | {key for part in value.values() for key in keys(part)}
    return {key for part in value for key in keys(part)} if isinstance(value, list) else set()


# --- without machines ------------------------------------------------------------------------------------------------


def test_a_plan_for_this_machine_has_no_trace_of_machines() -> None:
    assert not keys(json.loads(plan_of(study_of("")).model_dump_json())) & KEYS


def test_a_plan_for_several_machines_survives_the_file() -> None:
    plan = plan_of(study_of())
    assert keys(json.loads(plan.model_dump_json())) >= {"machine", "machines", "capacities"}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_the_order_on_this_machine_is_not_that_of_a_first_machine() -> None:
    local = [cell.environment for cell in plan_of(study_of("")).cells]
    assert len(local) == 12
    assert [cell.environment for cell in plan_of(study_of(A)).cells].count("one") == 6


def test_an_image_of_the_studys_own_is_refused_by_name() -> None:
    image = '[image.workload]\nfrom = "docker-archive:app.tar"\n'
    assert mistakes(A + image) == ["image.workload: a study with [machines] cannot have an image of its own"]


# --- whole clusters together on each machine -------------------------------------------------------------------------


def test_every_environment_visits_every_machine_in_every_round() -> None:
    plan = plan_of(study_of())
    assert {cell.id for cell in plan.cells} == {
        f"r00{number}-{machine}-{name}" for number in range(1, 7) for machine in "ab" for name in ("one", "two")
    }
    assert [cell.block for cell in plan.cells[::2]] == [(number, name) for number in range(1, 7) for name in "ab"]
    assert all(trial.id.startswith(f"{cell.id}/") for cell in plan.cells for trial in cell.trials)


def test_each_machine_has_a_balanced_order() -> None:
    plan = plan_of(study_of())
    for machine in "ab":
        first = [
            next(cell.environment for cell in plan.cells if cell.block == (number, machine)) for number in range(1, 7)
        ]
        assert Counter(first) == {"one": 3, "two": 3}


def test_sizes_are_those_of_the_smallest_machine_and_cpus_are_of_each() -> None:
    plan = plan_of(study_of())
    assert [node.cpus for node in plan.shape.nodes] == [1, 1, 1]  # three nodes, three CPUs
    assert {node.machine for node in plan.shape.nodes} == {""}
    on = {cell.machine: shape_in(plan, cell) for cell in plan.cells}
    assert [(node.name, node.machine, node.cpu_ids) for node in on["a"].nodes] == [
        ("master", "a", (1,)),  # after the workers, in the order in which the machine's CPUs are given away
        ("worker1", "a", (0,)),
        ("worker2", "a", (4,)),
    ]
    assert [node.cpu_ids for node in on["b"].nodes] == [(12,), (10,), (11,)]
    assert [node.last_cache_bytes for node in on["b"].nodes] == [8, 8, 8]
    assert [node.last_cache_bytes for node in plan.shape.nodes] == [32, 32, 32]  # the larger one: data must exceed it


def test_what_machines_have_in_common() -> None:
    common = common_capacity({"a": LARGE, "b": SMALL})
    assert (len(common.cpu_ids), common.memory_bytes) == (3, 16 * GIB)


def test_machines_work_at_the_same_time() -> None:
    assert plan_of(study_of()).estimate_s == pytest.approx(plan_of(study_of(A)).estimate_s)


def test_resuming_makes_the_same_plan() -> None:
    plan = plan_of(study_of())
    providers = {spec.name: FakeProvider(spec.name, Path("run")) for spec in plan.environments}
    assert made_again(plan, providers).model_dump_json() == plan.model_dump_json()


# --- one cluster on several machines ---------------------------------------------------------------------------------


def test_spread_nodes_take_turns_on_the_machines() -> None:
    plan = plan_of(study_of(A + B + '[machines.c]\nssh = "c"\n[nodes]\nplace = "spread"\n'))
    assert [cell.id for cell in plan.cells][:2] in (["r001-one", "r001-two"], ["r001-two", "r001-one"])
    for number in range(1, 7):
        assert len({tuple(sorted(cell.placement.items())) for cell in plan.cells if cell.round == number}) == 1
    seen = Counter((node, name) for cell in plan.cells for node, name in cell.placement.items())
    assert seen == {(node, name): 4 for node in ("master", "worker1", "worker2") for name in "abc"}  # of 12 cells
    for cell in plan.cells:
        assert tuple(cell.placement.values()) in set(permutations("abc"))
        assert [node.machine for node in shape_in(plan, cell).nodes] == list(cell.placement.values())


def test_a_table_places_nodes_the_same_way_in_all_rounds() -> None:
    study = study_of(A + B + '[nodes.place]\nmaster = "a"\nworker1 = "a"\nworker2 = "b"\n')
    assert placements(study) == ({"master": "a", "worker1": "a", "worker2": "b"},) * 6
    plan = plan_of(study)
    assert [(node.machine, node.cpu_ids) for node in shape_in(plan, plan.cells[0]).nodes] == [
        ("a", (4,)),
        ("a", (0,)),
        ("b", (10,)),
    ]


def test_an_allocation_is_as_many_machines_as_it_has_nodes() -> None:
    study = study_of(A + '[machines.c]\nslurm = { partition = "p", nodes = 2, time = "90 min" }\n')
    assert list(study.machines) == ["a", "c1", "c2"]
    given = study.machines["c1"].slurm
    assert given is not None and given == study.machines["c2"].slurm
    assert (given.partition, given.time_s, given.wait_s, given.exclusive) == ("p", 5400.0, 3600.0, True)
    assert study.machines["c1"].words == "Slurm, partition p"


def test_each_node_of_a_cluster_is_on_a_node_of_an_allocation() -> None:
    study = study_of('[machines.c]\nslurm = { nodes = 3, time = "90 min" }\n[nodes]\nplace = "spread"\n')
    assert study.apart
    assert {name for one in placements(study) for name in one.values()} == {"c1", "c2", "c3"}


ACROSS = (
    '[machines.c]\nslurm = { nodes = 3, time = "1 h" }\n[nodes]\nplace = "spread"\n'
    '[environments.s]\nprovider = "host"\nnetwork = "host"\nlauncher = "srun"\n'
)


def test_srun_starts_ranks_across_nodes_of_an_allocation() -> None:
    options = {one.name: one.options for one in parse(STUDY + ACROSS, "test.toml").environments}
    assert options["s"]["launcher"] == "srun"
    assert all("launcher" not in one for name, one in options.items() if name != "s")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'provider = "host"\nnetwork',
            'provider = "docker"\nnetwork',
            "srun starts ranks of the host, not of 'docker'",
        ),
        ('slurm = { nodes = 3, time = "1 h" }', 'ssh = "c"', "srun starts ranks on the nodes of one allocation"),
        ("[nodes]", '[machines.d]\nssh = "d"\n[nodes]', "srun starts ranks on the nodes of one allocation"),
        ('place = "spread"', 'place = "together"', "srun starts ranks across nodes of Slurm, and"),
        ('network = "host"', 'network = "bridge"', "srun starts ranks on the machines' own network alone"),
    ],
)
def test_srun_is_refused_elsewhere_by_its_name(old: str, new: str, expected: str) -> None:
    said = mistakes(ACROSS.replace(old, new))
    assert any(one.startswith(f"environments.s.launcher: {expected}") for one in said), said


def test_srun_is_refused_without_machines() -> None:
    said = mistakes('[environments.s]\nprovider = "host"\nnetwork = "bridge"\nlauncher = "srun"\n')
    assert any("environments.s.launcher: srun starts ranks on the nodes of one allocation" in one for one in said), said


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('[nodes]\nplace = "spread"\n', "nodes.place: the study has no machines"),
        (A + '[machines.c]\nssh = "lab@node17"\n', 'machines.c.ssh: machine "a" has the same address'),
        (A + B + '[nodes]\nplace = "spread"\n', 'nodes.place: "spread" needs a machine for each of 3 nodes'),
        (A + '[nodes.place]\nmaster = "a"\n', "nodes.place: no machine for worker1 and worker2"),
        (A + B + '[nodes.place]\nmaster = "a"\nworker1 = "a"\nworker2 = "a"\n', "nodes.place: no node is on b"),
        (A + '[nodes.place]\nmaster = "x"\nworker1 = "a"\nworker2 = "a"\n', "nodes.place.master: there is no machine"),
        (A + '[nodes.place]\nmaster = "a"\nworker1 = "a"\nworker2 = "a"\nx = "a"\n', "nodes.place.x: there is no node"),
        ('[machines.a]\nssh = "-oProxyCommand=true"\n', "machines.a.ssh: '-oProxyCommand=true' is not allowed"),
        ('[machines.a]\nssh = "a;b"\n', "machines.a.ssh: 'a;b' is not allowed"),
        ('[machines.a]\nssh = "a"\ndirectory = "x"\n', "machines.a.directory: 'x' is not allowed"),
        ("[machines.a]\n", "machines.a.ssh: is missing"),
        (A.rstrip() + "\n" + 'slurm = { time = "1 h" }\n', "machines.a: has both `ssh` and `slurm`"),
        ("[machines.a]\nslurm = { nodes = 2 }\n", "machines.a.slurm.time: is missing"),
        ('[machines.a]\nslurm = { time = "30 s" }\n', "machines.a.slurm.time: "),
        ('[machines.a]\nslurm = { time = "1 h", nodes = 0 }\n', "machines.a.slurm.nodes: "),
        ('[machines.a]\nslurm = { time = "1 h", partition = "-p x" }\n', "machines.a.slurm.partition: "),
        ('[machines.a]\nslurm = { time = "1 h", options = ["-p x"] }\n', "machines.a.slurm.options"),
        *(
            (f'[machines.a]\nslurm = {{ time = "1 h", options = ["{option}"] }}\n', "machines.a.slurm.options: there")
            for option in ("--uid=0", "--ui=0", "--no-shel", "--chdir=/etc", "--nodelist-x", "-w=n1")
        ),
        ('[machines.a]\nslurm = { time = "1 h", options = ["--nodelist=/etc/shadow"] }\n', "machines.a.slurm.options"),
        ('[machines.a]\naddress = "10.0.0.1"\nslurm = { time = "1 h" }\n', "machines.a.address: nodes of Slurm"),
        (
            '[machines.a]\nslurm = { time = "1 h" }\n[machines.a1]\nssh = "b"\n',
            "machines.a1: a node of Slurm has the same name",
        ),
        (
            '[machines.a]\nslurm = { time = "1 h", nodes = 2 }\n[nodes]\nplace = "spread"\n',
            'nodes.place: "spread" needs a machine for each of 3 nodes, not 2 machines',
        ),
        (
            '[machines.a]\nssh = "a"\n[machines.a-b]\nssh = "b"\n[environments.b-c]\nprovider = "host"\n'
            '[environments.c]\nprovider = "host"\n',
            'machines: two pairs of machine and environment would be called "a-b-c"',
        ),
    ],
)
def test_a_mistake_is_named(more: str, expected: str) -> None:
    assert any(one.startswith(expected) for one in mistakes(more)), mistakes(more)


def test_every_machine_is_in_a_placement_that_is_checked() -> None:
    study = study_of(A + B + '[machines.c]\nssh = "c"\n[nodes]\nworkers = 1\nplace = "spread"\n')
    checked = covering(study)
    assert checked[0] == placements(study)[0] and len(checked) == 2
    assert {name for one in checked for name in one.values()} == {"a", "b", "c"}
    assert covering(study_of()) == []


def test_a_directory_that_only_some_machines_share_is_a_mistake() -> None:
    shared = A + 'shared = "/srv/lab"\n' + B
    assert any("no directory for b, but for others" in one for one in mistakes(shared))
    both = A + 'shared = "/srv/lab"\n' + B + 'shared = "/srv/lab"\n[nodes]\nworkers = 1\nplace = "spread"\n'
    assert study_of(both).one_directory
