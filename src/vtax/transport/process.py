"""The one place that starts processes: argv in, a complete record out.

Every command gets a time limit and its own session, so that everything it starts can be ended with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vtax.errors import CommandError, EnvironmentMissing
from vtax.model.trial import CommandResult

TERM_GRACE_S = 3.0
POLL_S = 0.02
SYSTEM_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not in the PATH of every user


def search_path() -> str:
    """Where programs are searched: PATH, and where those of administrators are."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATH))


def system_environment() -> dict[str, str]:
    """This process's environment, in which the programs of administrators are found too."""
    return {**os.environ, "PATH": search_path()}


def installed(program: str) -> bool:
    """Whether a program is installed, where any user or an administrator finds it."""
    return shutil.which(program, path=search_path()) is not None


def as_root_here() -> tuple[str, ...]:
    """What an ordinary user puts before a command that needs root's view of the file system; nothing for root."""
    return () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--map-auto")


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: str | bytes | Path = b"",
    env: Mapping[str, str] | None = None,
    directory: Path | None = None,
    stdout: Path | None = None,
    stderr: Path | None = None,
    check: bool = False,
) -> CommandResult:
    """Run `argv` to its end or to `timeout_s`, and return what it did.

    `env` replaces the environment and `directory` the working directory; None inherits them. With `check`, anything
    but exit code 0 raises CommandError.
    Raises EnvironmentMissing when the program does not exist.
    """
    with contextlib.ExitStack() as stack:
        source: IO[bytes]
        if isinstance(stdin, Path):
            source = stack.enter_context(stdin.open("rb"))
        else:
            source = stack.enter_context(_in_memory())
            source.write(stdin.encode() if isinstance(stdin, str) else stdin)
            source.seek(0)
        out, err = _sink(stack, stdout), _sink(stack, stderr)
        started, clock = time.time(), time.monotonic()
        process = _spawn(argv, source, out, err, env, directory)
        try:
            process.wait(timeout_s)
            timed_out = False
        except subprocess.TimeoutExpired:
            end(process)
            timed_out = True
        except BaseException:
            end(process)  # Ctrl-C: nothing that was started keeps running
            raise
        elapsed_s = time.monotonic() - clock
        result = CommandResult(
            argv=tuple(argv),
            exit_code=process.returncode,
            stdout="" if stdout else _text(out),
            stderr="" if stderr else _text(err),
            started=started,
            elapsed_s=elapsed_s,
            timed_out=timed_out,
        )
    if check and (result.exit_code != 0 or timed_out):
        raise failed(result)
    return result


def failed(result: CommandResult, remedy: str = "") -> CommandError:
    """The error that reports what a command printed when it failed."""
    how = "did not end in time" if result.timed_out else f"ended with exit code {result.exit_code}"
    output = "\n".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-12:])
    return CommandError(f"{' '.join(result.argv[:12])}: {how}", detail=output, remedy=remedy)


def _spawn(
    argv: Sequence[str],
    stdin: IO[bytes] | int,
    stdout: IO[bytes],
    stderr: IO[bytes],
    env: Mapping[str, str] | None,
    directory: Path | None = None,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=None if env is None else dict(env),
            cwd=directory,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise EnvironmentMissing(
            f"the program {argv[0]} is not installed", remedy="run `vtax doctor` to see what to install"
        ) from None
    except PermissionError as error:
        raise EnvironmentMissing(f"{argv[0]} cannot be executed", detail=str(error)) from error


def _sink(stack: contextlib.ExitStack, path: Path | None) -> IO[bytes]:
    if path is None:
        return stack.enter_context(_in_memory())
    return stack.enter_context(path.open("wb"))


def _in_memory() -> IO[bytes]:
    """A file without a name or a disk: what was started must be ended where /tmp is full, too."""
    return os.fdopen(os.memfd_create("vtax"), "w+b")


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its session: TERM, a short grace, then KILL. The process is reaped."""
    for number, grace_s in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, 10.0)):
        if process.poll() is not None and number == signal.SIGTERM:
            break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # whatever else is in its session


@dataclass
class Running:
    """A command in the background, its output in two files."""

    argv: tuple[str, ...]
    process: subprocess.Popen[bytes]
    stdout: Path
    started: float
    clock: float

    def wait_for(self, pattern: re.Pattern[str], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if pattern.search(self.stdout.read_text(errors="replace")):
                return True
            if self.process.poll() is not None:
                return bool(pattern.search(self.stdout.read_text(errors="replace")))
            time.sleep(POLL_S)
        return False

    def ended(self) -> bool:
        return self.process.poll() is not None

    def finish(self, number: int, grace_s: float) -> CommandResult:
        """Send the number of a signal to what obeys its standard input, and wait; then close it, which ends the command
        with all that it started."""
        orders, timed_out = self.process.stdin, False
        assert orders is not None
        try:
            if not self.ended():
                with contextlib.suppress(OSError):  # it ends just now
                    orders.write(f"{number}\n".encode())
                    orders.flush()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(grace_s)
                timed_out = not self.ended()
        finally:
            with contextlib.suppress(OSError):
                orders.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(TERM_GRACE_S)
            end(self.process)
        return CommandResult(
            argv=self.argv,
            exit_code=self.process.returncode,
            stdout="",
            stderr="",
            started=self.started,
            elapsed_s=time.monotonic() - self.clock,
            timed_out=timed_out,
        )

    def stop(self) -> CommandResult:
        ended_itself = self.ended()
        end(self.process)
        code = self.process.returncode
        return CommandResult(
            argv=self.argv,
            exit_code=code if ended_itself else 0,  # being stopped is how a background step ends normally
            stdout="",
            stderr="",
            started=self.started,
            elapsed_s=time.monotonic() - self.clock,
        )


def start(
    argv: Sequence[str], *, stdout: Path, stderr: Path, env: Mapping[str, str] | None = None, control: bool = False
) -> Running:
    """Start `argv` in the background, its output into two files; with `control`, its standard input is a pipe."""
    with stdout.open("wb") as out, stderr.open("wb") as err, Path(os.devnull).open("rb") as nothing:
        started, clock = time.time(), time.monotonic()
        process = _spawn(argv, subprocess.PIPE if control else nothing, out, err, env)
    return Running(argv=tuple(argv), process=process, stdout=stdout, started=started, clock=clock)
