"""Commands of vtax that are killed at random moments, and what must hold after each: no finished trial lost or changed,
and after `vtax clean` a machine as it was.

VTAX_CHAOS_KILLS is how often each scenario is killed, VTAX_CHAOS_SEED repeats the random choices of a run (which are
printed), though not what the machine did meanwhile. A scenario begins nothing new after VTAX_CHAOS_SECONDS. Every event
is a line of the file VTAX_CHAOS_LOG, so that nothing of a run that is interrupted is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from vtax.model.names import is_campaign_id
from vtax.paths import Paths
from vtax.providers.podman.provider import Podman
from vtax.running.leftovers import leftovers
from vtax.store import READING, Campaign

from ..conftest import labels_of

KILLS = int(os.environ.get("VTAX_CHAOS_KILLS", "2"))
SEED = os.environ.get("VTAX_CHAOS_SEED") or str(secrets.randbelow(10**6))
SECONDS = float(os.environ.get("VTAX_CHAOS_SECONDS", "inf"))
LOG = os.environ.get("VTAX_CHAOS_LOG")
SOON = 0.2  # of all kills do not wait until the command has begun its work
CLEANED = 0.5  # of all calls of `vtax clean` are killed themselves
ENDS_S = 20.0  # for what ends by itself: a client that imports an image; control groups, which the kernel empties
Engines = Mapping[str, Mapping[str, str]]  # container engines, with the environment in which vtax calls them
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")


def share(of_kills: float) -> int:
    """The kills of a scenario of which each takes long: at least one."""
    return max(1, round(KILLS * of_kills))


def rounds(one: Chaos, of_kills: float) -> Iterator[int]:
    """So many, as long as there is time; at least one."""
    for number in range(share(of_kills)):
        if number and not one.in_time():
            return
        yield number


class Chaos:
    """Commands that are killed, with a state directory of their own, on one campaign where there is one. `found` are
    the digests of every file of a finished trial."""

    def __init__(self, name: str, state: Path, cache: Path, campaign: Path, limit_s: float = 180) -> None:
        self.name, self.limit_s = name, limit_s
        self.random = random.Random(f"{SEED} {name}")
        self.state, self.cache, self.campaign = state, cache, campaign
        self.places = Paths(cache / "vtax", state / "vtax")
        self.top = campaign.parent
        self.temporary = self.top / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(state),
            "XDG_CACHE_HOME": str(cache),
            "TMPDIR": str(self.temporary),
        }
        self.before: tuple[str, ...] = ()  # what a command line begins with, instead of this interpreter
        self.found: dict[Path, str] = {}
        self.events: list[Mapping[str, str]] = []
        self.began = time.monotonic()
        self.labels: set[str] = set()
        self.started = 0

    def note(self, kind: str, what: str = "", way: str = "") -> None:
        """Note a `kill`, what the machine `refused`, a `pair` of commands at once, a `check`, the `end`."""
        event = {"seed": SEED, "scenario": self.name, "event": kind, "what": what, "way": way}
        self.events.append(event)
        if LOG:
            with Path(LOG).open("a") as log:
                log.write(json.dumps(event) + "\n")

    def kills(self, *commands: str) -> int:
        """How often these commands were killed; all, if none is given."""
        killed = [event["what"] for event in self.events if event["event"] == "kill"]
        return len([what for what in killed if not commands or what in commands])

    def more(self, wanted: int, *commands: str) -> bool:
        """Whether there are to be more kills of these commands."""
        return self.kills(*commands) < wanted and self.in_time()

    def in_time(self) -> bool:
        return time.monotonic() - self.began < SECONDS

    def start(self, *words: str, **environment: str) -> Started:
        """In a process group of its own. Its output goes to a file: a pipe would be held open by what outlives it."""
        self.started += 1
        said = self.top / f"said-{self.started}.txt"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [*(self.before or (sys.executable, "-m", "vtax")), *words],
                cwd=self.top,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return Started(words, process, said, self.limit_s)

    def finish(self, *words: str) -> None:
        """Run a command to its end, which must be a good one."""
        self.start(*words).good()
        self.check()

    def kill(self, *words: str, within_s: float) -> bool:
        """Kill a command at a random moment, alone or with its process group. False when it had ended before.

        Mostly the moment counts from when it has the campaign for itself: to start takes as long as a short trial.
        """
        soon, one = self.random.random() < SOON, self.start(*words)
        while words[0] in ("run", "import") and not soon and one.process.poll() is None:
            if Campaign(self.campaign).running():
                break
            time.sleep(0.01)
        return self.end(one, self.random.uniform(0.0, within_s))

    def end(self, one: Started, after_s: float) -> bool:
        """Kill what was started, unless it ends in that time. False when it did, as it should."""
        group = self.random.random() < 0.5
        try:
            code = one.process.wait(after_s)
            assert code == 0, one.told(code)
            return False
        except subprocess.TimeoutExpired:
            (os.killpg if group else os.kill)(one.process.pid, signal.SIGKILL)
            one.process.wait(self.limit_s)
        self.note("kill", one.name, "group" if group else "alone")
        self.check()
        return True

    def check(self) -> None:
        """No finished trial is lost or changed. What an import has moved is finished when there is a plan."""
        now = digests(self.campaign) if (self.campaign / "plan.json").exists() else {}
        lost = [str(path) for path, digest in self.found.items() if now.get(path) != digest]
        assert lost == [], f"lost or changed: {lost}"
        self.found = now
        self.note("check")
        if (self.campaign / "campaign.json").exists() and (self.campaign / "plan.json").exists():
            self.labels |= set(labels_of(self.campaign).values())
        self.labels |= {place.name for place in self.places.runtime.glob("*/") if is_campaign_id(place.name)}

    def again(self) -> None:
        """Begin with a new campaign."""
        shutil.rmtree(self.campaign, ignore_errors=True)
        self.found = {}

    def clean(self) -> None:
        """Clean up, killed once in a while itself; the machine is then as it was."""
        if self.random.random() < CLEANED:
            self.kill("clean", within_s=2.0)
        self.finish("clean")
        deadline = time.monotonic() + ENDS_S
        while (mine := self.left()) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert mine == [], "\n".join(mine)
        assert [one for one in leftovers(self.places) if one.campaign in self.labels] == []

    def left(self) -> list[str]:
        """What commands that were killed have left on this machine, by all that names their labels or directories."""
        marks = {*self.labels, str(self.state), str(self.temporary)}
        engines = {"docker": self.environment, "podman": Podman(self.places.runtime).environment()}
        found = traces(marks, engines)
        for path in (*self.state.rglob("*"), *self.temporary.rglob("*")):
            if not path.is_dir() and path.name != "containers.conf" and path.suffix != ".lock":  # kept for the next one
                found.append(f"file: {path}")
        found += [f"cache: {path}" for path in self.places.images.glob(".building-*")]
        found += [line.decode() for engine, variables in engines.items() for line in strays(engine, variables)]
        return found + [f"file: {item.name}" for item in leftovers(self.places) if item.provider == "files"]


class Started:
    """A command that was started."""

    def __init__(self, words: Sequence[str], process: subprocess.Popen[bytes], said: Path, limit_s: float) -> None:
        self.words, self.process, self.said, self.limit_s = words, process, said, limit_s

    @property
    def name(self) -> str:
        """The command, as the table calls it."""
        if "--resume" in self.words:
            return "run --resume"
        return " ".join(self.words[:2]) if self.words[0] == "image" else self.words[0]

    def code(self) -> int:
        return self.process.wait(self.limit_s)

    def good(self) -> None:
        code = self.code()
        assert code == 0, self.told(code)

    def text(self) -> str:
        return self.said.read_text(errors="replace")

    def told(self, code: int) -> str:
        return f"vtax {' '.join(self.words)}: {code}\n{self.text()}"


def digests(campaign: Path) -> dict[Path, str]:
    """What every finished trial consists of, but for what was read from it, which is made again when it is missing."""
    places = [path.parent for path in campaign.glob("trials/*/*/record.json") if path.parent.name[0] != "."]
    files = [path for place in places for path in place.iterdir() if path.name != READING and path.name[0] != "."]
    return {path.relative_to(campaign): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


def traces(marks: Iterable[str], engines: Engines) -> list[str]:
    """Everything on this machine that names one of `marks`, or has it in its environment."""
    words = [mark.encode() for mark in marks]
    lines: list[bytes] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            texts = [(place / name).read_bytes().replace(b"\0", b" ") for name in ("cmdline", "environ")]
        except OSError:
            continue  # it has ended
        if int(place.name) != os.getpid():
            lines.append(b"process %s: " % place.name.encode() + b" ".join(texts))
    lines += [b"mount: " + line for line in Path("/proc/self/mountinfo").read_bytes().splitlines()]
    lines += [b"socket: " + line for line in Path("/proc/net/unix").read_bytes().splitlines()]
    lines += [b"control group: " + os.fsencode(top) for top, _, _ in os.walk("/sys/fs/cgroup")]
    lines += [b"namespace: " + path.name.encode() for path in Path("/run/netns").glob("*")]
    lines += printed("ip", "-o", "link")
    for engine, environment in engines.items():
        lines += printed(engine, "ps", "-a", "--no-trunc", "--format", "{{.Names}} {{.Labels}}", env=environment)
        for what in ("network", "volume"):
            lines += printed(engine, what, "ls", "--format", "{{.Name}} {{.Labels}}", env=environment)
    found = [line for line in lines if any(word in line for word in words)]
    return [line[:300].decode(errors="replace") for line in found if b"tmpfs" not in line]


def strays(engine: str, variables: Mapping[str, str]) -> list[bytes]:
    """Root file systems in an engine's store that have lost their name, or never got one."""
    chosen = ("--filter", "dangling=true", "--filter", "label=vtax.image")
    return printed(engine, "images", "--no-trunc", *chosen, "--format", "{{.ID}}", env=variables)


def printed(*command: str, env: Mapping[str, str] | None = None) -> list[bytes]:
    output = subprocess.run(command, capture_output=True, check=True, env=env).stdout
    return [b" ".join((os.fsencode(" ".join(command[:2])) + b":", line)) for line in output.splitlines()]
