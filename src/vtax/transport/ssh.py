"""A node behind OpenSSH: one authenticated connection per node, shared by all commands (ControlMaster).

Time limits are kept on the node itself, by coreutils' `timeout`, so a command ends even when the connection is lost.
They are meant for a node that runs at the speed of this machine; a slower one gets `timeout_factor` times as long.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vtax.model.trial import CommandResult
from vtax.transport import process
from vtax.transport.entrance import SUPERVISE
from vtax.transport.process import Watch
from vtax.transport.visit import Errand, Limits, Visit, nothing

MARGIN_S = 15.0  # what the connection may add to a command's own limit


@dataclass(frozen=True)
class SshTransport:
    """`config` is the cluster's own ssh_config; `host` a name in it. A command in the background ends with its
    terminal; without `terminals`, with its standard input, which stays open for as long as the way to the node does."""

    config: Path
    host: str
    timeout_factor: float = 1
    terminals: bool = True

    def command(self, argv: Sequence[str], timeout_s: float, directory: str, env: Mapping[str, str]) -> tuple[str, ...]:
        """The local command line that runs `argv` in `directory` on the node for at most its time."""
        settings = [f"{name}={value}" for name, value in sorted(env.items())]
        return self._in(directory, [*self._limit(timeout_s), *(["env", *settings] if settings else []), *argv])

    def _limit(self, timeout_s: float) -> tuple[str, ...]:
        """What ends a command on the node after its time."""
        return ("timeout", "-k", "5", f"{timeout_s * self.timeout_factor:g}")

    def _in(self, directory: str, argv: Sequence[str]) -> tuple[str, ...]:
        place = shlex.quote(directory)
        there = f"{{ cd {place} 2>/dev/null || {{ mkdir -p {place} && cd {place}; }}; }}"  # no process when it is there
        return ("ssh", "-F", str(self.config), self.host, "--", f"{there} && exec {shlex.join(argv)}")

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
        command = self.command(argv, timeout_s, directory, env or {})
        limit_s = timeout_s * self.timeout_factor
        within_s = limit_s + MARGIN_S * self.timeout_factor
        result = process.run(command, timeout_s=within_s, stdin=stdin, stdout=stdout, stderr=stderr, watch=watch)
        expired = result.timed_out or (result.exit_code in (124, 137) and result.elapsed_s >= limit_s)
        return result.model_copy(update={"argv": tuple(argv), "timed_out": expired})

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
        if not control and not self.terminals:
            argv, control = (*SUPERVISE, *argv), True
        command = list(self.command(argv, timeout_s, directory, {}))
        if not control:
            command.insert(1, "-tt")  # a terminal makes the node end the command when the connection closes
        return process.start(command, stdout=stdout, stderr=stderr, control=control, limited=True)

    def visit(self, errand: Errand, *, timeout_s: float, directory: str = "/", stdout: Path, stderr: Path) -> Visit:
        factor = self.timeout_factor
        limits = Limits(timeout_s * factor, MARGIN_S * factor, 60 * factor, keeper=self._limit(timeout_s))
        return Visit(errand, limits, partial(self._in, directory), stdout, stderr)

    def shell(self, argv: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        words = ("--", shlex.join(argv)) if argv else ()
        return ("ssh", "-F", str(self.config), "-t" if terminal else "-T", self.host, *words)

    def open(self) -> None:
        """Log in, so that no command has to. Raises CommandError when the node refuses."""
        process.run(
            ("ssh", "-F", str(self.config), "-n", self.host, ":"), timeout_s=MARGIN_S * self.timeout_factor, check=True
        )

    def connected(self) -> bool:
        """Whether the connection that commands share is there."""
        words = ("ssh", "-F", str(self.config), "-O", "check", self.host)
        return process.run(words, timeout_s=5 * self.timeout_factor).exit_code == 0

    def close(self) -> None:
        process.run(("ssh", "-F", str(self.config), "-O", "exit", self.host), timeout_s=5 * self.timeout_factor)


def banner_through(config: Path, gateway: str, address: str, timeout_factor: float = 1) -> bool:
    """Whether the SSH server at an address that `gateway` reaches sends its banner."""
    command = ("ssh", "-F", str(config), "-W", f"{address}:22", gateway)
    answer = process.run(command, timeout_s=MARGIN_S * timeout_factor)
    return banner_ready(answer.stdout.encode())


def banner_ready(text: bytes) -> bool:
    """Whether a server has sent an SSH banner: an accepted connection alone proves nothing."""
    return re.match(rb"SSH-2\.0-", text) is not None
