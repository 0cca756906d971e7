"""Every key of an entry with an own command, with values that no study should have: a mistake that names the key, in a
message that a person can read, or an entry that can be used. Never another exception."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from vtax.errors import StudyError
from vtax.planning.study import of_text
from vtax.tools.command import params
from vtax.tools.command.metric_table import Csv, MetricTable

HEAD = """
name = "hostile"
baseline = "host"
[environments.host]
provider = "host"
[[benchmarks]]
name = "command"
"""
VALUES: tuple[Any, ...] = (
    "<script>alert(1)</script>",
    "é漢字🙂",
    "\u202egnp.exe",
    "",
    "x" * 100_000,
    "../../etc/passwd",
    "a\nb",
    "{",
    "{nothing}",
    0,
    -1,
    1.5,
    True,
    float("nan"),
    10**30,
    [],
    [[]],
    ["<b>"],
    {},
    {"a": 1},
)
ENTRY: dict[str, Any] = {"label": "x", "command": ["true"]}
METRIC: dict[str, Any] = {"name": "tps", "unit": "1/s", "kind": "rate, fixed work", "regex": "tps = ([0-9.]+)"}
WITHOUT_WAY = {key: value for key, value in METRIC.items() if key != "regex"}


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key, ensure_ascii=False)} = {toml(one)}' for key, one in value.items())}}}"
    return repr(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)


def keys_of(record: Any) -> list[str]:
    return [*(field.alias or name for name, field in record.model_fields.items()), "unknown"]


def entries(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every key of every table with this value, in an entry that is right but for that."""
    for key in (*keys_of(params.CommandParams), "label", "matrix", "nodes", "scopes", "iterations"):
        yield key, {**ENTRY, key: value}
    for key in keys_of(params.RunTable):
        yield f"run.{key}", {"label": "x", "run": {"command": ["true"], key: value}, "metrics": [METRIC]}
    for key in keys_of(params.SuccessTable):
        yield f"success.{key}", {"label": "x", "run": {"command": ["true"], "success": {key: value}}}
    for name in ("setup", "prepare", "cleanup"):
        for key in keys_of(params.CommandTable):
            yield f"{name}.{key}", {**ENTRY, name: [{"command": ["true"], key: value}]}
    for key in keys_of(params.ServiceTable):
        yield f"services.{key}", {**ENTRY, "services": [{"command": ["true"], key: value}]}
    for key in keys_of(params.ReadyTable):
        yield f"ready.{key}", {**ENTRY, "services": [{"command": ["true"], "ready": {key: value}}]}
    for key in keys_of(params.FileTable):
        yield f"files.{key}", {**ENTRY, "files": [{"from": "a.txt", key: value}]}
    for key in keys_of(MetricTable):
        yield f"metrics.{key}", {**ENTRY, "metrics": [{**METRIC, key: value}]}
        yield f"metrics.{key}", {**ENTRY, "metrics": [{**WITHOUT_WAY, key: value}]}
    for key in keys_of(Csv):
        yield f"csv.{key}", {**ENTRY, "metrics": [{**WITHOUT_WAY, "csv": {"column": "c", key: value}}]}
    for table in ("env", "values", "matrix"):
        yield f"{table}.v", {**ENTRY, table: {"v": value}}
        if isinstance(value, str):
            yield f"{table} name", {**ENTRY, table: {value: [1, 2] if table == "matrix" else "1"}}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_a_value_is_used_or_refused_in_a_few_lines(value: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    refused = 0
    for where, entry in entries(value):
        text = HEAD + "".join(f"{json.dumps(key, ensure_ascii=False)} = {toml(one)}\n" for key, one in entry.items())
        try:
            of_text(text, "hostile.toml", tmp_path)
        except StudyError as error:
            refused += 1
            key = where.rpartition(".")[2].removesuffix(" name")
            known = any(key in str(one) for one in error.mistakes) or "exactly one of" in str(error)
            assert known or "metrics" in str(error), where
            assert len(str(error)) < 6000, where
    assert refused, "every one of these values is wrong somewhere"
