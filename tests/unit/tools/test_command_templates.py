"""Words in braces: a closed list, filled in once, with the nearest spelling for a word that is not in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.cluster import node_shape
from vtax.model.nodes import Scope, Target
from vtax.tools.command.templates import NAMES, Unknown, address, check, filled, of_shape, text_of

UNEQUAL = Target(
    scope=Scope.CLUSTER,
    nodes=(node_shape("master", (0, 1, 2), 4 * 2**30), node_shape("worker1", (3,), 2**30)),
    directory="/shared/mine.cluster",
)


def test_words_are_replaced_and_doubled_braces_are_braces() -> None:
    assert filled("-c{cpus} {{x}} {dir}/data", {"cpus": "4", "dir": "/scratch/a"}) == "-c4 {x} /scratch/a/data"


def test_what_a_value_contains_is_not_filled_in_again() -> None:
    assert filled("{first}{{second}}", {"first": "{second}", "second": "no"}) == "{second}{second}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{cpu}", "did you mean {cpus}?"),
        ("{Memory_bytes}", "did you mean {memory_bytes}?"),
        ("{}", "there is no {}"),
        ("{ cpus }", "did you mean {cpus}?"),
        ("{nothing-like-it}", "allowed: {client}, {cpus}"),
        ("a { b", "single {"),
        ("a } b", "single }"),
        ('{"key": 1}', "write {{"),
    ],
)
def test_other_words_are_refused_with_the_nearest_spelling(text: str, says: str) -> None:
    with pytest.raises(Unknown) as error:
        check(text, NAMES)
    assert says in str(error.value)


@given(st.text())
def test_doubling_the_braces_keeps_any_text(text: str) -> None:
    assert filled(text.replace("{", "{{").replace("}", "}}"), {}) == text


def test_sizes_are_of_the_smallest_node_and_ranks_of_all() -> None:
    found = of_shape(UNEQUAL)
    assert found == {
        "cpus": "1",
        "threads": "1",
        "memory_bytes": str(2**30),
        "nodes": "2",
        "ranks": "4",
        "dir": "/shared/mine.cluster",
    }


def test_nodes_are_reached_by_name_unless_they_are_one() -> None:
    alone = UNEQUAL.model_copy(update={"scope": Scope.NODE, "nodes": UNEQUAL.nodes[:1]})
    assert address("worker1", UNEQUAL, one_machine=False) == "worker1"
    assert address("worker1", UNEQUAL, one_machine=True) == "127.0.0.1"
    assert address("master", alone, one_machine=False) == "127.0.0.1"


def test_numbers_appear_as_a_person_writes_them() -> None:
    assert [text_of(value) for value in (8, 0.5, 1e6, "x")] == ["8", "0.5", "1e+06", "x"]
