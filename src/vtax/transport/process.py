"""The one place that starts processes: argv in, a complete record out.

Every command gets a time limit and its own session, so that everything it starts can be ended with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vtax.errors import CommandError, EnvironmentMissing
from vtax.model.trial import OUTPUT_BYTES, CommandResult

Popen = subprocess.Popen[bytes]
Watch = Callable[[], str]  # why a command has to end now; "" while it may go on
TERM_GRACE_S = 3.0
POLL_S = 0.02
PR_SET_PDEATHSIG = 1  # of prctl(2)
WATCH_S = 0.1  # how often that is asked, and the length of the output looked at
KEPT_BYTES = 2**20  # of an output that was too long
STILL = 3  # looks at it, without more of it
TOO_LONG = f"it printed more than {OUTPUT_BYTES // 2**20} MiB"
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
    watch: Watch | None = None,
) -> CommandResult:
    """Run `argv` to its end or to `timeout_s`, and return what it did.

    `env` replaces the environment and `directory` the working directory; None inherits them. With `check`, anything
    but exit code 0 raises CommandError. With `watch`, the command is ended when that has a reason, and when it prints
    more than is read of a trial; the result says so (`stopped`).
    Raises EnvironmentMissing when the program does not exist.
    """
    with contextlib.ExitStack() as stack:
        source: IO[bytes]
        if isinstance(stdin, Path):
            source = stack.enter_context(stdin.open("rb"))
        else:
            source = stack.enter_context(in_memory())
            source.write(stdin.encode() if isinstance(stdin, str) else stdin)
            source.seek(0)
        out, err = _sink(stack, stdout), _sink(stack, stderr)
        started, clock = time.time(), time.monotonic()
        process = _spawn(argv, source, out, err, env, directory)
        try:
            stopped, timed_out = _to_its_end(process, timeout_s, watch, (out, err))
        except BaseException:
            end(process)  # Ctrl-C: nothing that was started keeps running
            raise
        elapsed_s = time.monotonic() - clock
        if stopped == TOO_LONG:
            shorten(out, err)
        result = CommandResult(
            argv=tuple(argv),
            exit_code=process.returncode,
            stdout="" if stdout else _text(out),
            stderr="" if stderr else _text(err),
            started=started,
            elapsed_s=elapsed_s,
            timed_out=timed_out,
            stopped=stopped,
        )
    if check and (result.exit_code != 0 or timed_out):
        raise failed(result)
    return result


def _to_its_end(process: Popen, timeout_s: float, watch: Watch | None, sinks: Sequence[IO[bytes]]) -> tuple[str, bool]:
    """Wait until a process ends, or end it. Returns why, apart from its time limit, and whether that is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        ended = wait(process, left_s if watch is None else min(left_s, WATCH_S))
        reason = "" if watch is None else too_long(*sinks) or ("" if ended else watch())
        if not ended and (reason or left_s == 0):
            end(process)
        if ended or reason or left_s == 0:
            return reason, not ended and not reason


def wait(process: Popen, timeout_s: float) -> bool:
    """Whether a process ends in time. Popen.wait would look every 50 ms, which is longer than many commands take."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.poll(min(timeout_s, 1e6) * 1000)
    finally:
        os.close(descriptor)
    return process.poll() is not None


def too_long(*sinks: IO[bytes]) -> str:
    """Why a command has to end by the length of what it printed; "" when it may go on."""
    return TOO_LONG if any(os.fstat(sink.fileno()).st_size > OUTPUT_BYTES for sink in sinks) else ""


def shorten(*sinks: IO[bytes]) -> None:
    """Keep the beginning of what was printed when it was too long. What printed it was told to end, and may print more
    for a moment where it is not a child of this process: in a container."""
    for sink in sinks:
        deadline, still = time.monotonic() + TERM_GRACE_S, 0 if too_long(sink) else STILL
        while still < STILL and time.monotonic() < deadline:
            still += 1
            if os.fstat(sink.fileno()).st_size > KEPT_BYTES:
                os.truncate(sink.fileno(), KEPT_BYTES)
                still = 0
            time.sleep(POLL_S)


def failed(result: CommandResult, remedy: str = "") -> CommandError:
    """The error that reports what a command printed when it failed."""
    how = "did not end in time" if result.timed_out else f"ended with exit code {result.exit_code}"
    output = "\n".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-12:])
    return CommandError(f"{' '.join(result.argv[:12])}: {how}", detail=output, remedy=remedy)


def _spawn(
    argv: Sequence[str],
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes],
    env: Mapping[str, str] | None,
    directory: Path | None = None,
) -> Popen:
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
        return stack.enter_context(in_memory())
    return stack.enter_context(path.open("wb"))


def in_memory() -> IO[bytes]:
    """A file without a name or a disk: what was started must be ended where /tmp is full, too."""
    return os.fdopen(os.memfd_create("vtax"), "w+b")


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def end_with(parent: int) -> None:
    """Make this process end when `parent` does, however that ends: it would wait for work for ever."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def end(process: Popen) -> None:
    """End a process and all of its session: TERM, a short grace, then KILL. The process is reaped."""
    for number, grace_s in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, 10.0)):
        if process.poll() is not None and number == signal.SIGTERM:
            break
        _signal(process.pid, number)
        if wait(process, grace_s):
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # whatever else is in its session


def _signal(leader: int, number: int) -> None:
    """Send a signal to a session: to the leader's group, and to the groups that its programs made, as `timeout` does.
    The leader may be waiting for them without passing signals on."""
    everywhere = (place.name for place in Path("/proc").iterdir())
    others = [pid for pid in map(int, filter(str.isdecimal, everywhere)) if _group(pid, leader)]
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for pid in others:
        with contextlib.suppress(OSError):
            held = os.pidfd_open(pid)
            try:
                if _group(pid, leader):  # still the same process, or one that belongs here too
                    signal.pidfd_send_signal(held, number)
            finally:
                os.close(held)


def _group(pid: int, leader: int) -> int:
    """The group of a process of the leader's session; 0 for the leader's own group, and for other sessions."""
    try:
        group = os.getpgid(pid)
        return group if group != leader and os.getsid(pid) == leader else 0
    except ProcessLookupError:
        return 0


@dataclass
class Running:
    """A command in the background, its output in two files."""

    argv: tuple[str, ...]
    process: Popen
    stdout: Path
    stderr: Path
    started: float
    clock: float
    limited: bool = False  # whether it may print only as much as is read of a trial

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
        return self.exit_code() is not None

    def exit_code(self) -> int | None:
        return self.process.poll()

    def too_long(self) -> str:
        """Why it has to end by the length of its output; "" when it may go on."""
        if not self.limited:
            return ""
        with self.stdout.open("rb") as out, self.stderr.open("rb") as err:
            return too_long(out, err)

    def _over(self) -> str:
        """What `too_long` says; of what is too long only the beginning stays, now that nothing more is printed."""
        reason = self.too_long()
        if reason:
            with self.stdout.open("r+b") as out, self.stderr.open("r+b") as err:
                shorten(out, err)
        return reason

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
                timed_out = not wait(self.process, grace_s)
        finally:
            with contextlib.suppress(OSError):
                orders.close()
            wait(self.process, TERM_GRACE_S)
            end(self.process)
        return CommandResult(
            argv=self.argv,
            exit_code=self.process.returncode,
            stdout="",
            stderr="",
            started=self.started,
            elapsed_s=time.monotonic() - self.clock,
            timed_out=timed_out,
            stopped=self._over(),
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
            stopped=self._over(),
        )


def start(
    argv: Sequence[str],
    *,
    stdout: Path,
    stderr: Path,
    env: Mapping[str, str] | None = None,
    control: bool = False,
    limited: bool = False,
) -> Running:
    """Start `argv` in the background, its output into two files; with `control`, its standard input is a pipe. With
    `limited`, of an output that is more than is read of a trial only the beginning is kept."""
    with stdout.open("wb") as out, stderr.open("wb") as err, Path(os.devnull).open("rb") as nothing:
        started, clock = time.time(), time.monotonic()
        process = _spawn(argv, subprocess.PIPE if control else nothing, out, err, env)
    return Running(tuple(argv), process, stdout, stderr, started, clock, limited)


def talk(argv: Sequence[str], stderr: IO[bytes], env: Mapping[str, str] | None = None) -> Popen:
    """Start `argv` with pipes as its standard input and output."""
    return _spawn(argv, subprocess.PIPE, subprocess.PIPE, stderr, env)


def start_into(argv: Sequence[str], stdout: IO[bytes], stderr: IO[bytes]) -> Popen:
    """Start `argv`, which reads nothing, with open files for what it prints."""
    return _spawn(argv, subprocess.DEVNULL, stdout, stderr, None)


def start_with(argv: Sequence[str], stdin: IO[bytes], stderr: IO[bytes]) -> Popen:
    """Start `argv` with an open file, from where it is read so far, as its standard input."""
    return _spawn(argv, stdin, stderr, stderr, None)
