"""The page about metrics of own commands says what is so: keys, kinds, readers, builtins, and its examples."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from vtax.model.metric import Kind
from vtax.tools.command.builtins import BUILTINS
from vtax.tools.command.metric_table import MetricTable
from vtax.tools.command.readers import READERS

PAGES = sorted((Path(__file__).parents[4] / "docs").glob("own-workloads*.md"))
PAGE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
BLOCKS: list[str] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def rows(header: str) -> dict[str, str]:
    """First cell, without its quotation marks, to the rest of its row, of the table with this header."""
    lines = PAGE[PAGE.index(f"| {header} |") :].split("\n\n")[0].splitlines()[2:]
    cells = [line.strip("| ").split(" | ") for line in lines]
    return {first.strip('`"'): " | ".join(rest) for first, *rest in cells}


def test_every_key_is_listed() -> None:
    names = {field.alias or name for name, field in MetricTable.model_fields.items()}
    assert set(rows("Key | Type | Default | Meaning")) >= names


def test_every_kind_is_listed_with_its_direction() -> None:
    assert set(rows("Kind | For | Better")) == {kind.value for kind in Kind}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_listed_with_its_metrics(name: str) -> None:
    row = rows("Reader | Reads | Metrics")[name]
    for metric in READERS[name].metrics:
        assert metric.name in row


def test_every_builtin_is_named() -> None:
    assert all(f"`{name}`" in PAGE for name in BUILTINS)


@pytest.mark.parametrize("block", [block for block in BLOCKS if "[[benchmarks.metrics]]" in block])
def test_examples_are_right(block: str) -> None:
    content = tomllib.loads(block)
    entries = content["benchmarks"] if isinstance(content["benchmarks"], list) else [content["benchmarks"]]
    tables = [table for entry in entries for table in entry.get("metrics", [])]
    assert tables
    for table in tables:
        assert MetricTable.model_validate(table)
