"""A recipe: which files of somebody's repository are what, so that anybody can import them again."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field, ValidationError

from vtax import files
from vtax.errors import UsageError
from vtax.importing.request import Request
from vtax.model.record import Record

BYTES = 2**20
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")]
Pattern = Annotated[str, Field(pattern=r"^[^\x00-\x1f/][^\x00-\x1f]{0,300}$")]  # below the folder


class Step(Record):
    """One import: files by patterns (`*`, `**`), and what is stated of them, as the options of `vtax import` do."""

    paths: tuple[Pattern, ...]
    environment: str = ""
    layout: str = ""
    benchmark: str = ""
    labels: Mapping[str, str] = Field(default_factory=dict)
    units: Mapping[str, str] = Field(default_factory=dict)
    table: Annotated[tuple[str, ...], Field(max_length=100)] = ()


class Recipe(Record):
    """The published study, where its raw data are, and how they are imported."""

    title: str
    repository: str
    commit: Commit
    baseline: str
    imports: Annotated[tuple[Step, ...], Field(min_length=1, max_length=100)]


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file. Raises UsageError."""
    try:
        content = tomllib.loads(files.read(path.parent, path.name, BYTES).decode())
        return Recipe.model_validate(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="give a recipe in TOML") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is no recipe: {where}: {first['msg']}", remedy="see docs/importing.md") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no recipe: {error}", remedy="see docs/importing.md") from error


def requests(recipe: Recipe, folder: Path) -> Iterator[Request]:
    """The imports of a recipe from a checkout. Raises UsageError where the folder has none of the files of one."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", remedy=f"check out {recipe.repository} at {recipe.commit}")
    for step in recipe.imports:
        found = sorted({path for pattern in step.paths for path in _matching(folder, pattern)})
        if not found:
            raise UsageError(
                f"{folder} has no files {', '.join(step.paths)}",
                remedy=f"check out {recipe.repository} at {recipe.commit}, and give its top folder",
            )
        yield Request(
            paths=tuple(found),
            environment=step.environment,
            layout=step.layout,
            benchmark=step.benchmark,
            labels=step.labels,
            units=step.units,
            table=step.table,
            origin=f"{recipe.repository} at {recipe.commit}",
        )


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    if ".." in PurePosixPath(pattern).parts:
        raise UsageError(f"{pattern!r} leads out of the folder", remedy="name files below it")
    return (path for path in folder.glob(pattern) if not path.is_dir())
