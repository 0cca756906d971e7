"""Workloads: entries with commands that vtax has by name, each in a file of its tool's folder.

`workload = "NAME"` in a `[[benchmarks]]` table means the entries of `tools/TOOL/workloads/NAME.toml`. Keys next to it
replace theirs; of tables (`run`, `values`, `matrix`, `env`) only the keys that are given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import prod
from typing import Any, NamedTuple

from vtax.errors import Mistake, UsageError
from vtax.planning.mistakes import unknown_choice
from vtax.tools import tools

KEY = "workload"
FOLDER = "workloads"
ENDING = ".toml"
OVER = "matrix"  # the table whose keys give way to the same keys of `values`


class Workload(NamedTuple):
    """A file: its name, what it measures in one line, its text, and its `[[benchmarks]]`."""

    name: str
    about: str
    text: str
    entries: tuple[Mapping[str, Any], ...]
    folder: Traversable

    @property
    def seconds(self) -> float:
        """About how long one run of every entry takes together, without preparation."""
        runs = (entry["run"] for entry in self.entries)
        points = (prod(map(len, entry.get(OVER, {}).values())) for entry in self.entries)
        return sum(float(run.get("seconds", run.get("estimate"))) * n for run, n in zip(runs, points, strict=True))

    @property
    def workers(self) -> int:
        """How many workers a study of it needs."""
        return max(1 if set(entry["scopes"]) <= {"node", "shared"} else 2 for entry in self.entries)

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that its entries need."""
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.get("packages", ())))


@cache
def workloads() -> Mapping[str, Workload]:
    """Every workload by its name, those of one tool together."""
    folders = (files(tool.workloads) / FOLDER for tool in tools() if tool.workloads)
    found = (_read(place) for folder in folders for place in _sorted(folder))
    return {one.name: one for one in found}


def _sorted(folder: Traversable) -> Iterable[tuple[Traversable, Traversable]]:
    several = sorted(folder.iterdir(), key=lambda place: place.name)
    return ((folder, place) for place in several if place.name.endswith(ENDING))


def _read(found: tuple[Traversable, Traversable]) -> Workload:
    folder, place = found
    text = place.read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return Workload(place.name.removesuffix(ENDING), content["about"], text, tuple(content["benchmarks"]), folder)


def workload(name: str) -> Workload:
    """The workload of a name. Raises UsageError with the nearest one."""
    known = workloads()
    if name not in known:
        wrong = unknown_choice(KEY, name, known, KEY)
        raise UsageError(wrong.message, remedy=f"{wrong.hint}; `vtax workloads` says what they measure")
    return known[name]


def shipped(name: str, file: str) -> bytes:
    """A file that the commands of a workload need. Raises OSError."""
    return (workloads()[name].folder / file).read_bytes()


def expanded(raw: Any, mistakes: list[Mistake]) -> Iterator[tuple[str, Any]]:
    """The entries of a study and where each is, with those of workloads in the place of their names."""
    for index, entry in enumerate(raw if isinstance(raw, list) else ()):
        path = f"benchmarks[{index}]"
        if not isinstance(entry, dict) or KEY not in entry:
            yield path, entry
            continue
        name, known = entry[KEY], workloads()
        if not isinstance(name, str) or name not in known:
            mistakes.append(unknown_choice(f"{path}.{KEY}", name, known, KEY))
        elif "name" in entry:
            mistakes.append(Mistake(f"{path}.name", f"the workload {name} has one", "leave `name` or `workload` out"))
        else:
            yield from ((path, _merged(known[name], own, entry)) for own in known[name].entries)


def _merged(known: Workload, own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a workload with the keys that a study gives besides its name."""
    entry = {**own, KEY: known.name, "files": [{**file, "shipped": known.name} for file in own.get("files", ())]}
    for key, value in given.items():
        before = entry.get(key)
        if key == "label" and isinstance(value, str):
            entry[key] = value + own["label"].removeprefix(known.name)
        elif isinstance(before, dict) and isinstance(value, dict):
            entry[key] = {**before, **value}
        elif key == "files" and isinstance(value, list):
            entry[key] = [*entry[key], *value]
        else:
            entry[key] = value
    words = given.get("values")
    if isinstance(words, dict) and isinstance(entry.get(OVER), dict):
        rest = {key: value for key, value in entry[OVER].items() if key not in words or key in given.get(OVER, {})}
        entry = {**entry, OVER: rest} if rest else {key: value for key, value in entry.items() if key != OVER}
    return entry if entry["files"] else {key: value for key, value in entry.items() if key != "files"}


def study_of(name: str) -> str:
    """The text of a study of one workload, on the bare host and in containers. Raises UsageError."""
    known = workload(name)
    return STUDY.format(name=name, about=known.about, workers=known.workers)


STUDY = """\
# {about}.
# `vtax workloads {name}` prints the entry itself: commands, packages, metrics, and what they mean.

name = "{name}"
looks = [6, 10, 16, 24]  # rounds after which it may be decided
baseline = "host"
margin = 0.05            # differences below this are called equivalent

[environments.host]
provider = "host"
network = "auto"         # with root, every node has its own network stack, as containers have

[environments.container]
provider = "container"   # the engine that works here; docs/study.md names them

[nodes]
workers = {workers}
memory = "1 GiB"

[[benchmarks]]
workload = "{name}"
iterations = 4           # keys here replace those of the workload, such as run = {{ seconds = 5 }}
"""
