"""Whatever a study says, none of it becomes an option of a command that vtax starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from vtax.planning.study_tables import BenchmarkTable, ImageTable, MachineTable, NodesTable, StudyFile
from vtax.providers import option_models
from vtax.tools import benchmarks
from vtax.tools.command.params import (
    CommandParams,
    CommandTable,
    FileTable,
    ReadyTable,
    RunTable,
    ServiceTable,
    SuccessTable,
)

HOSTILE = ("--help", "-o", "x --help", "$(id)", "a\nb", "../x", "")
CODE = {  # commands of a study's author, which are code; vtax never puts them into commands of its own
    CommandParams: {"command", "setup", "prepare", "cleanup", "env", "values", "words", "directory"},
    CommandTable: {"command"},
    ServiceTable: {"command"},
    ReadyTable: {"command", "line"},
    RunTable: {"command", "volatile"},
    SuccessTable: {"match", "refuse"},
}
NEEDED: dict[type[BaseModel], dict[str, str]] = {
    BenchmarkTable: {"name": "ping"},
    FileTable: {"from": "a"},
    MachineTable: {"ssh": "a"},
}  # by tables of which nothing else can be said without it
COMPARED = {  # with the names that exist, when the study is checked as a whole
    StudyFile: {"baseline", "ladder"},
    BenchmarkTable: {"name", "nodes", "load"},
}


def models() -> Iterator[type[BaseModel]]:
    for benchmark in benchmarks().values():
        yield benchmark.params
    yield from option_models().values()
    yield from (ImageTable, MachineTable, NodesTable, StudyFile, BenchmarkTable)
    yield from (CommandTable, FileTable, ReadyTable, RunTable, ServiceTable, SuccessTable)


def cases() -> list[tuple[type[BaseModel], str]]:
    found = dict.fromkeys((model, name) for model in models() for name in model.model_fields)
    return [(model, name) for model, name in found if name not in {*COMPARED.get(model, ()), *CODE.get(model, ())}]


@pytest.mark.parametrize(("model", "name"), cases(), ids=lambda one: getattr(one, "__name__", one))
@pytest.mark.parametrize("text", HOSTILE)
def test_no_value_of_a_study_is_text_without_a_pattern(model: type[BaseModel], name: str, text: str) -> None:
    field = model.model_fields[name]
    for value in (text, [text], {text: text}):
        try:
            made = model.model_validate({**NEEDED.get(model, {}), field.alias or name: value})
        except ValidationError as error:
            assert any(found["loc"][:1] == (field.alias or name,) for found in error.errors()), error
        else:
            assert getattr(made, name) in (None, "", (), {}), f"{name} = {value!r} was taken"
