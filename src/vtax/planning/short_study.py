"""The study behind `vtax measure`: one command in the environments of the quick study, as the text of a study file."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vtax.errors import UsageError
from vtax.model.metric import Kind
from vtax.planning.presets import preset
from vtax.providers import option_models
from vtax.tools import tools
from vtax.units import base_unit

LOOKS = (6, 10, 16, 24)  # rounds after which it may be decided
ITERATIONS = 4
WORKER = "worker1"
METRIC_FORM = "NAME=REGEX UNIT, such as 'tps=tps = ([0-9.]+) 1/s'"
BETTER = ("higher", "lower")
PLAIN = re.compile(r"[^a-z0-9]+")
BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)  # a key that TOML takes without quotation marks


@dataclass(frozen=True)
class Request:
    """What the command line asks for. Without `environments`: those of the quick study."""

    command: tuple[str, ...]
    environments: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    image: str = ""
    seconds: float | None = None
    rounds: int | None = None


def study_text(request: Request) -> str:
    """The text of the study. Raises UsageError for an environment or a metric that does not exist or is not clear."""
    refuse_no_text(request)
    known = known_environments()
    names = request.environments or tuple(quick_environments())
    for name in names:
        if name not in known:
            raise UsageError(f"there is no environment {name!r}", remedy=f"choose of {', '.join(known)}")
        if names.count(name) > 1:
            raise UsageError(f"the environment {name} is named twice", remedy="name each environment once")
    if request.seconds is not None and not math.isfinite(request.seconds):
        raise UsageError(f"--seconds {request.seconds:g} has no end", remedy="give a number of seconds")
    own = next(one.name for tool in tools() if tool.reads_with_others for one in tool.benchmarks)
    run: dict[str, object] = {"command": [_literal(word) for word in request.command]}
    run |= {} if request.seconds is None else {"seconds": request.seconds}
    entry = {
        "name": own,
        "label": _label(request.command[0] if request.command else "image", own),
        "scopes": ["node"],
        "nodes": [WORKER],
        "iterations": ITERATIONS,
        **({"packages": list(request.packages)} if request.packages else {}),
        **({"files": [_file(name) for name in request.files]} if request.files else {}),
        # an image's own directory is not where files are copied to
        **({"directory": "{dir}"} if request.files and request.image else {}),
        "run": run if request.command else {key: value for key, value in run.items() if key != "command"},
        "metrics": [_metric(text, timed=request.seconds is not None) for text in request.metrics],
    }
    top: dict[str, Any] = {"name": "measure", "baseline": names[0], "margin": 0.05}
    top |= {"looks": list(LOOKS)} if request.rounds is None else {"rounds": request.rounds}
    lines = [f"{key} = {toml_value(value)}" for key, value in top.items()]
    for name in names:
        lines += ["", f"[environments.{name}]", *(f"{key} = {toml_value(value)}" for key, value in known[name].items())]
    lines += ["", "[nodes]", "workers = 1"]
    if request.image:
        lines += ["", "[image.workload]", f"from = {toml_value(request.image)}"]
    lines += ["", "[[benchmarks]]", *(f"{key} = {toml_value(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def refuse_no_text(request: Request) -> None:
    """Raise UsageError for an argument that is not text: a study is, and so are records."""
    for word in (*request.command, *request.metrics, *request.files, *request.packages, request.image):
        try:
            word.encode()
        except UnicodeEncodeError as error:
            shown = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")[:60]
            remedy = "put it into a script that --file copies"
            raise UsageError(f"the argument '{shown}' is not UTF-8 text", remedy=remedy) from error


def quick_environments() -> dict[str, dict[str, Any]]:
    """The environments of the quick study; where one would be emulated, it runs once and is not compared."""
    found: dict[str, dict[str, Any]] = tomllib.loads(preset("quick"))["environments"]
    return {
        name: {**table, "emulated": {"rounds": 1, "iterations": 1}} if "emulated" in table else table
        for name, table in found.items()
    }


def known_environments() -> dict[str, dict[str, Any]]:
    """Those of the quick study, and every provider by its name."""
    providers = {name: {"provider": name} for name in option_models()}
    return {**providers, **quick_environments()}


def _metric(text: str, *, timed: bool) -> dict[str, Any]:
    name, _, rest = text.partition("=")
    before, better = _last_word(rest)
    if better not in BETTER:
        before, better = rest.strip(), ""
    regex, unit = _last_word(before)
    if not (name.strip() and regex):
        raise UsageError(f"--metric {text!r} is not {METRIC_FORM}", remedy="give its unit as the last word")
    kind = _kind(name, unit, better, timed=timed)
    direction = {"direction": better} if kind is Kind.RATIO else {}
    about = {"name": name.strip(), "unit": unit, "kind": kind.value, "primary": True}
    return {**about, "regex": regex, **direction}


def _kind(name: str, unit: str, better: str, *, timed: bool) -> Kind:
    """What the unit says of a metric, and where it says nothing, the word after it."""
    try:
        base = base_unit(unit)[0]
    except ValueError as error:
        raise UsageError(
            f"--metric {name}: {error}", remedy="write the unit as docs/own-workloads-metrics.md has it"
        ) from error
    if base.endswith("/s"):
        settled, kind = "higher", Kind.RATE_FIXED_TIME if timed else Kind.RATE_FIXED_WORK
    elif base == "s" or better == "lower":
        settled, kind = "lower", Kind.COST
    else:
        settled, kind = "higher", Kind.RATIO
        if not better:
            why = f"--metric {name}: it is not clear whether more {unit} is better"
            raise UsageError(why, remedy="add the word higher or lower after the unit")
    if better not in ("", settled):
        raise UsageError(f"--metric {name}: of {unit}, {settled} is better", remedy=f"leave {better} out")
    return kind


def _last_word(text: str) -> tuple[str, str]:
    """What is before the last word of a text, and that word."""
    before, _, last = text.strip().rpartition(" ")
    return before.strip(), last


def _file(name: str) -> dict[str, Any]:
    path = Path(name)
    return {"from": str(path), **({"executable": True} if path.is_file() and os.access(path, os.X_OK) else {})}


def _literal(word: str) -> str:
    """A word of the command line, in which braces mean nothing."""
    return word.replace("{", "{{").replace("}", "}}")


def _label(program: str, taken: str) -> str:
    plain = PLAIN.sub("-", program.rpartition("/")[2].lower()).strip("-")[:24]
    return plain if plain[:1].isalpha() and plain != taken else f"run-{plain}".rstrip("-")


def toml_value(value: object) -> str:
    """A value on one line of TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(str(key))} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it as it is, TOML does not


def _toml_key(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key)
