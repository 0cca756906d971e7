"""The client program of a container engine: how it is run, and what it says about its engine and containers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from vtax.model.trial import CommandResult
from vtax.providers.container import engine as lines
from vtax.transport import process

COMMAND_S = 120.0
GONE = ("no such", "not found", "is not running")


class Client:
    """What all engines have in common. A subclass names the program and says where it differs."""

    name: str
    runners: ClassVar[tuple[str, ...]]
    install_hint: str
    version_format: str  # that makes the client ask its engine, and print JSON

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime

    def environment(self) -> Mapping[str, str] | None:
        """The client's environment variables; None inherits those of this process."""
        return None

    def unavailable(self) -> str:
        """Why the engine does not answer here; "" when it does."""
        for program in (self.name, "ssh", "ssh-keygen"):
            if shutil.which(program) is None:
                return f"{program} is not installed"
        answer = self.run(("version", "--format", self.version_format), timeout_s=20)
        if answer.exit_code != 0:
            lines_ = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
            return f"{self.name} does not answer: {lines_[-1] if lines_ else 'no message'}"
        return ""

    def described(self, container: str) -> Mapping[str, Any]:
        """What the engine says about a container."""
        words = (self.name, "inspect", "--type", "container", container)
        described: list[Mapping[str, Any]] = json.loads(self.must(words).stdout)
        return described[0]

    def pids(self, containers: Sequence[str]) -> tuple[int, ...]:
        """The first process of each container, 0 of one that does not run; none when the engine does not answer."""
        described = self.run(("inspect", "--type", "container", *containers))
        if described.exit_code != 0:
            return ()
        return tuple(int(one["State"]["Pid"]) for one in json.loads(described.stdout))

    def log(self, campaign: str, name: str) -> str:
        """The last lines that a node printed."""
        result = self.run(("logs", "--tail", "20", lines.name_of(campaign, name)))
        return (result.stdout + result.stderr).strip()

    def remove(self, argv: Sequence[str]) -> None:
        """Removing what is already gone is a success."""
        result = self.run(argv[1:])
        if result.exit_code != 0 and not any(word in result.stderr.lower() for word in GONE):
            raise process.failed(result)

    def run(
        self,
        words: Sequence[str],
        timeout_s: float = COMMAND_S,
        stdin: bytes = b"",
        directory: Path | None = None,
        before: Sequence[str] = (),
    ) -> CommandResult:
        # Podman's monitor leaves a file "oom" in its working directory: one that goes with the cluster, not the user's.
        place = directory or self.runtime
        place.mkdir(parents=True, exist_ok=True)
        command = (*before, self.name, *words)
        return process.run(command, timeout_s=timeout_s, stdin=stdin, env=self.environment(), directory=place)

    def must(
        self,
        argv: Sequence[str],
        timeout_s: float = COMMAND_S,
        stdin: bytes = b"",
        directory: Path | None = None,
        before: Sequence[str] = (),
    ) -> CommandResult:
        """Run a whole command line of this client, which must succeed."""
        result = self.run(argv[1:], timeout_s, stdin, directory, before)
        if result.exit_code != 0 or result.timed_out:
            raise process.failed(result, self.install_hint)
        return result
