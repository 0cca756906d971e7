"""A `matrix`: the entries that it stands for, and what can be wrong with it."""

from __future__ import annotations

import pytest

from vtax.errors import StudyError
from vtax.planning.study import parse

HEAD = """\
name = "test"
baseline = "host"
[environments.host]
provider = "host"
[environments.box]
provider = "docker"
{box}
[[benchmarks]]
"""
OWN = """\
name = "command"
label = "pg"
command = ["bench", "-c", "{clients}"]
"""


def study(entry: str, box: str = "") -> str:
    return HEAD.format(box=box) + entry


def test_an_own_command_gets_words() -> None:
    found = parse(study(OWN + "matrix = { clients = [1, 8] }"), "test.toml")
    assert [one.label for one in found.benchmarks] == ["pg-clients-1", "pg-clients-8"]
    assert [one.params["values"] for one in found.benchmarks] == [{"clients": 1}, {"clients": 8}]
    assert {one.sweep_of for one in found.benchmarks} == {"pg"}
    assert found.benchmarks[1].point == {"clients": 8}


def test_a_built_in_entry_gets_parameters() -> None:
    found = parse(study('name = "hpl"\nmatrix = { n = [1000, 2000], nb = [96, 192] }'), "test.toml")
    assert [one.label for one in found.benchmarks] == [
        "hpl-n-1000-nb-96",
        "hpl-n-1000-nb-192",
        "hpl-n-2000-nb-96",
        "hpl-n-2000-nb-192",
    ]
    assert [(one.params["n"], one.params["nb"]) for one in found.benchmarks][2] == (2000, 96)


def test_an_environment_that_names_the_sweep_means_all_of_it() -> None:
    other = '\n[[benchmarks]]\nname = "ping"\n'
    found = parse(study(OWN + "matrix = { clients = [1, 8] }" + other, box='skip = ["pg"]'), "test.toml")
    assert found.environments[1].selection.skip == ("pg-clients-1", "pg-clients-8")


@pytest.mark.parametrize(
    ("entry", "path", "said"),
    [
        (OWN + "matrix = 3", "benchmarks[0].matrix", ""),
        (OWN + "matrix = {}", "benchmarks[0].matrix", "it has to be a table with lists"),
        (OWN + "matrix = { clients = [] }", "benchmarks[0].matrix.clients", "it has to be a list of values"),
        (OWN + "matrix = { clients = [nan] }", "benchmarks[0].matrix.clients", "a value is not finite"),
        (OWN + "matrix = { clients = [true] }", "benchmarks[0].matrix.clients", "a value is neither"),
        (OWN + 'matrix = { clients = ["a b", "a/b"] }', "benchmarks[0].matrix.clients", "two values would give"),
        (OWN + "matrix = { Clients = [1] }", "benchmarks[0].matrix.Clients", "it is not a word"),
        (OWN + "matrix = { command = [1] }", "benchmarks[0].matrix.command", "the entry has a value for it"),
        (
            OWN + f"matrix = {{ clients = {list(range(11))}, more = {list(range(10))} }}",
            "benchmarks[0].matrix",
            "these are 110 entries",
        ),
        ('name = "hpl"\nmatrix = { nn = [1] }', "benchmarks[0].matrix.nn", "there is no parameter 'nn'"),
        ('name = "hpl"\nn = 1000\nmatrix = { n = [1] }', "benchmarks[0].matrix.n", "the entry has a value for it"),
        ('name = "hpl"\nmatrix = { n = [1000, 0] }', "benchmarks[0].n", ""),
    ],
)
def test_a_mistake_in_a_matrix_is_named(entry: str, path: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(study(entry), "test.toml")
    found = {one.path: one.message for one in caught.value.mistakes}
    assert path in found, found
    assert said in found[path]


@pytest.mark.parametrize("values", ["[]", "[[1], [2]]", "[1, 1]", "[nan]", str(list(range(101)))])
def test_a_wrong_matrix_is_the_only_mistake(values: str) -> None:
    """Its word in braces is not called unknown as well."""
    with pytest.raises(StudyError) as caught:
        parse(study(OWN + f"matrix = {{ clients = {values} }}"), "test.toml")
    assert len(caught.value.mistakes) == 1, caught.value.mistakes
