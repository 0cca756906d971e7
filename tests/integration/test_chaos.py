"""vtax killed at random moments, again and again: nothing finished is lost or changed, and nothing is left behind.

VTAX_CHAOS_KILLS is how often each scenario is killed, VTAX_CHAOS_SEED repeats the random choices of a run (which are
printed), though not what the machine did meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from vtax.analysis.order import planned_order
from vtax.paths import Paths
from vtax.store import READING, Campaign

from .conftest import CPU, labels_of, study
from .test_bad_days import write

pytestmark = pytest.mark.integration
KILLS = int(os.environ.get("VTAX_CHAOS_KILLS", "2"))
SEED = os.environ.get("VTAX_CHAOS_SEED") or str(secrets.randbelow(10**6))
LIMIT_S = 120
DATA = Path(__file__).parents[1] / "data"
ENTRIES = (
    CPU.format(seconds=1) + "iterations = 2\n" + CPU.format(seconds=1).replace("time_s", 'label = "again"\ntime_s')
)


class Chaos:
    """A campaign, and commands on it that are killed. `found` are the digests of every file of a finished trial."""

    def __init__(self, name: str, state: Path, cache: Path, campaign: Path) -> None:
        self.random = random.Random(f"{SEED} {name}")
        self.state, self.campaign = state, campaign
        self.environment = {**os.environ, "XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(cache)}
        self.said = campaign.with_name("said.txt")
        self.found: dict[Path, str] = {}
        self.kills: Counter[str] = Counter()
        self.labels: set[str] = set()

    def start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """In a process group of its own. Its output goes to a file: a pipe would be held open by what outlives it."""
        with self.said.open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "vtax", *words],
                cwd=self.campaign.parent,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def finish(self, *words: str) -> None:
        """Run a command to its end, which must be a good one."""
        code = self.start(words).wait(LIMIT_S)
        assert code == 0, f"vtax {' '.join(words)}: {code}\n{self.said.read_text()}"
        self.check()

    def kill(self, *words: str, within_s: float) -> bool:
        """Kill a command at a random moment, alone or with its process group. False when it had ended before.

        Mostly the moment counts from when it has the campaign for itself: to start takes as long as a short trial.
        """
        group, soon = self.random.random() < 0.5, self.random.random() < 0.2
        process = self.start(words)
        while words[0] in ("run", "import") and not soon and process.poll() is None:
            if Campaign(self.campaign).running():
                break
            time.sleep(0.01)
        try:
            code = process.wait(self.random.uniform(0.0, within_s))
            assert code == 0, f"vtax {' '.join(words)}: {code}\n{self.said.read_text()}"
            ended = True
        except subprocess.TimeoutExpired:
            (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
            process.wait(LIMIT_S)
            ended = False
            self.kills[f"{words[0]}{' --resume' if '--resume' in words else ''}, {'group' if group else 'alone'}"] += 1
        self.check()
        return not ended

    def check(self) -> None:
        """No finished trial is lost or changed. What an import has moved is finished when there is a plan."""
        now = digests(self.campaign) if (self.campaign / "plan.json").exists() else {}
        assert {path: now.get(path) for path in self.found} == self.found
        self.found = now
        if (self.campaign / "campaign.json").exists() and (self.campaign / "plan.json").exists():
            self.labels |= set(labels_of(self.campaign).values())

    def clean(self) -> None:
        """Clean up, killed once in a while itself; the machine is then as it was."""
        if self.random.random() < 0.5:
            self.kill("clean", within_s=2.0)
        self.finish("clean")
        self.finish("clean", "--check")
        deadline = time.monotonic() + 10
        while (mine := traces({*self.labels, str(self.state)})) and time.monotonic() < deadline:
            time.sleep(0.2)  # the kernel ends processes and empties control groups after the call
        assert mine == []
        kept = {"containers.conf"}  # Podman's, for all clusters: it is written by every command
        assert [path for path in self.state.rglob("*") if path.is_file() and path.name not in kept] == []


def digests(campaign: Path) -> dict[Path, str]:
    """What every finished trial consists of, but for what was read from it, which is made again when it is missing."""
    places = [path.parent for path in campaign.glob("trials/*/*/record.json") if path.parent.name[0] != "."]
    files = [path for place in places for path in place.iterdir() if path.name != READING and path.name[0] != "."]
    return {path.relative_to(campaign): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


def traces(marks: Iterable[str]) -> list[str]:
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
    lines += [b"control group: " + os.fsencode(top) for top, _, _ in os.walk("/sys/fs/cgroup")]
    lines += [b"namespace: " + path.name.encode() for path in Path("/run/netns").glob("*")]
    commands: list[tuple[str, ...]] = [("ip", "-o", "link")]
    commands += [("docker", "ps", "-a", "--no-trunc", "--format", "{{.Names}} {{.Labels}}")]
    commands += [("docker", what, "ls", "--format", "{{.Name}} {{.Labels}}") for what in ("network", "volume")]
    for command in commands:
        printed = subprocess.run(command, capture_output=True, check=True).stdout
        lines += [" ".join(command[:2]).encode() + b": " + line for line in printed.splitlines()]
    return [line[:300].decode(errors="replace") for line in lines if any(word in line for word in words)]


Begin = Callable[[str], Chaos]


@pytest.fixture
def chaos(state: Path, cache: Path, tmp_path: Path, places: Paths) -> Begin:
    return lambda name: Chaos(name, state, cache, tmp_path / "c")


def reported(one: Chaos) -> None:
    """The report, killed while it is written, is at last that of a copy in which it was never made."""
    copy = one.campaign.parent / "copy" / one.campaign.name
    shutil.copytree(one.campaign, copy)
    for path in (copy / "analysis.json", copy / "audit.json", *copy.rglob(READING)):
        path.unlink(missing_ok=True)
    shutil.rmtree(copy / "report", ignore_errors=True)
    for _ in range(KILLS):
        one.kill("report", str(one.campaign), within_s=2.5)
    one.finish("report", str(one.campaign))
    one.finish("report", str(copy))
    for name in ("analysis.json", "audit.json"):
        assert (one.campaign / name).read_bytes() == (copy / name).read_bytes(), name
    hidden = [path.name for path in one.campaign.rglob(".*") if path.name != ".lock"]
    assert [path for path in hidden if re.fullmatch(r"\.[0-9a-f]{16}\.tmp", path) is None] == []


def summarised(name: str, one: Chaos) -> None:
    ways = ", ".join(f"{way} {count}" for way, count in sorted(one.kills.items()))
    sys.stdout.write(f"\n{name}, seed {SEED}: {one.kills.total()} kills ({ways}), {len(one.found)} files of trials\n")


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("host",), marks=pytest.mark.long),
        pytest.param(("docker",), marks=pytest.mark.long),
        ("host", "docker"),
    ],
    ids="-".join,
)
def test_a_campaign_that_is_killed_again_and_again(names: Sequence[str], chaos: Begin, tmp_path: Path) -> None:
    text = study(names, ENTRIES, rounds=2).replace("workers = 2", "workers = 1")
    name, path = "-".join(names), write(tmp_path, text)
    one = chaos(name)
    while one.kills.total() < KILLS:
        if not one.kill(*continued(one, path), within_s=5.0 * len(names)):
            complete(one)
            shutil.rmtree(one.campaign)  # and from the beginning
            one.found = {}
        elif one.random.random() < 0.5:
            one.clean()
    one.finish(*continued(one, path))
    complete(one)
    assert len(names) == 1 or Campaign.open(one.campaign).plan().interleave == "trial"
    reported(one)
    one.clean()
    summarised(name, one)


def continued(one: Chaos, path: Path) -> tuple[str, ...]:
    """The command that goes on with the campaign, or begins it."""
    if (one.campaign / "plan.json").exists():
        return "run", "--resume", str(one.campaign)
    shutil.rmtree(one.campaign, ignore_errors=True)  # killed before it had a plan: there is nothing to resume
    return "run", str(path), "-o", str(one.campaign)


def complete(one: Chaos) -> None:
    """Every trial of the plan is there, and succeeded."""
    campaign = Campaign.open(one.campaign)
    plan = campaign.plan()
    wanted = [trial.id for trial in planned_order(plan, lambda _: plan.interleave == "trial")]
    assert sorted(trial.id for trial in campaign.trials()) == sorted(wanted)
    assert {trial.status for trial in campaign.trials(texts=False)} == {"ok"}


def test_an_import_that_is_killed_again_and_again(chaos: Begin, tmp_path: Path) -> None:
    one = chaos("import")
    logs = tmp_path / "logs"
    for number, source in enumerate(sorted(DATA.glob("*/*/stdout"))):
        for environment in ("host", "vm"):
            place = logs / environment / f"{number}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes() + b"\n" * (environment == "vm"))  # equal files count once
    words = ("import", str(logs), "--layout", "{environment}/**", "--into")
    never = tmp_path / "never" / "c"
    one.finish(*words, str(never))
    while one.kills.total() < KILLS:
        one.kill(*words, str(one.campaign), within_s=1.0)
        if (one.campaign / "plan.json").exists():  # it is written last
            assert digests(one.campaign) == digests(never)
            shutil.rmtree(one.campaign)
            one.found = {}
    if not (one.campaign / "plan.json").exists():
        one.finish(*words, str(one.campaign))
    assert digests(one.campaign) == digests(never)
    reported(one)
    one.finish("report", str(never))
    assert (one.campaign / "analysis.json").read_bytes() == (never / "analysis.json").read_bytes()
    summarised("import", one)
