"""Workloads by name: what a study gets for `workload = "NAME"`, what its own keys do, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from vtax.cli.app import app
from vtax.errors import StudyError, UsageError
from vtax.model.metric import Metric
from vtax.model.study import BenchmarkSpec
from vtax.planning.schema import json_schema
from vtax.planning.study import of_text, parse
from vtax.planning.workloads import study_of, workload, workloads
from vtax.tools import benchmarks, metrics_of
from vtax.tools.command.workload import Workload

HEAD = """\
name = "test"
baseline = "host"
[environments.host]
provider = "host"
[environments.box]
provider = "docker"
[[benchmarks]]
workload = "fio-randread-4k"
"""


def entries(keys: str = "") -> tuple[BenchmarkSpec, ...]:
    return parse(HEAD + keys, "test.toml").benchmarks


def mistake(keys: str) -> str:
    with pytest.raises(StudyError) as caught:
        parse(HEAD + keys, "test.toml")
    return str(caught.value.detail)


def command(spec: BenchmarkSpec) -> list[str]:
    run: Any = spec.params["run"]
    words: list[str] = run["command"]
    return words


def test_a_name_stands_for_the_entries_of_its_file() -> None:
    one, other = entries()
    assert (one.name, one.label, other.label) == ("fio", "fio-randread-4k-depth-1", "fio-randread-4k-depth-32")
    assert (one.workload, one.nodes, one.params["packages"]) == ("fio-randread-4k", ("worker1",), ["fio"])
    assert "--rw=randread" in command(one)
    assert other.point == {"depth": 32}


def test_keys_of_the_study_replace_those_of_the_workload() -> None:
    one, other = entries(
        'label = "mine"\nnodes = ["master"]\niterations = 4\nexploratory = true\nrun = { seconds = 2 }\n'
    )
    assert (one.label, other.label) == ("mine-depth-1", "mine-depth-32")
    assert (one.nodes, one.iterations, one.exploratory) == (("master",), 4, True)
    run: Any = one.params["run"]
    assert run["seconds"] == 2
    assert "--rw=randread" in command(one)


def test_values_are_added_to_those_of_the_workload_and_replace_a_part_of_its_matrix() -> None:
    (one,) = entries("values = { depth = 8 }\n")
    assert one.label == "fio-randread-4k"
    assert one.params["values"] == {"size": "256m", "depth": 8}
    assert [one.label for one in entries("matrix = { depth = [2, 4] }\n")] == [
        "fio-randread-4k-depth-2",
        "fio-randread-4k-depth-4",
    ]


def test_metrics_of_the_study_replace_all_of_the_workload() -> None:
    one, _ = entries('metrics = [{ reader = "fio", primary = ["read_bandwidth"] }]\n')
    deciding = [metric.name for metric in metrics_of(one.name, one.params) if metric.primary]
    assert deciding == ["read_bandwidth"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('name = "fio"\n', "benchmarks[0].name: the workload fio-randread-4k has one"),
        ("run = { secs = 3 }\n", 'benchmarks[0].run.secs: unknown key "secs"'),
        ('nodes = ["worker7"]\n', "benchmarks[0].nodes: there is no node 'worker7'"),
        ('command = ["fio"]\n', "give only one of them"),
        ("matrix = { depth = [] }\n", "it has to be a list of values"),
    ],
)
def test_what_does_not_go_with_a_workload_is_a_mistake_with_its_place(keys: str, words: str) -> None:
    assert words in mistake(keys)


def test_an_unknown_name_is_a_mistake_that_names_the_nearest() -> None:
    with pytest.raises(StudyError) as caught:
        parse(HEAD.replace("randread", "randred"), "test.toml")
    assert "benchmarks[0].workload: there is no workload 'fio-randred-4k'" in str(caught.value.detail)
    assert 'did you mean "fio-randread-4k"?' in str(caught.value.detail)
    with pytest.raises(UsageError, match="there is no workload 'fio'"):
        workload("fio")


def test_a_second_entry_keeps_the_paths_of_the_file() -> None:
    with pytest.raises(StudyError) as caught:
        parse(HEAD + '[[benchmarks]]\nname = "pingg"\n', "test.toml")
    assert "benchmarks[1].name" in str(caught.value.detail)


# --- every workload that there is ------------------------------------------------------------------------------------

every = pytest.mark.parametrize("name", workloads())


@every
def test_a_study_of_it_is_right(name: str) -> None:
    found = of_text(study_of(name), name, Path())
    assert found.benchmarks
    for spec in found.benchmarks:
        assert isinstance(benchmarks()[spec.name], Workload)
        assert spec.label.startswith(name)
        assert spec.params["packages"] or spec.params["files"]


@every
def test_it_says_what_it_measures_and_how_long_it_takes(name: str) -> None:
    one = workload(name)
    assert 10 < len(one.about) < 110
    assert not one.about.endswith(".")
    assert 0 < one.seconds < 300


@every
def test_its_metrics_are_documented(name: str) -> None:
    for spec in of_text(study_of(name), name, Path()).benchmarks:
        declared: tuple[Metric, ...] = metrics_of(spec.name, spec.params)
        assert any(metric.primary for metric in declared)
        assert all(metric.meaning for metric in declared)


def test_the_schema_takes_every_workload() -> None:
    schema = json_schema()
    for name in workloads():
        jsonschema.validate(_study({"workload": name, "iterations": 2, "run": {"seconds": 3}}), schema)
    for wrong in ({"workload": "fyo"}, {"workload": "fio-randread-4k", "name": "fio"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(_study(wrong), schema)


def _study(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "x", "baseline": "host", "environments": {"host": {"provider": "host"}}, "benchmarks": [entry]}


# --- commands --------------------------------------------------------------------------------------------------------


def test_vtax_workloads_lists_all_and_prints_one() -> None:
    listed = CliRunner().invoke(app, ["workloads"])
    assert listed.exit_code == 0
    assert listed.output.split("\n")[0].split() == ["name", "what", "it", "measures", "packages", "seconds"]
    assert {line.split()[0] for line in listed.output.splitlines()[1:]} == set(workloads())
    one = CliRunner().invoke(app, ["workloads", "fio-randread-4k"])
    assert one.output == workload("fio-randread-4k").text
    content = json.loads(CliRunner().invoke(app, ["workloads", "--json"]).output)
    assert {row["name"] for row in content} == set(workloads())
    assert {tuple(row) for row in content} == {("name", "about", "packages", "seconds", "entries")}


def test_vtax_init_writes_a_study_of_a_workload() -> None:
    text = CliRunner().invoke(app, ["init", "--workload", "fio-randread-4k", "-o", "-"]).output
    assert [one.label for one in parse(text, "x").benchmarks] == ["fio-randread-4k-depth-1", "fio-randread-4k-depth-32"]


@pytest.mark.parametrize("words", [["workloads", "fyo"], ["init", "--workload", "fyo"]])
def test_an_unknown_workload_is_a_usage_error(words: list[str]) -> None:
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == 2


@pytest.mark.parametrize("name", ["mariadb", "mariadb-pair", "pgbench", "pgbench-pair"])
def test_a_data_directory_that_is_there_already_is_refused(name: str) -> None:
    """mariadb-install-db would take one that is there, and end with 0; initdb and mkdir refuse it."""
    for spec in parse(study_of(name), f"{name}.toml").benchmarks:
        setup: Any = spec.params["setup"]
        commands = [step if isinstance(step, list) else step["command"] for step in setup]
        first = next(words for words in commands if any("{dir}/data" in word for word in words))
        assert first[0] in ("initdb", "mkdir")
