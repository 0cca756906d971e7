"""Mistakes in a file that a user wrote, found by pydantic and reported in plain words."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import UnionType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vtax.errors import Mistake

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], raw: Any, prefix: str, mistakes: list[Mistake], allowed: Iterable[str] = ()) -> M | None:
    """`raw` as a record, or None with the mistakes added. Strict as JSON: neither true nor "3" is a number."""
    try:
        return model.model_validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        found = [(_location(one, raw), dict(one)) for one in error.errors()]
    for parts, group in groupby(found, key=lambda one: one[0]):
        translated = [_translated(one, prefix, parts, model, allowed) for _, one in group]
        mistakes.append(translated[0] if len(translated) == 1 else _none_fits(translated))
    return None


def _location(error: ErrorDetails, raw: Any) -> list[int | str]:
    """Where in the file an error is, without the names of union branches that pydantic adds."""
    parts: list[int | str] = []
    here = raw
    for part in error["loc"]:
        inside = part in here if isinstance(here, dict) else isinstance(here, list) and isinstance(part, int)
        if inside:
            parts.append(part)
            here = here[part]
    return [*parts, error["loc"][-1]] if error["type"] == "missing" else parts


def _none_fits(alternatives: Sequence[Mistake]) -> Mistake:
    """Several reasons for one value, one for each form that it may have, as one mistake."""
    reasons = [one.hint or one.message for one in alternatives]
    return Mistake(alternatives[0].path, "has none of the allowed forms", "; or ".join(dict.fromkeys(reasons)))


def unsupported_values(value: Any, path: str) -> Iterable[Mistake]:
    """What TOML supports but no key of a study accepts: dates and times, and numbers beyond 64 bits."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from unsupported_values(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from unsupported_values(part, f"{path}[{index}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield Mistake(path, "the number is too large", "use at most 64 bits")
    elif not isinstance(value, (str, int, float)):
        yield Mistake(path, "dates and times are not used in a study", "put strings in quotation marks")


def _translated(
    error: Mapping[str, Any], prefix: str, parts: Sequence[int | str], model: type[BaseModel], allowed: Iterable[str]
) -> Mistake:
    """One pydantic error as a sentence."""
    path = prefix
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            names = list(allowed) or _keys_at(model, parts[:-1])
            return Mistake(path, f'unknown key "{parts[-1]}"', _nearest(str(parts[-1]), names))
        case "missing":
            return Mistake(path, "is missing")
        case "literal_error" | "enum":
            options = re.findall(r"'([^']*)'", str(context.get("expected", "")))
            return Mistake(path, f"{error['input']!r} is not allowed", _nearest(str(error["input"]), options))
        case "value_error":
            return Mistake(path, str(context.get("error", error["msg"])))
        case "model_type" | "model_attributes_type" | "dict_type":
            return Mistake(path or "(file)", f"{error['input']!r} is not a table")
        case "string_pattern_mismatch":
            return Mistake(path, f"{error['input']!r} is not allowed", f"must match {context.get('pattern')}")
    return Mistake(path or "(file)", f"{error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}")


def _keys_at(model: type[BaseModel], parts: Sequence[Any]) -> list[str]:
    """The keys allowed in the table at `parts`, found by walking the model."""
    current: Any = model
    for part in parts:
        fields = _fields(current)
        current = (
            fields[part].annotation if part in fields else (get_args(current) or (None,))[-1]
        )  # of dict[str, T] it is T
        if isinstance(current, UnionType):  # of T | None it is T
            current = next((kind for kind in get_args(current) if _fields(kind)), current)
    return list(_fields(current))


def _fields(kind: Any) -> Mapping[str, Any]:
    """The fields of a record, by the name that a file has for them."""
    if not isinstance(kind, type) or not issubclass(kind, BaseModel):
        return {}
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _nearest(word: str, options: Iterable[str]) -> str:
    names = sorted(options)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    meant = f'did you mean "{close[0]}"? ' if close else ""
    return f"{meant}allowed: {', '.join(names)}" if names else meant.strip()


def unknown_choice(path: str, value: Any, options: Iterable[str], what: str) -> Mistake:
    if value is None:
        return Mistake(path, "is missing", _nearest("", options))
    return Mistake(path, f"there is no {what} {value!r}", _nearest(str(value), options))
