"""A table of published numbers: CSV with a header, or TOML with `[[claims]]`."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vtax import files
from vtax.analysis.claims import Claim, Claims
from vtax.errors import UsageError

BYTES, MOST = 2**20, 10_000
COLUMNS = ("name", "value", "unit")
OPTIONAL = ("n", "environment")
REMEDY = "give a CSV table with the columns name, value, unit and n, or TOML: [[claims]] name = ..., value = ..."


def read_claims(path: Path) -> Claims:
    """The claims in a file. Raises UsageError with the row that is wrong."""
    try:
        text = files.read(path.parent, path.name, BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy=REMEDY) from error
    found: list[Claim] = []
    try:
        for row in _toml(text) if path.suffix == ".toml" else _csv(text):
            found.append(_claim(row))
            if len(found) > MOST:
                raise ValueError(f"more than {MOST} claims")
    except (ValueError, RecursionError, csv.Error) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error)
        raise UsageError(f"{path}: claim {len(found) + 1}: {why}", remedy=REMEDY) from error
    if not found:
        raise UsageError(f"{path} has no claims", remedy=REMEDY)
    return Claims(claims=tuple(found))


def _csv(text: str) -> Iterator[Mapping[str, Any]]:
    rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    for row in rows:
        if None in row or None in row.values():
            raise ValueError("it has not as many columns as the header")
        yield {str(name).strip().lower(): value.strip() for name, value in row.items()}


def _toml(text: str) -> Iterator[Mapping[str, Any]]:
    content = tomllib.loads(text).get("claims")
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise ValueError("there is no [[claims]]")
    yield from content


def _claim(row: Mapping[str, Any]) -> Claim:
    """One row. The value keeps the digits that it was printed with: they say how exact it is."""
    missing = [name for name in COLUMNS[:2] if row.get(name) in (None, "")]
    unknown = sorted(set(row) - {*COLUMNS, *OPTIONAL})
    if missing or unknown:
        raise ValueError(f"{missing[0]} is missing" if missing else f"column {unknown[0]!r} is unknown")
    text = str(row["value"]).replace(" ", "")
    value = float(text)
    n = row.get("n")
    return Claim(
        name=str(row["name"]),
        text=text,
        value=value,
        unit=str(row.get("unit") or "1"),
        n=None if n in (None, "") else int(str(n)),
        environment=str(row.get("environment") or ""),
    )
