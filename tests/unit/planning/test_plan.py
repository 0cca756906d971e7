"""The frozen plan: the same from the same seed, balanced over positions, equal work in every environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.cluster import FakeProvider
from vtax.errors import UsageError
from vtax.model.finding import Severity
from vtax.model.nodes import HostCapacity, LastCache, Scope
from vtax.model.plan import Cell, Origin, Plan
from vtax.model.study import EnvironmentSpec, MachineSpec, Study
from vtax.planning.plan import ORCHESTRATION_S, SWITCH_S, digest, make_plan, number_of_targets, targets
from vtax.planning.study import parse
from vtax.providers.host.provider import Host

GIB = 2**30
MACHINE = HostCapacity(cpu_ids=(0, 1, 2, 3, 4, 5), memory_bytes=32 * GIB)

TEXT = """\
name = "test"
seed = 3
rounds = 4
baseline = "host"
[environments.host]
provider = "host"
[environments.docker]
provider = "docker"
[nodes]
cpus = 2
memory = "2 GiB"
[[benchmarks]]
name = "hpl"
scopes = ["workers", "node"]
warmup = 1
iterations = 2
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = 2
[[benchmarks]]
name = "ping"
"""


def fakes(names: list[str], shared: tuple[str, ...] = ()) -> Mapping[str, FakeProvider]:
    """Providers by the name of their environment; those in `shared` have one network stack for all nodes."""
    return {name: FakeProvider(name, Path("run"), separate_nodes=name not in shared) for name in names}


def fake_study(environments: int = 2, rounds: int = 4, seed: int = 3) -> Study:
    names = [f"env{number}" for number in range(environments)]
    specs = tuple(EnvironmentSpec(name=name, provider="fake") for name in names)
    update = {"environments": specs, "baseline": names[0], "rounds": rounds, "seed": seed}
    return parse(TEXT, "test.toml").model_copy(update=update)


def plan_of(study: Study, shared: tuple[str, ...] = ()) -> Plan:
    return make_plan(study, MACHINE, fakes([spec.name for spec in study.environments], shared))


def plain(text: str) -> Study:
    """A study whose environments have fake providers, which take no options."""
    study = parse(text, "test.toml")
    specs = tuple(EnvironmentSpec(name=spec.name, provider="fake") for spec in study.environments)
    return study.model_copy(update={"environments": specs})


def in_round(plan: Plan, number: int) -> list[Cell]:
    return [cell for cell in plan.cells if cell.round == number]


# --- one seed, one plan --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_plan_byte_for_byte() -> None:
    assert plan_of(fake_study()).model_dump_json() == plan_of(fake_study()).model_dump_json()


def test_another_seed_gives_another_order() -> None:
    orders = {
        tuple((cell.id, *(trial.id for trial in cell.trials)) for cell in plan_of(fake_study(seed=seed)).cells)
        for seed in range(5)
    }
    assert len(orders) == 5


def test_a_plan_survives_the_file() -> None:
    plan = plan_of(fake_study())
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert digest(Plan.model_validate_json(plan.model_dump_json())) == plan.sha256


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Origin):
        return Origin.IMPORTED
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, tuple):
        return value[:-1]
    if isinstance(value, Study):
        return value.model_copy(update={"margin": 0.5})
    if isinstance(value, dict):
        return dict(list(value.items())[:-1])
    if isinstance(value, HostCapacity):
        return value.model_copy(update={"memory_bytes": 1})
    return value.model_copy(update={"nodes": value.nodes[:-1]})


@pytest.mark.parametrize("field", sorted(set(Plan.model_fields) - {"sha256"}))
def test_the_hash_is_of_every_field(field: str) -> None:
    few = HostCapacity(cpu_ids=(0, 1), memory_bytes=32 * GIB)  # so that there is a problem
    study = fake_study(1).model_copy(update={"machines": {"a": MachineSpec(ssh="a")}})
    plan = make_plan(study, few, fakes(["env0"]), left_out=["something"], capacities={"a": few})
    assert len(plan.sha256) == 64
    other = plan.model_copy(update={field: changed(getattr(plan, field))})
    assert digest(other) != plan.sha256


def test_the_hash_does_not_cover_itself() -> None:
    plan = plan_of(fake_study())
    assert digest(plan.model_copy(update={"sha256": ""})) == plan.sha256


# --- order ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**63 - 1))
@settings(max_examples=40, deadline=None)
def test_every_block_of_rounds_is_a_latin_square(environments: int, squares: int, seed: int) -> None:
    plan = plan_of(fake_study(environments, environments * squares, seed))
    names = {spec.name for spec in plan.environments}
    orders = [[cell.environment for cell in in_round(plan, n)] for n in range(1, plan.study.rounds + 1)]
    for start in range(0, len(orders), environments):
        block = orders[start : start + environments]
        assert all(set(order) == names for order in block)
        assert all({order[position] for order in block} == names for position in range(environments))


@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_every_round_has_every_environment_once(environments: int, rounds: int, seed: int) -> None:
    plan = plan_of(fake_study(environments, rounds, seed))
    names = sorted(spec.name for spec in plan.environments)
    assert len(plan.cells) == environments * rounds
    for number in range(1, rounds + 1):
        assert sorted(cell.environment for cell in in_round(plan, number)) == names


@given(st.integers(2, 4), st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_all_environments_of_a_round_have_the_same_order_of_benchmarks(
    environments: int, rounds: int, seed: int
) -> None:
    plan = plan_of(fake_study(environments, rounds, seed))
    for number in range(1, rounds + 1):
        orders = {tuple(trial.id.partition("/")[2] for trial in cell.trials) for cell in in_round(plan, number)}
        assert len(orders) == 1


def test_the_order_of_benchmarks_changes_between_rounds() -> None:
    plan = plan_of(fake_study(rounds=6))
    orders = {tuple(trial.work for trial in in_round(plan, number)[0].trials) for number in range(1, 7)}
    assert len(orders) > 1


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_every_id_is_unique(environments: int, rounds: int, seed: int) -> None:
    plan = plan_of(fake_study(environments, rounds, seed))
    cells = [cell.id for cell in plan.cells]
    trials = [trial.id for cell in plan.cells for trial in cell.trials]
    work = [(item.environment, item.id) for item in plan.work]
    assert len(cells) == len(set(cells))
    assert len(trials) == len(set(trials))
    assert len(work) == len(set(work))
    assert all(trial.id.startswith(f"{cell.id}/") for cell in plan.cells for trial in cell.trials)


def test_warm_ups_come_first() -> None:
    plan = plan_of(fake_study(rounds=1))
    trials = [trial for trial in plan.cells[0].trials if trial.work == "hpl.workers"]
    assert [(trial.id, trial.iteration, trial.warmup) for trial in trials] == [
        (f"{plan.cells[0].id}/hpl.workers.w1", 1, True),
        (f"{plan.cells[0].id}/hpl.workers.1", 1, False),
        (f"{plan.cells[0].id}/hpl.workers.2", 2, False),
    ]
    places = [plan.cells[0].trials.index(trial) for trial in trials]
    assert places == list(range(places[0], places[0] + 3))  # nothing else comes between


# --- work ----------------------------------------------------------------------------------------------------------


def test_a_host_with_a_bridge_has_benchmarks_between_nodes(tmp_path: Path) -> None:
    """MPI too is started as in containers: one mpirun over SSH to all nodes."""
    text = TEXT.replace(
        '[environments.docker]\nprovider = "docker"', '[environments.bridged]\nprovider = "host"\nnetwork = "bridge"'
    )
    study = parse(text, "test.toml")
    plan = make_plan(study, MACHINE, {name: Host(tmp_path) for name in ("host", "bridged")})
    assert plan.left_out == ("ping between nodes is not run on host: its nodes share one network stack",)
    assert sum(work.benchmark == "ping" for work in plan.work) == 6
    assert {name: able.separate_nodes for name, able in plan.capabilities.items()} == {"host": False, "bridged": True}
    alone, over_ssh = (plan.work_of(name, "hpl.workers").steps[-1] for name in ("host", "bridged"))
    assert alone.argv[:6] == ("mpirun", "--allow-run-as-root", "--np", "4", "--host", "localhost:4")
    assert over_ssh.argv[:6] == ("mpirun", "--allow-run-as-root", "--np", "4", "--hostfile", "hostfile")
    assert "eth0" in over_ssh.argv


def test_the_work_of_a_cell() -> None:
    plan = plan_of(fake_study(rounds=1))
    assert sorted({trial.work for trial in plan.cells[0].trials}) == [
        "hpl.master",
        "hpl.worker1",
        "hpl.worker2",
        "hpl.workers",
        "ping.master-worker1",
        "ping.master-worker2",
        "ping.worker1-master",
        "ping.worker1-worker2",
        "ping.worker2-master",
        "ping.worker2-worker1",
        "sysbench-cpu.worker1",
    ]


def test_the_work_is_the_same_in_every_environment() -> None:
    plan = plan_of(fake_study(3))
    for item in plan.work:
        first = plan.work_of("env0", item.id)
        assert (item.params, item.target, item.steps) == (first.params, first.target, first.steps)


def test_the_size_of_hpl_is_worked_out_once() -> None:
    """Two nodes of 2 GiB and 2 CPUs: 4 ranks as 2 x 2. Of the memory, 96 MiB a node and 64 MiB a rank are reserved:
    2 x (2048 - 96) - 4 x 64 = 3648 MiB, 80 % of it for the matrix of n² doubles, n a multiple of 192."""
    plan = plan_of(fake_study(), shared=("env0",))
    sizes = []
    for environment in ("env0", "env1"):
        params = plan.work_of(environment, "hpl.workers").params
        assert (params["nb"], params["p"], params["q"], params["ranks_per_node"]) == (192, 2, 2, 2)
        sizes.append(params["n"])
    assert sizes[0] == sizes[1]
    n = sizes[0]
    assert isinstance(n, int)
    matrix = int(3648 * 2**20 * 0.8)
    assert n % 192 == 0
    assert n * n * 8 <= matrix < (n + 192) ** 2 * 8


def test_pairs_are_left_out_where_nodes_share_a_network_stack() -> None:
    plan = plan_of(fake_study(rounds=1), shared=("env0",))
    assert plan.left_out == ("ping between nodes is not run on env0: its nodes share one network stack",)
    assert [item for item in plan.work if item.environment == "env0" and item.benchmark == "ping"] == []
    assert len([item for item in plan.work if item.environment == "env1" and item.benchmark == "ping"]) == 6
    by_name = {cell.environment: {trial.work for trial in cell.trials} for cell in plan.cells}
    assert not any(work.startswith("ping") for work in by_name["env0"])
    assert by_name["env1"] > by_name["env0"]


def test_environments_without_a_provider_are_not_in_the_plan() -> None:
    study = fake_study(3)
    plan = make_plan(study, MACHINE, fakes(["env0", "env2"]), left_out=["environment env1 is left out: no daemon"])
    assert [spec.name for spec in plan.environments] == ["env0", "env2"]
    assert {cell.environment for cell in plan.cells} == {"env0", "env2"}
    assert plan.left_out == ("environment env1 is left out: no daemon",)


def test_problems_of_the_shape_are_in_the_plan() -> None:
    plan = make_plan(fake_study(1), HostCapacity(cpu_ids=(0, 1), memory_bytes=32 * GIB), fakes(["env0"]))
    assert [problem.severity for problem in plan.problems] == [Severity.BLOCKER]
    assert plan.problems[0].message == "the workers need 4 CPUs together, but this machine offers 2"


def test_the_estimate_is_the_sum_of_its_parts() -> None:
    study = fake_study(2, rounds=3).model_copy(update={"settle_s": 5.0})
    plan = plan_of(study)
    seconds = {item.id: item.estimate_s for item in plan.work if item.environment == "env0"}
    trials = [trial for cell in plan.cells for trial in cell.trials]
    each_s = ORCHESTRATION_S + SWITCH_S  # trials alternate, so every cluster is resumed and paused
    expected = 6 * (1.0 + 5.0) + sum(seconds[trial.work] + each_s for trial in trials)
    assert plan.interleave == "trial"
    assert plan.estimate_s == pytest.approx(expected, abs=0.06)
    whole = plan_of(study.model_copy(update={"interleave": "cell"}))
    assert whole.estimate_s == pytest.approx(expected - len(trials) * SWITCH_S, abs=0.12)


def test_parameters_that_do_not_fit_the_nodes_are_a_usage_error() -> None:
    study = fake_study()
    entries = parse(TEXT.replace('name = "hpl"', 'name = "hpl"\nn = 10_000_000'), "test.toml").benchmarks
    with pytest.raises(UsageError):
        plan_of(study.model_copy(update={"benchmarks": entries}))


def test_an_environment_without_any_work_is_a_blocker() -> None:
    study = fake_study().model_copy(update={"benchmarks": parse(TEXT, "test.toml").benchmarks[2:]})  # ping alone
    plan = plan_of(study, shared=("env0",))
    assert [(problem.severity, problem.message) for problem in plan.problems] == [
        (Severity.BLOCKER, "nothing of the study can run in environment env0")
    ]


def test_a_disk_size_that_is_not_enforced_is_told() -> None:
    free = FakeProvider("env1", Path("run"), limits_disk=False)
    plan = make_plan(fake_study(), MACHINE, {**fakes(["env0"]), "env1": free})
    assert [(problem.severity, problem.message) for problem in plan.problems] == [
        (Severity.INFO, "the nodes' disk size is not enforced in env1")
    ]


# --- targets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "nodes", "expected"),
    [
        (Scope.NODE, (), ["master:/scratch/b.master", "worker1:/scratch/b.worker1", "worker2:/scratch/b.worker2"]),
        (Scope.NODE, ("worker2",), ["worker2:/scratch/b.worker2"]),
        (Scope.SHARED, (), ["worker1.shared:/data/b.worker1.shared", "worker2.shared:/data/b.worker2.shared"]),
        (Scope.SHARED, ("master",), []),
        (Scope.PAIRS, ("worker1", "worker2"), ["worker1-worker2:/scratch/b.worker1-worker2", "worker2-worker1:"]),
        (Scope.WORKERS, (), ["workers:/data/b.workers"]),
        (Scope.CLUSTER, (), ["cluster:/data/b.cluster"]),
    ],
)
def test_the_targets_of_a_scope(scope: Scope, nodes: tuple[str, ...], expected: list[str]) -> None:
    plan = plan_of(fake_study())
    spec = plan.study.benchmarks[0].model_copy(update={"label": "b", "nodes": nodes})
    found = [f"{one.label}:{one.directory}" for one in targets(spec, scope, plan.shape, "/data")]
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


# --- loads ---------------------------------------------------------------------------------------------------------

LOADED = """\
[[benchmarks]]
name = "ping"
label = "ping-under-hpcc"
nodes = ["worker1", "worker2"]
load = "noise"
[[benchmarks]]
name = "hpcc"
label = "noise"
alone = false
n = 1000
"""


def test_a_load_is_frozen_with_what_it_disturbs() -> None:
    plan = plan_of(plain(TEXT + LOADED))
    loaded = [work for work in plan.work if work.load]
    assert {(work.label, work.load.id) for work in loaded if work.load} == {("ping-under-hpcc", "noise.workers")}
    assert {work.load.target.names for work in loaded if work.load} == {("worker1", "worker2")}
    assert all(work.load.steps[-1].argv[0] == "mpirun" for work in loaded if work.load)
    assert not [work for work in plan.work if work.label == "noise"]  # not by itself


CACHE_TEXT = TEXT.replace('name = "ping"', 'name = "stream"')
CACHES = (LastCache(cpu_ids=(0, 1, 2, 3, 4, 5), size_bytes=480 * 2**20),)


def test_what_cannot_run_on_this_machine_is_left_out_with_the_reason() -> None:
    study = plain(CACHE_TEXT).model_copy(update={"baseline": "host"})
    plan = make_plan(study, MACHINE.model_copy(update={"last_caches": CACHES}), fakes(["host", "docker"]))
    assert plan.left_out == (
        "stream is not run on master, worker1 and worker2: three arrays of 1.88 GiB (4 times the last-level cache of "
        "480 MiB) take 5.62 GiB, more than 85% of the node's 2 GiB of memory",
    )
    assert {item.benchmark for item in plan.work} == {"hpl", "sysbench-cpu"}
    assert "the size of the last-level cache is unknown" in make_plan(study, MACHINE, fakes(["host"])).left_out[0]


def test_what_cannot_run_on_this_machine_cannot_be_a_load() -> None:
    text = CACHE_TEXT.replace('nodes = ["worker1"]', 'nodes = ["worker1"]\nload = "stream"')
    with pytest.raises(UsageError, match="stream cannot be a load: it is not run on this machine"):
        make_plan(plain(text), MACHINE, fakes(["host", "docker"]))


def test_a_load_between_nodes_is_left_out_where_they_share_a_network_stack() -> None:
    text = TEXT + LOADED.replace("ping-under-hpcc", "tool").replace('"noise"', '"net"').replace(
        'name = "hpcc"\nlabel = "net"\nalone = false\nn = 1000', 'name = "iperf3"\nlabel = "net"'
    ).replace('name = "ping"\nlabel = "tool"', 'name = "sysbench-cpu"\nlabel = "tool"')
    plan = plan_of(plain(text), shared=("host",))
    assert {work.environment for work in plan.work if work.load} == {"docker"}
    assert "tool under load is not run on host: its nodes share one network stack" in plan.left_out


def test_several_commands_are_no_load() -> None:
    text = TEXT + LOADED.replace('"hpcc"', '"stress-ng"').replace("n = 1000", "time_s = 5")
    with pytest.raises(UsageError, match="noise cannot be a load"):
        plan_of(plain(text))


# --- the studies of the published reports --------------------------------------------------------------------------

REPORTS = sorted((Path(__file__).parents[3] / "examples").glob("report-*.toml"))
SMALL = HostCapacity(cpu_ids=(0, 1), memory_bytes=8 * GIB)


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_published_study_can_be_planned_everywhere_and_runs_on_a_machine_of_its_size(path: Path) -> None:
    study = plain(path.read_text())
    providers = {
        spec.name: FakeProvider(spec.name, Path("run"), separate_nodes=spec.name != "host")
        for spec in study.environments
    }
    large = make_plan(study, MACHINE, providers)
    assert not [problem for problem in large.problems if problem.severity is Severity.BLOCKER]
    assert make_plan(study, SMALL, providers).work  # it says there what is too large, and still plans


def test_there_is_a_study_for_every_published_report() -> None:
    assert [path.stem for path in REPORTS] == [
        "report-i3-1315u",
        "report-i5-10600k",
        "report-i7-8550u",
        "report-m2",
        "report-slides",
    ]


def test_emulation_makes_work_longer_and_clocks_no_slower() -> None:
    """sysbench measures for 2 s whatever the CPU does; 0.1 s for its start is guessed, and five times that."""
    study = fake_study()
    slow = fakes(["env0", "env1"])
    slow["env1"].slow = 5.0
    plan = make_plan(study, MACHINE, slow)
    work = {(item.environment, item.benchmark): item for item in plan.work}
    assert work["env0", "sysbench-cpu"].estimate_s == 2.1
    assert work["env1", "sysbench-cpu"].estimate_s == 2.5
    assert work["env1", "sysbench-cpu"].clocked_s == 2.0
    assert work["env1", "sysbench-cpu"].params == work["env0", "sysbench-cpu"].params
    assert work["env1", "hpl"].estimate_s == pytest.approx(5 * work["env0", "hpl"].estimate_s, abs=0.3)


# --- environments that take part in less ---------------------------------------------------------------------------

SELECTED = """\
name = "test"
seed = 3
rounds = 6
baseline = "host"
[environments.host]
provider = "host"
[environments.box]
provider = "docker"
skip = ["iozone"]
[environments.vm]
provider = "qemu"
[environments.vm.emulated]
only = ["sysbench-cpu", "ping"]
rounds = 2
[nodes]
cpus = 2
memory = "2 GiB"
[[benchmarks]]
name = "hpl"
iterations = 2
n = 1000
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
[[benchmarks]]
name = "iozone"
exploratory = true
[[benchmarks]]
name = "ping"
one_way = true
nodes = ["worker1", "worker2"]
"""


def selected(*, emulated: bool, rounds: int = 6, text: str = SELECTED) -> Plan:
    study = parse(text, "test.toml").fixed(rounds)
    specs = tuple(spec.model_copy(update={"provider": "fake", "options": {}}) for spec in study.environments)
    providers = fakes([spec.name for spec in specs])
    providers["vm"].emulated = emulated
    return make_plan(study.model_copy(update={"environments": specs}), MACHINE, providers)


def labels_of(plan: Plan, environment: str) -> set[str]:
    return {work.label for work in plan.work if work.environment == environment}


def rounds_of(plan: Plan, environment: str) -> list[int]:
    return [cell.round for cell in plan.cells if cell.environment == environment]


def test_an_environment_runs_what_the_study_selects() -> None:
    plan = selected(emulated=False)
    assert labels_of(plan, "host") == labels_of(plan, "vm") == {"hpl", "sysbench-cpu", "iozone", "ping"}
    assert labels_of(plan, "box") == {"hpl", "sysbench-cpu", "ping"}
    for cell in plan.cells:
        assert {trial.work.partition(".")[0] for trial in cell.trials} == labels_of(plan, cell.environment)
    assert plan.left_out == ("box runs all but iozone",)
    assert plan.rounds_of("vm") == 6


def test_where_it_would_be_emulated_an_environment_runs_less() -> None:
    plan = selected(emulated=True)
    assert labels_of(plan, "vm") == {"sysbench-cpu", "ping"}
    assert rounds_of(plan, "vm") == [1, 2]
    assert (plan.rounds_of("vm"), plan.rounds_of("host"), plan.rounds_of("unknown")) == (2, 6, 6)
    assert [spec.selection.rounds for spec in plan.environments] == [None, None, 2]  # as it is done here
    assert plan.left_out == (
        "box runs all but iozone",
        "vm is emulated in software here: the study then has it run only sysbench-cpu and ping, in 2 of 6 rounds",
    )


def test_where_it_would_be_emulated_an_environment_repeats_less() -> None:
    text = SELECTED.replace('only = ["sysbench-cpu", "ping"]', 'only = ["hpl"]\niterations = 1')
    plan = selected(emulated=True, text=text)

    def iterations(environment: str) -> set[int]:
        trials = [trial for cell in plan.cells if cell.environment == environment for trial in cell.trials]
        return {trial.iteration for trial in trials if trial.work.startswith("hpl.")}

    assert (iterations("host"), iterations("box"), iterations("vm")) == ({1, 2}, {1, 2}, {1})
    assert plan.left_out[1].endswith("run only hpl, in 2 of 6 rounds, 1 iteration of each at most")


def test_fewer_rounds_on_the_command_line_cut_all_environments() -> None:
    plan = selected(emulated=True, rounds=1)
    assert [rounds_of(plan, name) for name in ("host", "box", "vm")] == [[1], [1], [1]]
    assert plan.rounds_of("vm") == 1


def test_environments_of_all_rounds_keep_their_order_next_to_one_of_fewer() -> None:
    alone, beside = ([cell.environment for cell in selected(emulated=way).cells] for way in (False, True))
    without = [name for name in beside if name != "vm"]
    assert len(alone) == 18
    first = [without[number] for number in range(0, 12, 2)]
    assert sorted(first) == ["box"] * 3 + ["host"] * 3
    assert all({one, other} == {"box", "host"} for one, other in zip(first[::2], first[1::2], strict=True))


def test_the_estimate_of_a_round_is_of_the_environments_in_it() -> None:
    plan = selected(emulated=True)
    each = ORCHESTRATION_S + SWITCH_S
    seconds = {(work.environment, work.id): work.estimate_s + each for work in plan.work}
    for cell in plan.cells:
        assert cell.estimate_s == pytest.approx(1.0 + sum(seconds[cell.environment, t.work] for t in cell.trials))
    until = [plan.estimate_until(number) for number in range(1, 7)]
    assert until[1] - until[0] == pytest.approx(until[0])
    assert until[2] - until[1] < until[0]
    assert until[-1] == pytest.approx(plan.estimate_s, abs=0.06)


def test_one_way_takes_every_pair_of_nodes_once() -> None:
    plan = selected(emulated=False)
    assert {work.id for work in plan.work if work.label == "ping"} == {"ping.worker1-worker2"}


@pytest.mark.parametrize(
    ("rounds", "iterations", "entries", "said"),
    [
        (1000, 1000, 1, r"83\d{8} trials, and at most 500000"),
        (1, 1, 60, r"49\d{4} pieces of work, and at most 50000"),
        (500_000, 1, 0, "1000000 cells, and at most 500000"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_before_it_is_made(
    rounds: int, iterations: int, entries: int, said: str
) -> None:
    """65 nodes have 65 x 64 = 4160 ordered pairs, in two environments: 8320 trials of ping, times rounds and
    iterations. 60 entries are 499,200 pieces of work."""
    text = TEXT.partition("[[benchmarks]]")[0].replace("cpus = 2", "cpus = 1\nworkers = 64").replace("2 GiB", "64 MiB")
    text += '[[benchmarks]]\nname = "startup"\n' * (not entries)
    text += "".join(
        f'[[benchmarks]]\nname = "ping"\nlabel = "p{number}"\nall_pairs = true\niterations = {iterations}\n'
        for number in range(entries)
    )
    study = plain(text).fixed(rounds)
    machine = HostCapacity(cpu_ids=tuple(range(80)), memory_bytes=32 * GIB)
    with pytest.raises(UsageError, match=f"the study has {said} are planned"):
        make_plan(study, machine, fakes(["host", "docker"]))


def test_the_number_of_targets_is_that_of_the_targets() -> None:
    study = plain(TEXT)
    shape = make_plan(study, MACHINE, fakes(["host", "docker"])).shape
    entries = (*study.benchmarks, *(entry.model_copy(update={"one_way": True}) for entry in study.benchmarks))
    for entry in entries:
        for scope in Scope:
            assert number_of_targets(entry, scope, shape) == len(targets(entry, scope, shape, "/shared"))
