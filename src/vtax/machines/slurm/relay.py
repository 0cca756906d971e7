"""What starts srun for a node: next to it, because nothing of Slurm is inside.

A command in the node asks by a pipe in its file system, and waits. The relay starts srun in this job, whose tasks join
the nodes of the cluster; what these print goes back by pipes, and so does the exit code. When the command ends early,
srun is ended. What is in the node's directory is not trusted: it is opened below a directory that is held open, through
no link, and only pipes are written to.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, NamedTuple

from vtax.launchers.srun import NODES, PLACE, PROGRAM, SCRIPT, TASKS
from vtax.machines.slurm import commands
from vtax.transport import process

ASK = "ask"
CALL = re.compile(r"call\.[A-Za-z0-9]{6}")
WORDS_BYTES = 2**20
ANSWER_S, POLL_S = 10.0, 0.005  # for the command to open its pipes
LOOK_S = 0.5
UNUSABLE = 125
FIXED = ("--mpi=pmix", "--distribution=arbitrary")
CLIENT = f"""\
#!/bin/sh
# Has what stands next to this node start srun with these words, and ends as that does.
place=$(mktemp -d {PLACE}/call.XXXXXX) || exit {UNUSABLE}
mkfifo "$place/out" "$place/err" "$place/code" "$place/alive" || exit {UNUSABLE}
printf '%s\\0' "$PWD" "$@" >"$place/words"
printf '%s\\n' "${{place##*/}}" >{PLACE}/{ASK} || exit {UNUSABLE}
exec 9>"$place/alive"
cat "$place/out" 9>&- &
cat "$place/err" >&2 9>&- &
read -r code <"$place/code"
wait
exit "${{code:-{UNUSABLE}}}"
"""
# Of a task: the words of its node, the directory, the program. A node that is not of this cluster is an error.
TASK = """\
directory=$1; shift
case $SLURMD_NODENAME in
{cases}
*) echo "srun started a rank on $SLURMD_NODENAME, which has no node of this cluster" >&2; exit 125 ;;
esac
"""


class Joined(NamedTuple):
    """A node of a cluster: what Slurm calls its machine, and what that machine puts before a command's directory to
    have it in the node."""

    host: str
    words: tuple[str, ...]


class Relay:
    """Serves the commands of one node until it is closed. `directory` is what the node sees as PLACE; `nodes` are all
    of the cluster."""

    def __init__(self, directory: Path, job: str, nodes: Mapping[str, Joined]) -> None:
        self.job, self.nodes = job, nodes
        self.over = threading.Event()
        directory.mkdir(mode=0o755, exist_ok=True)
        (directory / Path(SCRIPT).name).write_text(CLIENT)
        os.mkfifo(directory / ASK, mode=0o600)
        self.place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self.asked = os.open(ASK, os.O_RDWR | os.O_NONBLOCK, dir_fd=self.place)  # held open both ways: it never ends
        self.threads = [threading.Thread(target=self._serve, daemon=True)]
        self.threads[0].start()

    def close(self) -> None:
        """End what was started. May be called twice."""
        if self.over.is_set():
            return
        self.over.set()
        for thread in self.threads:
            thread.join()
        os.close(self.asked)
        os.close(self.place)

    def _serve(self) -> None:
        waiting, held = select.poll(), b""
        waiting.register(self.asked, select.POLLIN)
        while not self.over.is_set():
            if not waiting.poll(1000 * LOOK_S):
                continue
            with suppress(BlockingIOError):
                held += os.read(self.asked, 4096)
            *names, held = held[-WORDS_BYTES:].split(b"\n")
            for name in names:
                if CALL.fullmatch(said := name.decode(errors="replace")):
                    self.threads.append(threading.Thread(target=self._answer, args=(said,), daemon=True))
                    self.threads[-1].start()

    def _answer(self, name: str) -> None:
        with suppress(OSError):  # the command is gone, or has put something else into the place of its pipes
            _Call(self, name).answer()

    def command(self, words: Sequence[str]) -> tuple[str, ...] | str:
        """The command line of srun for what was asked, or why there is none."""
        directory, *rest = words or ("",)
        options = [word for word in rest if word.startswith("--")][: len(FIXED) + 2]
        given = {name: word.removeprefix(name) for name in (TASKS, NODES) for word in options if word.startswith(name)}
        program, places = rest[len(options) :], given.get(NODES, "").split(",")
        if rest[: len(options)] != options or not set(FIXED) <= set(options) or len(given) != 2 or not program:
            return f"usage: {PROGRAM} {' '.join(FIXED)} {TASKS}N {NODES}NODE,... PROGRAM..."
        if given[TASKS] != str(len(places)):
            return f"{given[TASKS]} tasks on {len(places)} places"
        if unknown := sorted(set(places) - set(self.nodes)):
            return f"there is no node {unknown[0]}"
        cases = "\n".join(
            f'{shlex.quote(one.host)}) exec {shlex.join(one.words)} "$directory" "$@" ;;' for one in self.nodes.values()
        )
        task = ("/bin/sh", "-c", TASK.format(cases=cases), "sh", directory, *program)
        return commands.launch(self.job, [self.nodes[name].host for name in places], task)


class _Call:
    """One command that waits for srun."""

    def __init__(self, relay: Relay, name: str) -> None:
        self.relay = relay
        self.place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=relay.place)

    def answer(self) -> None:
        """Raises OSError when the command is gone."""
        with ExitStack() as stack:
            stack.callback(os.close, self.place)
            alive = self._pipe("alive", os.O_RDONLY)
            stack.callback(os.close, alive)
            made = self.relay.command(self._words())
            out, err = self._writer("out"), self._writer("err")
            if isinstance(made, str):
                with out, err:
                    err.write(f"srun: {made}\n".encode())
                code = UNUSABLE
            else:
                with out, err:
                    running = process.start_into(made, out, err)
                code = self._waited(running, alive)
            with self._writer("code") as answered:
                answered.write(f"{code}\n".encode())

    def _waited(self, running: process.Popen, alive: int) -> int:
        """Its exit code; it is ended when the command is gone."""
        ended = os.pidfd_open(running.pid)
        try:
            waiting = select.poll()
            waiting.register(ended, select.POLLIN)
            waiting.register(alive, 0)  # for its end alone
            while running.poll() is None and not self.relay.over.is_set():
                if any(number == alive for number, _ in waiting.poll(1000 * LOOK_S)):
                    break
        finally:
            os.close(ended)
            process.end(running)
        code = running.returncode
        return 128 - code if code < 0 else code

    def _words(self) -> list[str]:
        file = os.open("words", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.place)
        with os.fdopen(file, "rb") as stream:
            return [word.decode(errors="surrogateescape") for word in stream.read(WORDS_BYTES).split(b"\0")[:-1]]

    def _pipe(self, name: str, how: int) -> int:
        opened = os.open(name, how | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.place)
        if not stat.S_ISFIFO(os.fstat(opened).st_mode):
            os.close(opened)
            raise FileNotFoundError(f"{name} is no pipe")
        return opened

    def _writer(self, name: str) -> IO[bytes]:
        """A pipe of the command's, when it reads that."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                opened = self._pipe(name, os.O_WRONLY)
            except OSError:
                if time.monotonic() > deadline or self.relay.over.is_set():
                    raise
                time.sleep(POLL_S)
            else:
                os.set_blocking(opened, True)
                return os.fdopen(opened, "wb", buffering=0)
