"""Kinds of parameters that several benchmarks share: sizes with a unit, and numbers of threads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from vtax.model.nodes import Target
from vtax.units import parse_bytes, parse_seconds

Auto = Literal["auto"]


def _bytes(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("true and false are not sizes")
    return parse_bytes(value) if isinstance(value, (str, int)) else value


Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    Field(gt=0),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "examples": ["512 MiB"]}]}),
]
"""A size in bytes; a study may write it with a unit."""


def _seconds(value: Any) -> Any:
    return parse_seconds(value) if isinstance(value, str) else value


Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    Field(gt=0, le=1e6),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "examples": ["90 s"]}]}),
]
"""A duration in seconds; a study may write it with a unit."""

Threads = Auto | Annotated[int, Field(ge=1, le=4096)]
"""A number of threads or workers on each node, or "auto": one for every CPU."""


def threads_on(target: Target, threads: Auto | int) -> int:
    """`threads`, or the CPUs of the target's smallest node: its nodes run the same command, so none is overloaded."""
    return min(node.cpus for node in target.nodes) if threads == "auto" else threads


def kibibytes(size: int) -> int:
    """`size` in KiB. Raises ValueError when it is not a whole number of them."""
    if size % 1024:
        raise ValueError(f"{size} bytes are not a whole number of KiB")
    return size // 1024
