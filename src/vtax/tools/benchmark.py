"""What a benchmark is: everything about one tool, nothing about machines, no input or output at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from vtax.errors import ParseError
from vtax.launchers.mpirun import Mpirun
from vtax.model.metric import Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.record import Record
from vtax.model.trial import TrialRecord
from vtax.tools.excerpts import Piece, file_of, misfit, pieces
from vtax.tools.reading import Output, Section, lines_of

ABSURD = re.compile(r"\d{100}")  # no tool prints such a number, and int() and float() fail at even longer ones
GRACE_S = 30.0  # what any step may take beyond its own run time before it counts as hung


class Params(Record):
    """Parameters of a benchmark as a study gives them; "auto" values are filled in by `resolve`, once, in the plan."""


ATTRIBUTES = ("name", "requires", "scopes", "default_scopes", "metrics", "params")


class Benchmark(Protocol):
    """One tool. `resolve`, `steps`, `parse` and `estimate_s` are pure, so a dry run and golden tests come free."""

    @property
    def name(self) -> str: ...

    @property
    def requires(self) -> tuple[str, ...]:
        """Programs that the root file system must have."""
        ...

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """In which it makes sense."""
        ...

    @property
    def default_scopes(self) -> tuple[Scope, ...]: ...

    @property
    def metrics(self) -> tuple[Metric, ...]: ...

    @property
    def params(self) -> type[Params]: ...

    def resolve(self, params: Any, target: Target) -> Any:
        """Parameters with nothing left open, from the shape alone: never from inside an environment."""
        ...

    def steps(self, params: Any, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        """What to run, for resolved parameters."""
        ...

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        """Every output of a trial that ran to its end, read by the tool's reader: values, facts, series, refusals."""
        ...

    def estimate_s(self, params: Any, target: Target) -> float:
        """About how long one trial takes, for the progress line. Not a limit."""
        ...

    def clocked_s(self, params: Any, target: Target) -> float:
        """The part of it that passes by the clock, however slow the machine is."""
        ...


def own_section(record: TrialRecord, step: int = -1, node: str | None = None, output: str = "") -> tuple[str, Section]:
    """An output of vtax's own trial, as the tool's reader takes it, and the name of its file.

    It is standard output of a step (negative: from the end) on a node, or the file `output` that the step left.
    Raises ParseError when the step left no such file.
    """
    done = record.step_on(step, node)
    file = done.outputs.get(output, "") if output else done.stdout
    if file not in record.texts:
        raise ParseError(f"{source_of(record)}: {output} is missing", remedy="the raw output is kept; read it")
    return file, Section("", lines_of(record.texts[file]))


def source_of(record: TrialRecord) -> str:
    """How an error names a trial's output."""
    return f"trials/{record.id}"


def refuse(record: TrialRecord, what: str, text: str, wanted: str = "") -> ParseError:
    """A ParseError about an output, or a piece of one, whose line is then told. `wanted` is the pattern."""
    whole, line = (text.whole, text.line) if isinstance(text, Piece) else (text, 0)
    lines = (whole.split("\n")[:line] if line else whole.rstrip().splitlines())[-8:]
    shown = "\n".join(lines) or "(no output)"
    looked_for = f"looked for: {wanted}\n" if wanted else ""
    file = file_of(record, whole)
    place = (f"/{file}" if file else "") + (f":{line}" if file and line else "")
    return ParseError(
        f"{source_of(record)}{place}: {what}",
        detail=f"{looked_for}{f'up to line {line}' if line else 'the output ends with'}:\n{shown}",
        remedy="the raw output is kept; read it, and report it if the tool succeeded",
    )


def found(pattern: re.Pattern[str], text: str, record: TrialRecord) -> tuple[Piece, ...]:
    """The groups of the only match of `pattern`. Raises ParseError when there is none, or more than one."""
    matches: Sequence[re.Match[str]] = list(pattern.finditer(text))
    if not matches:
        what = "a line that a complete output has once is missing"
        raise refuse(record, what, misfit(pattern, text), pattern.pattern)
    if len(matches) > 1:
        what = f"a line that a complete output has once stands there {len(matches)} times"
        raise refuse(record, what, Piece.of(text, matches[1].start()), pattern.pattern)
    groups = pieces(matches[0])
    for group in groups:
        if ABSURD.search(group):
            raise refuse(record, "a number of more than a hundred digits", group, pattern.pattern)
    return groups


def number(text: str, record: TrialRecord) -> float:
    """A finite number. Raises ParseError for anything else, so that "inf" and "nan" never become measurements."""
    try:
        value = float(text)
    except ValueError:
        raise refuse(record, f"{str(text)!r} is not a number", text) from None
    if value != value or value in (float("inf"), float("-inf")):
        raise refuse(record, f"{str(text)!r} is not a finite number", text)
    return value
