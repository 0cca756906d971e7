"""Entries with a `matrix`: one entry for every combination of its values, each with a label of its own.

`label = "pgbench"` with `matrix = { clients = [1, 8] }` are the entries `pgbench-clients-1` and `pgbench-clients-8`. A
key is a parameter of the benchmark, or else a word in braces of an own command.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from vtax.errors import Mistake
from vtax.model.names import WORD
from vtax.planning.mistakes import unknown_choice
from vtax.tools import benchmarks

KEY = "matrix"
OWN_WORDS = "values"  # the parameter of a benchmark whose commands have words in braces
MOST = 100  # entries that one may become
LONGEST = 100  # letters of a label
PLAIN = re.compile(r"[^A-Za-z0-9_.+]+")
FORM = "such as matrix = { clients = [1, 8, 64] }"


class Point(NamedTuple):
    """One entry: where it is in the file, what the file says of it, and which point of which sweep it is."""

    path: str
    entry: Any
    label: str = ""  # its own; "" without a matrix
    sweep_of: str = ""  # the label of the entry with the matrix
    values: Mapping[str, str | int | float] = {}


def points(entries: Iterable[tuple[str, Any]], mistakes: list[Mistake]) -> list[Point]:
    """The entries of a file, each with its path; those with a matrix as the entries that it stands for."""
    found = []
    for path, entry in entries:
        if not isinstance(entry, dict) or KEY not in entry:
            found.append(Point(path, entry))
            continue
        rest = {key: value for key, value in entry.items() if key != KEY}
        wrong = list(_mistakes(entry[KEY], rest, f"{path}.{KEY}"))
        mistakes += wrong
        found += [Point(path, _standing_in(rest, entry[KEY]))] if wrong else _swept(path, rest, entry[KEY])
    return found


def _standing_in(entry: Mapping[str, Any], matrix: Any) -> Mapping[str, Any]:
    """An entry with a wrong matrix, whose words are not unknown as well."""
    keys = [key for key in matrix if key not in _parameters(entry)] if isinstance(matrix, dict) else []
    words = {key: 1 for key in keys if re.fullmatch(WORD, key) and OWN_WORDS in _parameters(entry)}
    given = entry.get(OWN_WORDS, {})
    return {**entry, OWN_WORDS: {**words, **given}} if words and isinstance(given, dict) else entry


def _swept(path: str, entry: Mapping[str, Any], matrix: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    label = str(entry.get("label") or entry.get("name"))
    parameters = _parameters(entry)
    for combination in product(*matrix.values()):
        values = dict(zip(matrix, combination, strict=True))
        words = {key: value for key, value in values.items() if key not in parameters}
        own = {OWN_WORDS: {**entry.get(OWN_WORDS, {}), **words}} if words else {}
        given = {key: value for key, value in values.items() if key in parameters}
        name = "-".join((label, *(f"{key}-{_plain(value)}" for key, value in values.items())))
        yield Point(path, {**entry, **given, **own}, name, label, values)


def _mistakes(matrix: Any, entry: Mapping[str, Any], path: str) -> Iterator[Mistake]:
    if not isinstance(matrix, dict) or not matrix:
        yield Mistake(path, "it has to be a table with lists of values", FORM)
        return
    parameters = _parameters(entry)
    for key, values in matrix.items():
        if key not in parameters and OWN_WORDS not in parameters:
            yield unknown_choice(f"{path}.{key}", key, sorted(parameters), "parameter")
        elif re.fullmatch(WORD, key) is None:
            yield Mistake(
                f"{path}.{key}", "it is not a word", "letters, digits and underscores, the first a small letter"
            )
        if key in entry or key in _own_words(entry):
            yield Mistake(f"{path}.{key}", "the entry has a value for it as well", "leave one of them out")
        yield from _value_mistakes(values, f"{path}.{key}")
    if not all(isinstance(values, list) and values for values in matrix.values()):
        return
    if (count := math.prod(map(len, matrix.values()))) > MOST:
        yield Mistake(path, f"these are {count} entries", f"at most {MOST}")
    elif sum(len(key) + 2 + max(len(_plain(value)) for value in matrix[key]) for key in matrix) > LONGEST:
        yield Mistake(path, "the labels of its entries would be too long", "use shorter names or values, or fewer keys")


def _value_mistakes(values: Any, path: str) -> Iterator[Mistake]:
    if not isinstance(values, list) or not values:
        yield Mistake(path, "it has to be a list of values", FORM)
    elif not all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in values):
        yield Mistake(path, "a value is neither a number nor a string", FORM)
    elif not all(isinstance(value, str) or math.isfinite(value) for value in values):
        yield Mistake(path, "a value is not finite", FORM)
    elif len({_plain(value) for value in values}) < len(values):
        yield Mistake(path, "two values would give entries of one name", "values differ in letters, digits, _, . or +")


def _parameters(entry: Mapping[str, Any]) -> frozenset[str]:
    known = benchmarks().get(str(entry.get("name")))
    return frozenset(known.params.model_fields) if known else frozenset()


def _own_words(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    words = entry.get(OWN_WORDS)
    return words if isinstance(words, dict) else {}


def _plain(value: object) -> str:
    """A value as a part of a label."""
    return PLAIN.sub("_", f"{value:g}" if isinstance(value, float) else str(value))


def with_points(raw: Mapping[str, Any], found: Sequence[Point]) -> Mapping[str, Any]:
    """The study, with the entries of a sweep where an environment's `only` or `skip` names the sweep."""
    labels: dict[str, list[str]] = {}
    for point in found:
        if point.sweep_of:
            labels.setdefault(point.sweep_of, []).append(point.label)
    environments = raw.get("environments")
    if not labels or not isinstance(environments, dict):
        return raw

    def named(table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        lists = {
            key: [one for label in table[key] for one in labels.get(str(label), [label])]
            for key in ("only", "skip")
            if isinstance(table.get(key), list)
        }
        inner = {"emulated": named(table["emulated"])} if "emulated" in table else {}
        return {**table, **lists, **inner}

    return {**raw, "environments": {name: named(table) for name, table in environments.items()}}
