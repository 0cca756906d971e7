"""What an entry with an own command runs, on which node, in which phase; and what is a mistake in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from fakes.cluster import node_shape
from vtax.errors import UsageError
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.nodes import Phase, Scope, Target
from vtax.model.plan import Ready, Step
from vtax.model.study import BenchmarkSpec
from vtax.tools.benchmark import Around
from vtax.tools.command.benchmark import FIRST_PORT, Command
from vtax.tools.command.params import CommandParams

COMMAND = Command()
AROUND = Around(shared_path="/shared", seed=7, place=2, workload=False)
MASTER, WORKER = node_shape("master", (0, 1)), node_shape("worker1", (2, 3))
ALONE = Target(scope=Scope.NODE, nodes=(WORKER,), directory="/scratch/it.worker1")
PAIR = Target(scope=Scope.PAIRS, nodes=(MASTER, WORKER), directory="/scratch/it.master-worker1")
BETWEEN, ONE_MACHINE = Mpirun(interface="eth0"), Mpirun(interface="lo", one_machine=True)
OWN = ("vtax-supervise", "vtax-run")
DATABASE: Mapping[str, Any] = {
    "user": "postgres",
    "env": {"PGPORT": "{port}"},
    "setup": [["initdb", "-D", "{dir}/data"]],
    "services": [{"command": ["postgres", "-D", "{dir}/data"], "ready": {"port": "{port}"}, "stop": "SIGINT"}],
    "prepare": [["pgbench", "-i", "-h", "{server}"]],
    "run": {"command": ["pgbench", "-h", "{server}", "-c", "{cpus}", "-T", "{seconds}"], "seconds": 20},
    "cleanup": [["rm", "-f", "left"]],
    "metrics": [
        {
            "name": "tps",
            "unit": "1/s",
            "kind": "rate, fixed time",
            "primary": True,
            "from": "stdout",
            "regex": "tps = ([0-9.]+)",
        }
    ],
}


def params(given: Mapping[str, Any], target: Target = ALONE, around: Around = AROUND) -> CommandParams:
    return COMMAND.resolve(COMMAND.placed(CommandParams.model_validate(given), around), target)


def steps(given: Mapping[str, Any], target: Target = ALONE, launcher: Launcher = BETWEEN) -> tuple[Step, ...]:
    return COMMAND.steps(params(given, target), target, launcher)


def own(step: Step) -> tuple[str, ...]:
    """The study's part of a command."""
    return step.argv[step.argv.index("--") + 1 :]


def test_one_command_is_one_step() -> None:
    (step,) = steps({"command": ["true"]})
    assert step.argv == (*OWN, "--report", "usage.json", "--", "true")
    assert (step.nodes, step.phase, step.usage, step.success) == (("worker1",), Phase.RUN, "usage.json", (0,))


def test_mpirun_starts_as_many_ranks_on_each_node_as_the_entry_has() -> None:
    (step,) = steps({"run": {"command": ["./it", "{nodes}"], "ranks_per_node": 1}}, PAIR)
    assert own(step)[:4] == ("mpirun", "--allow-run-as-root", "--np", "2")
    assert own(step)[-4:] == ("vtax-rank", "1", "./it", "2")
    assert step.nodes == ("master",)
    assert [(file.name, file.content) for file in step.inputs] == [("hostfile", "master slots=1\nworker1 slots=1\n")]
    (alone,) = steps({"run": {"command": ["./it"], "ranks_per_node": 2}}, PAIR, ONE_MACHINE)
    assert "localhost:4" in own(alone)
    assert alone.inputs == ()


def test_a_database_and_its_client_on_one_node() -> None:
    found = steps(DATABASE)
    as_user = ("--user", "postgres", "--set", f"PGPORT={FIRST_PORT + 2}", "--")
    assert [(step.phase, step.argv) for step in found] == [
        (Phase.SETUP, (*OWN, "--", "chmod", "--", "1777", ".")),
        (Phase.SETUP, (*OWN, *as_user, "initdb", "-D", "/scratch/it.worker1/data")),
        (
            Phase.RUN,
            ("vtax-supervise", "--control", "vtax-run", *as_user, "postgres", "-D", "/scratch/it.worker1/data"),
        ),
        (Phase.PREPARE, (*OWN, *as_user, "pgbench", "-i", "-h", "127.0.0.1")),
        (Phase.RUN, (*OWN, "--report", "usage.json", *as_user, "pgbench", "-h", "127.0.0.1", "-c", "2", "-T", "20")),
        (Phase.CLEANUP, (*OWN, *as_user, "rm", "-f", "left")),
    ]
    service = found[2].service
    assert service is not None
    assert (service.stop, service.ready) == ("SIGINT", Ready(port=FIRST_PORT + 2, timeout_s=20.0))
    assert found[2].timeout_s > sum(step.timeout_s for step in found[3:])


def test_in_a_pair_the_service_and_its_setup_are_on_the_server() -> None:
    found = steps(DATABASE, PAIR)
    assert [step.nodes for step in found] == [
        ("master", "worker1"),
        ("worker1",),
        ("worker1",),
        ("master",),
        ("master",),
        ("master",),
    ]
    assert own(found[4])[:3] == ("pgbench", "-h", "worker1")


def test_addresses_are_all_that_depends_on_the_environment() -> None:
    both = [steps(DATABASE, PAIR.model_copy(update={"scope": Scope.CLUSTER}), one) for one in (BETWEEN, ONE_MACHINE)]
    texts = [[" ".join(step.argv) for step in several] for several in both]
    assert texts[0] != texts[1]
    assert [text.replace("-h master", "-h 127.0.0.1") for text in texts[0]] == texts[1]


def test_a_role_and_a_name_of_a_node() -> None:
    wanted = {
        "run": {"command": ["a"], "on": "server"},
        "prepare": [{"command": ["b"], "on": "client", "timeout": "2 s"}],
    }
    prepare, run = steps(wanted, PAIR)
    assert (prepare.nodes, prepare.timeout_s, run.nodes) == (("master",), 2.0, ("worker1",))
    cluster = PAIR.model_copy(update={"scope": Scope.CLUSTER})
    (run,) = steps({"run": {"command": ["a"], "on": "worker1"}}, cluster)
    assert run.nodes == ("worker1",)
    with pytest.raises(UsageError, match='on = "worker2": that node does not take part'):
        steps({"run": {"command": ["a"], "on": "worker2"}}, cluster)


def test_the_image_of_the_study_is_entered() -> None:
    entry = {"run": {}, "services": [{"image": False, "command": ["sleep", "9"]}, {}]}
    given = COMMAND.placed(CommandParams.model_validate(entry), AROUND._replace(workload=True))
    found = COMMAND.steps(COMMAND.resolve(given, ALONE), ALONE, BETWEEN)
    inside = ("--image", "/workload", "--")
    assert [step.argv for step in found[1:]] == [
        ("vtax-supervise", "--control", "vtax-run", "--", "sleep", "9"),
        ("vtax-supervise", "--control", "vtax-run", *inside),
        (*OWN, "--report", "usage.json", *inside),
    ]


def test_words_of_the_study_and_files() -> None:
    entry = {
        "command": ["sh", "work.sh", "{scale}", "{seed}"],
        "values": {"scale": 50},
        "files": [{"from": "a/work.sh", "to": "work.sh", "executable": True, "sha256": "a" * 64}],
    }
    placing, run = steps(entry)
    assert own(run) == ("sh", "work.sh", "50", "7")
    assert [(file.name, file.sha256) for file in placing.inputs] == [("work.sh", "a" * 64)]
    assert own(placing)[-2:] == ("0755", "work.sh")
    with pytest.raises(UsageError, match="was not read"):
        params({"command": ["x"], "files": [{"from": "x"}]})


def test_two_entries_have_different_ports_unless_the_study_says() -> None:
    assert [params({"command": ["a"]}, around=AROUND._replace(place=n)).port for n in range(3)] == [21000, 21001, 21002]
    assert params({"command": ["a"], "port": 6379}).words["port"] == "6379"


def test_success_and_time_limits() -> None:
    entry = {"run": {"command": ["a"], "success": {"exit": [0, 3]}, "timeout": "7 s"}}
    (run,) = steps(entry)
    assert (run.success, run.timeout_s) == ((0, 3), 7.0)
    assert steps({"run": {"command": ["a"], "seconds": "2 min"}, "metrics": DATABASE["metrics"]})[0].timeout_s == 180.0
    assert COMMAND.estimate_s(params({"run": {"command": ["a"], "estimate": 3}}), ALONE) == 3.0
    assert COMMAND.clocked_s(params(DATABASE), ALONE) == 20.0


# --- mistakes ------------------------------------------------------------------------------------------------------


def found(given: Mapping[str, Any], scopes: tuple[Scope, ...] = (Scope.NODE,), label: str = "it") -> list[str]:
    spec = BenchmarkSpec(name="command", label=label, scopes=scopes)
    return [str(one) for one in COMMAND.mistakes(CommandParams.model_validate(given), spec, workload=False)]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "run.command: is missing"),
        ({"command": ["a", "{cpu}"]}, "command[1]: there is no {cpu}: did you mean {cpus}?"),
        ({"run": {"command": ["a", "{seconds}"]}}, "run.command[1]: {seconds} needs `seconds` in `run`"),
        ({"command": ["a"], "setup": [["b", "{x"]]}, "setup[0][1]: '{x' has a single {"),
        ({"command": ["a"], "prepare": [{"command": ["{y}"]}]}, "prepare[0].command[0]: there is no {y}"),
        ({"command": ["a"], "env": {"A": "{z}"}}, "env.A: there is no {z}"),
        ({"command": ["a"], "directory": "{d}"}, "directory: there is no {d}"),
        ({"command": ["a"], "services": [{}]}, "services[0].command: is missing"),
        ({"command": ["a"], "services": [{"command": ["b"], "ready": {"port": "{prt}"}}]}, "did you mean {port}?"),
        (
            {"command": ["a"], "services": [{"command": ["b"], "ready": {"command": ["{q}"]}}]},
            "ready.command[0]: there",
        ),
        ({"command": ["a"], "values": {"cpus": 3}}, "values.cpus: {cpus} has a meaning already"),
        ({"command": ["a", "{x}"], "values": {"x": 1, "y": 2}}, "values.y: no command uses {y}"),
        ({"command": ["a"], "words": {"cpus": "3"}}, "words: the plan fills it in"),
        ({"command": ["a"], "image": True}, "image: the study has no image of its own"),
        ({"run": {"command": ["a"], "on": "master"}}, 'run.on: "master" is not a node in scope node'),
        ({"run": {"command": ["a"], "seconds": 5}}, "metrics: a run for a fixed time takes that time"),
        ({"command": ["a"], "metrics": DATABASE["metrics"]}, 'metrics[0].kind: "rate, fixed time" is not what this'),
        ({"command": ["a"], "files": [{"from": "x/a"}, {"from": "y/a"}]}, "files[1].to: a is there already"),
        (
            {"run": {"command": ["a"], "ranks_per_node": 1}, "user": "x"},
            "run.ranks_per_node: mpirun reaches other nodes",
        ),
        ({"command": ["a"], "files": [{"from": "usage.json"}]}, "files[0].to: usage.json is there already"),
    ],
)
def test_a_mistake_has_its_place_and_a_remedy(given: Mapping[str, Any], says: str) -> None:
    assert any(says in one for one in found(given)), found(given)


def test_an_entry_without_mistakes_and_one_without_a_label() -> None:
    assert found(DATABASE) == []
    assert found(DATABASE, (Scope.NODE, Scope.PAIRS)) == []
    assert found({"command": ["a"]}, label="command") == [
        "label: is missing (the name of this entry in reports and gates)"
    ]


def test_node_means_nothing_in_a_pair() -> None:
    said = found({"run": {"command": ["a"], "on": "node"}}, (Scope.NODE, Scope.PAIRS))
    assert said == ['run.on: "node" is not a node in scope node, pairs (allowed: server, client)']


@pytest.mark.parametrize(
    "given",
    [
        {"command": []},
        {"command": "true"},
        {"command": [""]},
        {"command": ["--help"]},
        {"command": ["a\0b"]},
        {"command": ["a"], "run": {"command": ["b"]}},
        {"command": ["a"], "user": "--root"},
        {"command": ["a"], "user": "root\nx"},
        {"command": ["a"], "env": {"A=B": "c"}},
        {"command": ["a"], "env": {"A": "b\nc"}},
        {"command": ["a"], "packages": ["--allow-downgrades"]},
        {"command": ["a"], "files": [{"from": "../up"}]},
        {"command": ["a"], "files": [{"from": "/etc/passwd"}]},
        {"command": ["a"], "files": [{"from": "a", "to": "../up"}]},
        {"command": ["a"], "port": 0},
        {"command": ["a"], "values": {"Upper": 1}},
        {"command": ["a"], "services": [{"command": ["b"], "stop": "SIGSTOP"}]},
        {"command": ["a"], "services": [{"command": ["b"], "ready": {}}]},
        {"command": ["a"], "services": [{"command": ["b"], "ready": {"port": 1, "line": "x"}}]},
        {"command": ["a"], "services": [{"command": ["b"], "ready": {"line": "("}}]},
        {"run": {"command": ["a"], "success": {"match": "(?=x)"}}},
        {"run": {"command": ["a"], "success": {"exit": []}}},
        {"run": {"command": ["a"], "seconds": 0}},
        {"run": {"command": ["a"], "on": "-1"}},
    ],
)
def test_what_cannot_be_right_is_refused(given: Mapping[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CommandParams.model_validate(given)
