"""A node that is this machine: commands run here, wrapped by a prefix that puts them into the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vtax.model.trial import CommandResult
from vtax.transport import process
from vtax.transport.process import Watch
from vtax.transport.visit import Errand, Limits, Visit, nothing

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/sh",
}


@dataclass(frozen=True)
class LocalTransport:
    """`wrap` turns a directory and a command into the command line that runs it there."""

    wrap: Callable[[str, Sequence[str]], tuple[str, ...]]

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
        result = process.run(
            self.wrap(directory, argv),
            timeout_s=timeout_s,
            stdin=stdin,
            env={**ENVIRONMENT, **(env or {})},
            stdout=stdout,
            stderr=stderr,
            watch=watch,
        )
        return result.model_copy(update={"argv": tuple(argv)})

    def start(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        directory: str = "/",
        stdout: Path,
        stderr: Path,
        control: bool = False,
    ) -> process.Running:
        command = self.wrap(directory, ("timeout", "-k", "5", f"{timeout_s:g}", *argv))
        return process.start(command, stdout=stdout, stderr=stderr, env=ENVIRONMENT, control=control, limited=True)

    def visit(self, errand: Errand, *, timeout_s: float, directory: str = "/", stdout: Path, stderr: Path) -> Visit:
        return Visit(errand, Limits(timeout_s), partial(self.wrap, directory), stdout, stderr, ENVIRONMENT)

    def shell(self, argv: Sequence[str], *, terminal: bool) -> tuple[str, ...]:  # noqa: ARG002  # the node's is this one
        settings = (f"{name}={value}" for name, value in ENVIRONMENT.items())
        return ("env", "-i", *settings, *self.wrap("/", tuple(argv) or ("/bin/bash", "-l")))

    def close(self) -> None:
        """Nothing is kept open."""
