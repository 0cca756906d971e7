"""vtax's agent on a machine, from this side: sent once, started over the connection, asked one thing after another."""

from __future__ import annotations

import math
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from vtax import errors
from vtax.errors import EnvironmentMissing, MachineLost, VtaxError
from vtax.machines import parcel
from vtax.machines.channel import LEASE_S, Channel, Gone, Message
from vtax.machines.connection import Connection, read_until
from vtax.transport import process

Heard = Callable[[Message], None]  # for what comes before the answer
# What is raised by what a machine says that makes no sense: its messages are data, and may be anything.
NONSENSE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
CLOCK_ASKS = 5
ANSWER_S = 300.0  # for a question, on a busy machine
WORK_S = 3600.0  # for what makes or removes something
LIMITS_S = {  # by what is asked; a round has the time limits of its trials, on the machine
    **dict.fromkeys(("begin", "install_image", "prepare", "prepare_part", "create_part", "destroy_part"), WORK_S),
    **dict.fromkeys(("clean", "serve_share", "mount_share"), WORK_S),
    "round": math.inf,
}
END_S = 120.0  # for an agent to remove what it made
AT_ONCE_S = 10.0  # for one that made nothing
LOOK_S = 60.0  # for a machine to say what it is
START_S = 120.0  # until it says its first word: where it has never run, Python compiles it first
FREE_BYTES = 2**28
KERNEL = (5, 3)  # has pidfd_open
START = "import sys; sys.path.insert(0, sys.argv[1]); from vtax.running.agent import main; main(sys.argv[2])"
READY, GO = b"vtax may start\n", b"start\n"
# One command for all of it, because a command there may cost seconds: what the machine is, and, once vtax has looked at
# that and has sent what is missing, the agent.
SCRIPT = rf"""
umask 077
echo "system=$(uname -s)"
echo "architecture=$(uname -m)"
echo "kernel=$(uname -r)"
place=$1; [ -n "$place" ] || place=${{XDG_CACHE_HOME:-$HOME/.cache}}/vtax-machine
mkdir -p -- "$place" && cd -- "$place" || exit 1
[ -O . ] && chmod go-w . || {{ echo "$place belongs to another user, who could change what runs here" >&2; exit 1; }}
place=$(pwd)
echo "directory=$place"
echo "python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
echo "free=$(($(df -Pk . | tail -n 1 | awk '{{print $4}}') * 1024))"
[ -d "agent/$2" ] && echo "sent=yes"
echo "{READY.decode().strip()}"
read -r told && [ "$told" = "{GO.decode().strip()}" ] || exit 0
cd / && exec python3 -I -c "$3" "$place/agent/$2" "$place"
"""
UNPACK = """
umask 077
cd "$1/agent" && rm -rf ".$2" && mkdir ".$2" && tar -C ".$2" -xzf "$2.tar.gz" || exit 1
rm -f "$2.tar.gz"
mv -T ".$2" "$2" 2>/dev/null || rm -rf ".$2"
for old in *; do [ "$old" = "$2" ] || [ -z "$(find "$old" -maxdepth 0 -mtime +30)" ] || rm -rf "$old"; done
"""


class Agent:
    """An agent while it runs. `offset_s` is by how much the machine's clock is ahead of this one's."""

    def __init__(self, machine: Connection) -> None:
        self.machine, self.name = machine, machine.name
        self.directory = ""
        self.offset_s = 0.0
        self.process: process.Popen | None = None
        self.channel: Channel | None = None
        self.number = 0
        self.worked = False  # whether it may have made something
        self.one_at_a_time = threading.Lock()
        self.rejoin: Callable[[], None] | None = None  # what connects it again, as it was

    def again(self) -> None:
        """Connect again where the connection was lost, noticed or not. Raises MachineGone after a while."""
        try:
            self.ask("hello")
        except MachineLost:
            if self.rejoin is None:
                raise
            self.rejoin()

    def start(self) -> None:
        """Connect, send what is missing, and start it. Raises EnvironmentMissing with what to do."""
        self.machine.connect()
        try:
            with process.in_memory() as said:
                self._started(said)
        except BaseException:
            self.drop()
            raise

    def _started(self, said: IO[bytes]) -> None:
        script = ("sh", "-c", SCRIPT, "sh", self.machine.directory, parcel.digest(), START)
        self.process = running = process.talk(self.machine.command(script), said)
        assert running.stdin is not None and running.stdout is not None
        found = self._examined(running, said)
        self.directory = found["directory"]
        if "sent" not in found:
            self._send(f"{self.directory}/agent/{parcel.digest()}")
        self.channel = Channel(running.stdout.fileno(), running.stdin.fileno(), START_S)
        self.worked = False
        try:
            running.stdin.write(GO)
            running.stdin.flush()
            self.ask("hello")
        except (MachineLost, OSError) as error:
            raise EnvironmentMissing(
                f"vtax does not start on {self.machine}", detail=_last(said) or str(error), remedy=DOCTOR
            ) from error
        self.channel.lease_s = LEASE_S
        self.channel.keep_alive()
        self.offset_s = self._clock_offset()

    def _examined(self, running: process.Popen, said: IO[bytes]) -> Mapping[str, str]:
        """What the machine is, as far as it decides whether vtax can run there."""
        text, waits = read_until(running.stdout, READY, LOOK_S)
        found = dict(line.split("=", 1) for line in text.decode(errors="replace").splitlines() if "=" in line)
        if not waits:
            process.wait(running, AT_ONCE_S)  # by then it has said why
            if "system" not in found or running.poll() is None:
                raise self.machine.unusable(_last(said) or f"nothing was heard for {LOOK_S:g} s")
        if not waits or "directory" not in found:
            raise EnvironmentMissing(
                f"{self.machine}: vtax's directory there cannot be used",
                detail=_last(said),
                remedy="set `directory` of the machine to one that belongs to its user",
            )
        with understood(self):
            self._refuse_unfit(found)
        return found

    def _refuse_unfit(self, found: Mapping[str, str]) -> None:
        if found.get("system") != "Linux":
            reason, remedy = f"runs {found.get('system')}", "use a machine with Linux"
        elif found.get("architecture") != parcel.ARCHITECTURE:
            reason = f"is of architecture {found.get('architecture')}, and this one of {parcel.ARCHITECTURE}"
            remedy = "run vtax on a machine of the same architecture: it sends itself and the root file system"
        elif found.get("python") != parcel.PYTHON:
            has = f"Python {found['python']}" if found.get("python") else "no python3"
            reason = f"has {has}, and vtax runs under Python {parcel.PYTHON} here"
            remedy = f"install Python {parcel.PYTHON} there as python3, or run vtax under the Python that it has"
        elif _version(found.get("kernel", "")) < KERNEL:
            reason, least = f"has Linux {found.get('kernel')}", ".".join(map(str, KERNEL))
            remedy = f"use a system with Linux {least} or later, from when on a process can be ended without a race"
        elif int(found.get("free", 0)) < FREE_BYTES:
            reason = f"has {int(found.get('free', 0)) // 2**20} MiB free in {found['directory']}"
            remedy = f"free {FREE_BYTES // 2**20} MiB there, or set `directory` of the machine"
        else:
            return
        raise EnvironmentMissing(f"{self.machine} {reason}", remedy=remedy)

    def _send(self, place: str) -> None:
        with tempfile.TemporaryDirectory(prefix="vtax-") as temporary:
            archive = Path(temporary) / "archive"
            archive.write_bytes(parcel.archive())
            self.machine.put(archive, f"{place}.tar.gz")
        self.machine.must(("sh", "-c", UNPACK, "sh", self.directory, parcel.digest()), timeout_s=120)

    def _clock_offset(self) -> float:
        """By how much its clock is ahead, from the fastest of some answers: wrong by half of that at most."""
        seen = []
        for _ in range(CLOCK_ASKS):
            before = time.time()
            with understood(self):
                said = float(self.ask("time").content["time"])
            after = time.time()
            seen.append((after - before, said - (before + after) / 2))
        return min(seen)[1]

    def ask(self, what: str, payload: bytes = b"", heard: Heard | None = None, **arguments: Any) -> Message:
        """Ask one thing, and wait for the answer; messages that belong to it come before. Raises what was raised
        there, or MachineLost."""
        if self.channel is None:
            raise MachineLost(f"{self.machine} is not connected", remedy=DOCTOR)
        with self.one_at_a_time:
            return self._asked(self.channel, what, payload, heard, arguments)

    def _asked(
        self, channel: Channel, what: str, payload: bytes, heard: Heard | None, arguments: Mapping[str, Any]
    ) -> Message:
        self.number += 1
        self.worked |= what in LIMITS_S
        limit_s = LIMITS_S.get(what, ANSWER_S)
        try:
            channel.send({"ask": what, "id": self.number, "with": arguments}, payload)
            until = time.monotonic() + limit_s
            while True:
                message = channel.receive(until)
                if "answer" in message.content or "error" in message.content:
                    break
                if heard is not None:
                    heard(message)
        except (Gone, *NONSENSE) as error:
            self.drop()
            raise MachineLost(
                f"the connection to {self.machine} was lost: {error}", remedy="is the machine still on?"
            ) from error
        if "error" in message.content:
            about = message.content["error"]
            raise self._raised(about if isinstance(about, dict) else {"message": about})
        return Message(message.content["answer"], message.payload)

    def tell(self, content: Mapping[str, Any]) -> None:
        """Say something while an answer is awaited. Raises Gone."""
        if self.channel is not None:
            self.channel.send(content)

    def _raised(self, about: Mapping[str, str]) -> VtaxError:
        kind = getattr(errors, str(about.get("kind")), EnvironmentMissing)
        kind = kind if isinstance(kind, type) and issubclass(kind, VtaxError) else EnvironmentMissing
        made = EnvironmentMissing if kind.__init__ is not VtaxError.__init__ else kind
        return made(
            f"{self.name}: {about.get('message')}",
            detail=str(about.get("detail", "")),
            remedy=str(about.get("remedy", "")),
        )

    def drop(self) -> None:
        """Leave the agent alone: the connection is lost. It ends by itself when it hears nothing any more."""
        self._closed(grace_s=0.0)
        self.machine.close()

    def close(self) -> None:
        """End the agent, which removes what it made, and the connection. May be called twice."""
        self._closed(grace_s=END_S if self.worked else AT_ONCE_S)
        self.machine.close()

    def _closed(self, grace_s: float) -> None:
        running, self.process = self.process, None
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        if running is not None:
            assert running.stdin is not None and running.stdout is not None
            with suppress(OSError):
                running.stdin.close()
            process.wait(running, grace_s)
            process.end(running)
            running.stdout.close()


@contextmanager
def understood(agent: Agent) -> Iterator[None]:
    """While an answer is taken apart: raises MachineLost for one that makes no sense, as for what is no message."""
    try:
        yield
    except NONSENSE as error:
        agent.drop()
        raise MachineLost(
            f"{agent.machine} answered what makes no sense: {type(error).__name__}",
            remedy="is that machine what it should be?",
        ) from error


DOCTOR = "run `vtax doctor --machines STUDY` to see what is missing and how to fix it"
REJOIN_S = LEASE_S + 60.0  # until an agent that is cut off has noticed that, and has removed what it made


def _last(said: IO[bytes]) -> str:
    """The last lines of what was printed."""
    said.seek(0)
    return "\n".join(said.read().decode(errors="replace").strip().splitlines()[-6:])


def _version(release: str) -> tuple[int, int]:
    """Of a kernel, from what `uname -r` prints."""
    found = re.match(r"([0-9]{1,9})\.([0-9]{1,9})", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)
