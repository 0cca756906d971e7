"""What is asked of an import, and what cannot be asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from vtax.analysis.claims import Claims
from vtax.errors import UsageError
from vtax.importing.csv_rows import checked
from vtax.importing.layout import ENVIRONMENT, Layout
from vtax.importing.source import STANDARD_INPUT
from vtax.tools import benchmarks, tools

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")


@dataclass(frozen=True)
class Request:
    """What the user asked for. One of `environment` and `layout` says where a file belongs."""

    paths: tuple[Path, ...]
    environment: str = ""
    layout: str = ""
    benchmark: str = ""
    baseline: str = ""
    stdin: IO[bytes] | None = None  # what the path `-` is
    labels: Mapping[str, str] = field(default_factory=dict)  # of all values, stated
    origin: str = ""  # where the files come from, as a recipe says
    claims: Claims | None = None  # published numbers of these runs
    units: Mapping[str, str] = field(default_factory=dict)  # tool -> the unit where its output does not say it, stated
    table: tuple[str, ...] = ()  # what the columns of all files are, stated; without it they are logs
    processes: int = 1  # that read logs; what they find does not depend on it


def check(request: Request) -> None:
    known = tuple(dict.fromkeys((*(tool.name for tool in tools()), *benchmarks())))
    if request.benchmark and request.benchmark not in known:
        raise UsageError(f"no benchmark {request.benchmark!r} is known here", remedy=f"one of {', '.join(known)}")
    if request.environment and NAME.match(request.environment) is None:
        raise UsageError(
            f"{request.environment!r} is not a valid name for an environment", remedy="use letters, digits, . _ and -"
        )
    _check_stated(request)
    for path in request.paths:
        if path != STANDARD_INPUT and not path.exists():
            raise UsageError(f"{path} does not exist", remedy="give files or folders")


def _check_stated(request: Request) -> None:
    """Raise UsageError for a layout or a unit that means nothing."""
    layout = Layout(request.layout)
    layout.check()
    names = layout.names
    if request.table:
        given = bool(request.environment) or ENVIRONMENT in names
        checked(request.table, {*request.labels, *names}, elsewhere=given)
        if request.environment and ENVIRONMENT in names:
            raise nowhere()
    elif request.layout and (ENVIRONMENT in names) == bool(request.environment):
        raise nowhere()
    for name in request.labels.keys() & set(names):
        raise UsageError(f"--label {name} is also in --layout", remedy="state it in one of them")
    units = {tool.name: {unit for one in tool.logs for unit in one.units} for tool in tools()}
    known = [f"{name}={unit}" for name, several in units.items() for unit in sorted(several)]
    for name, unit in request.units.items():
        if unit not in units.get(name, ()):
            raise UsageError(f"--unit {name}={unit} cannot be stated", remedy=f"one of {', '.join(known)}")


def nowhere() -> UsageError:
    return UsageError(
        "give the environment of the files, in one way",
        remedy="--environment NAME for all, or --layout 'results/{environment}/**' to read it from the paths, with "
        "{environment} in it once; only tables of vtax export contain it",
    )
