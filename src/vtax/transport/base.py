"""How a command reaches a node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from vtax.model.trial import CommandResult
from vtax.transport.process import Watch
from vtax.transport.visit import Asked, Errand, nothing


class Background(Protocol):
    """A command that goes on while others run."""

    def wait_for(self, pattern: re.Pattern[str], timeout_s: float) -> bool:
        """Whether its standard output matches within the time, and before it ends."""
        ...

    def ended(self) -> bool:
        """Whether it has ended without having been stopped."""
        ...

    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        ...

    def too_long(self) -> str:
        """Why it has to end by the length of what it printed; "" when it may go on."""
        ...

    def stop(self) -> CommandResult:
        """Stop it, if it has not ended by itself. Returns its result."""
        ...

    def finish(self, number: int, grace_s: float) -> CommandResult:
        """Have the signal sent to a command that was started with `control`, and wait for its end; when it does not
        come in time, end it with everything that it started. Returns how it really ended; `timed_out` tells that."""
        ...


class Visiting(Protocol):
    """One entering of a node for a command that is measured; `before` is what was asked before it."""

    before: Asked

    def run(self, watch: Watch = nothing) -> CommandResult:
        """Run the command to its end, or until `watch` has a reason."""
        ...

    def leave(self, places: Mapping[str, Path]) -> tuple[Asked, Mapping[str, str]]:
        """What was asked after it, nothing where the command had to be ended; and which of its files there are: "" for
        one that was copied to its place, else why it was not."""
        ...

    def end(self) -> None:
        """End whatever still runs. May be called twice."""
        ...


class Transport(Protocol):
    """A node's command line and files. A command that outlives `timeout_s` is ended, on the node too, and one that
    prints more than is read of a trial."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        directory: str = "/",
        stdin: str | bytes = "",
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
        stderr: Path | None = None,
        watch: Watch = nothing,
    ) -> CommandResult:
        """Run to the end, or until `watch` has a reason. With `stdout`/`stderr`, output goes to these files and the
        result's texts stay empty."""
        ...

    def start(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        directory: str = "/",
        stdout: Path,
        stderr: Path,
        control: bool = False,
    ) -> Background:
        """Start it in the background. With `control`, its standard input takes orders, and its end ends the command:
        of one that runs under `vtax-supervise --control`."""
        ...

    def visit(self, errand: Errand, *, timeout_s: float, directory: str = "/", stdout: Path, stderr: Path) -> Visiting:
        """Enter the node once for an errand; its command, to which the time applies, waits to be run."""
        ...

    def shell(self, argv: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        """The command line that runs `argv` on the node for a user, or a login shell; with a terminal if wanted."""
        ...

    def close(self) -> None: ...
