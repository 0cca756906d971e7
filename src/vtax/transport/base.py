"""How a command reaches a node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from vtax.model.trial import CommandResult


class Background(Protocol):
    """A command that goes on while others run."""

    def wait_for(self, pattern: re.Pattern[str], timeout_s: float) -> bool:
        """Whether its standard output matches within the time, and before it ends."""
        ...

    def ended(self) -> bool:
        """Whether it has ended without having been stopped."""
        ...

    def stop(self) -> CommandResult:
        """Stop it, if it has not ended by itself. Returns its result."""
        ...

    def finish(self, number: int, grace_s: float) -> CommandResult:
        """Have the signal sent to a command that was started with `control`, and wait for its end; when it does not
        come in time, end it with everything that it started. Returns how it really ended; `timed_out` tells that."""
        ...


class Transport(Protocol):
    """A node's command line and files. A command that outlives `timeout_s` is ended, on the node too."""

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
    ) -> CommandResult:
        """Run to the end. With `stdout`/`stderr`, output goes to these files and the result's texts stay empty."""
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

    def shell(self, argv: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        """The command line that runs `argv` on the node for a user, or a login shell; with a terminal if wanted."""
        ...

    def close(self) -> None: ...
