"""One entering of a node for a command that is measured: its counters, the command, its counters again, its files.

A shell on the node does all of it and waits twice, before the command and after it, so that what is read on this
machine at these moments is of the command alone.
"""

from __future__ import annotations

import os
import secrets
import select
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from vtax.errors import CommandError
from vtax.model.trial import OUTPUT_BYTES, CommandResult
from vtax.transport import process
from vtax.transport.entrance import SHELL
from vtax.transport.process import Watch

CHUNK = 2**20
KILLED = (124, 137)  # exit codes of `timeout`
SUPERVISED, CONTROL = "vtax-supervise", "--control"  # ends its command, and all that this started, with its input
# What is asked stays in a process of its own, because it sets variables that the command must not have. `exec` in
# another one starts a program, never a function or a builtin with its name. A trap that does nothing is not inherited.
SCRIPT = """
trap : TERM INT HUP
asked() {{ (
{asked}
) </dev/null 2>/dev/null; }}
{removed}asked
printf '\\n{mark} \\n'
read -r go || exit 125
(exec "$@"){given}
printf '\\n{mark} %s\\n' "$?"
read -r go || exit 125
asked
printf '\\n{mark} \\n'
for file in {files}; do
  {fetch} "$file" 2>/dev/null
  printf '\\n{mark} %s\\n' "$?"
done
"""
FETCH = ("vtax-fetch", f"{OUTPUT_BYTES}")  # copies a regular file to standard output, and follows no link to it
WHOLE, ABSENT = "0", "3"  # its exit codes, and those with a reason
NOT_KEPT = {
    "4": "it is a symbolic link, or behind one, and none is followed",
    "5": "it is no regular file",
    "6": f"it has more than {OUTPUT_BYTES // 2**20} MiB",
}


class Errand(NamedTuple):
    """What is to be done on a node: a shell's script `asked` is run before and after the command, which leaves `files`;
    those of an earlier one are removed, because some programs append to them."""

    argv: tuple[str, ...]
    asked: str
    files: tuple[str, ...]

    def script(self, mark: str) -> str:
        """What a shell on the node runs; the command is its arguments."""
        names = shlex.join(self.files)
        removed = f"rm -f -- {names} || exit 125\n" if names else ""
        given = "" if self.obeys else " </dev/null"
        fetch = shlex.join(FETCH)
        return SCRIPT.format(mark=mark, removed=removed, asked=self.asked, given=given, files=names, fetch=fetch)

    @property
    def obeys(self) -> bool:
        """Whether the command ends when its standard input does."""
        return self.argv[0] == SUPERVISED

    @property
    def command(self) -> tuple[str, ...]:
        return (SUPERVISED, CONTROL, *self.argv[1:]) if self.obeys else self.argv


class Limits(NamedTuple):
    """In s: of the command, what the way to the node may add, and of everything else. `keeper` are the words that keep
    the first one on the node."""

    command_s: float
    margin_s: float = 0.0
    answer_s: float = 60.0
    keeper: tuple[str, ...] = ()


class Asked(NamedTuple):
    """What a node answered, in `elapsed_s` after `started`."""

    text: str = ""
    started: float = 0.0
    elapsed_s: float = 0.0


class Moment(NamedTuple):
    """Now, on the clock that says when, and on the one that says how long."""

    time: float
    clock: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.time(), time.monotonic())


def nothing() -> str:
    return ""


def not_kept(code: str) -> str:
    """Why a file was not copied, by the exit code of what should have."""
    return NOT_KEPT.get(code, f"it could not be read (exit code {code})")


class Visit:
    """A visit that has begun: what was asked before the command is in `before`. Ends with `leave`, or with `end`."""

    def __init__(
        self,
        errand: Errand,
        limits: Limits,
        wrap: Callable[[Sequence[str]], tuple[str, ...]],
        stdout: Path,
        stderr: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`wrap` makes of a command the one that runs it on the node. Raises CommandError when the node does not
        answer."""
        self.errand, self.limits, self.stdout = errand, limits, stdout
        name = f"vtax-{secrets.token_hex(12)}"  # by chance, so that no output contains it
        self.mark = f"\n{name} ".encode()
        self.held = b""  # received, and not yet copied
        self.late = self.over = False
        self.err: IO[bytes] = stderr.open("w+b")
        try:
            words = (*SHELL, errand.script(name), "sh", *limits.keeper, *errand.command)
            since = Moment.now()
            self.process = process.talk(wrap(words), self.err, env)
            self.before = self._answer(since)
        except BaseException:
            self.end()
            raise

    def run(self, watch: Watch = nothing) -> CommandResult:
        """Let the command run to its end, its time limit, the limit of its output, or until `watch` has a reason."""
        started, clock = time.time(), time.monotonic()
        self._go()
        with self.stdout.open("w+b") as out:
            said, stopped = self._until_mark(out, clock + self.limits.command_s + self.limits.margin_s, watch)
            elapsed_s, late = time.monotonic() - clock, self.late
            if said is None:
                self.end()
            process.shorten(out)
        code = self.process.returncode if said is None else int(said)
        expired = code in KILLED and elapsed_s >= self.limits.command_s
        return CommandResult(
            argv=self.errand.argv,
            exit_code=code,
            stdout="",
            stderr="",
            started=started,
            elapsed_s=elapsed_s,
            timed_out=expired or (said is None and not stopped and late),
            stopped=stopped,
        )

    def leave(self, places: Mapping[str, Path]) -> tuple[Asked, Mapping[str, str]]:
        """What was asked after the command, and which of its files there are, each copied to its place or with the
        reason why not; nothing when it had to be ended. Raises CommandError when the node no longer answers."""
        if self.over:
            return Asked(), {}
        try:
            since = Moment.now()
            self._go()
            after = self._answer(since)
            fetched = {name: self._fetched(places[name]) for name in self.errand.files}
            self._drain(self.limits.answer_s)
        finally:
            self.end()
        return after, {name: said for name, said in fetched.items() if said is not None}

    def end(self) -> None:
        """End whatever still runs, and leave the node. May be called twice."""
        if self.over:
            return
        self.over = True
        if hasattr(self, "process"):
            orders, output = self.process.stdin, self.process.stdout
            assert orders is not None and output is not None
            with suppress(BrokenPipeError):
                orders.close()
            if self.errand.obeys:
                self._drain(process.TERM_GRACE_S)
            process.end(self.process)
            output.close()
        process.shorten(self.err)
        self.err.close()

    def _go(self) -> None:
        orders = self.process.stdin
        assert orders is not None
        with suppress(BrokenPipeError):  # it has ended, as its missing answer shows
            orders.write(b"go\n")
            orders.flush()

    def _answer(self, since: Moment) -> Asked:
        """What the node prints up to its next mark. `since` is before it was asked: whatever it reads, such as its
        clock, it reads afterwards, even where this process had to wait for a CPU in between."""
        with process.in_memory() as sink:
            said, _ = self._until_mark(sink, time.monotonic() + self.limits.answer_s)
            sink.seek(0)
            text = sink.read().decode(errors="replace")
        if said is None:
            how = f"did not answer within {self.limits.answer_s:g} s" if self.late else "ended"
            self.err.seek(0)
            raise CommandError(f"the shell on the node {how}", detail=self.err.read(2000).decode(errors="replace"))
        return Asked(text, since.time, time.monotonic() - since.clock)

    def _fetched(self, place: Path) -> str | None:
        """None where there is no such file; "" when it was copied, else why it was not."""
        with place.open("w+b") as out:
            said, stopped = self._until_mark(out, time.monotonic() + self.limits.answer_s)
        if said is None:
            raise CommandError(f"{place.name} was not fetched completely", detail=stopped)
        if said == WHOLE:
            return ""
        place.unlink()
        return None if said == ABSENT else not_kept(said)

    def _until_mark(self, sink: IO[bytes], deadline: float, watch: Watch = nothing) -> tuple[str | None, str]:
        """Copy what is printed up to the next mark. Returns what its line says, or None and why it was not awaited."""
        copied = 0
        while True:
            begin = self.held.find(self.mark)
            end = self.held.find(b"\n", begin + len(self.mark)) if begin >= 0 else -1
            sure = begin if begin >= 0 else max(0, len(self.held) - len(self.mark) + 1)
            copied += sink.write(self.held[:sure])
            if copied > OUTPUT_BYTES:
                sink.flush()
                return None, process.TOO_LONG
            if end >= 0:
                said = self.held[begin + len(self.mark) : end].decode(errors="replace")
                self.held = self.held[end + 1 :]
                return said, process.too_long(self.err)
            self.held = self.held[sure:]
            if reason := process.too_long(self.err) or watch():
                return None, reason
            if not self._receive(deadline):
                sink.write(self.held)
                return None, ""

    def _receive(self, deadline: float) -> bool:
        """Wait a moment for more output. Returns whether there can be more before the deadline."""
        left_s = deadline - time.monotonic()
        self.late = left_s <= 0
        if self.late:
            return False
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        if not waiting.poll(1000 * min(left_s, process.WATCH_S)):
            return True
        chunk = os.read(descriptor, CHUNK)
        self.held += chunk
        return bool(chunk)

    def _drain(self, within_s: float) -> None:
        """Receive the rest, and wait until the way to the node has ended."""
        deadline = time.monotonic() + within_s
        while self._receive(deadline):
            self.held = b""
        process.wait(self.process, max(0.0, deadline - time.monotonic()))
