"""What `vtax run` starts on this machine, as strace sees it, is what `vtax plan --commands` shows, and vtax's own.

vtax's own commands are listed here by their programs and, where a program can change something, by their words. That
they are the same whatever a study says is in unit/running/test_pipeline.py.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from vtax.model.cluster import Image
from vtax.store import Campaign

from .conftest import CPU, PING, labels_of, study

pytestmark = pytest.mark.integration
EXECUTED = re.compile(r'^execve\("(?:[^"\\]|\\.)*", \[((?:"(?:[^"\\]|\\.)*"(?:, )?)*)\].* = 0$')
STRACE = ("strace", "-f", "-ff", "-v", "-s", "1000000", "-e", "trace=execve", "-e", "signal=none", "--seccomp-bpf")
WORK = re.compile(r"^    \w+:/\S*\$ (.+)$", re.MULTILINE)
ENVIRONMENT = re.compile(r"^  (?P<name>\w+): .*\n(?P<lines>(?:    \$ .*\n)+)", re.MULTILINE)
TOKEN = re.compile(r"\b[0-9a-f]{16}\b")
PLACE = re.compile(r"(?<=/)(?:master|worker1|worker2|workers|cluster)\b")  # of a set of nodes, in words of vtax-enter
PREFIX = re.compile(r"\b10\.213\.\d+\.")  # of a network that is free
SHARED = "/shared/.vtax-token"
OWN_OF_NODES = {  # what vtax has nodes do besides the work: `sh -s` reads the facts of a node
    *(("sh", "-s"), ("cat", SHARED), ("rm", "-f", SHARED), ("sh", "-c", f"echo TOKEN >{SHARED}")),
}
FACTS = {  # programs that say something, on this machine or in its nodes
    *("cat", "date", "df", "dpkg-query", "env", "find", "getconf", "grep", "head", "lscpu", "mpirun", "prterun"),
    *("readlink", "sed", "sha256sum", "stat", "timeout", "true", "vtax-blas", "wc"),
}
DOCKER = {  # what vtax asks of Docker besides what the plan shows
    *(("version",), ("image", "inspect"), ("cp",), ("start",), ("inspect",), ("logs",), ("ps",)),
    *(("rm", "--force"), ("network", "rm"), ("volume", "rm")),
}
# Questions, among them whether namespaces work and whether there is a tunnel to remove, and what removes namespaces.
IP = {("-j",), ("link", "set", "lo", "up"), ("link", "show", "dev"), ("netns", "del")}
Argv = tuple[str, ...]


def executed(logs: Path) -> Iterator[Argv]:
    """The words of every program that was started."""
    for log in sorted(logs.iterdir()):
        for line in log.read_text(errors="replace").splitlines():
            if found := EXECUTED.match(line):
                yield tuple(ast.literal_eval(f"[{found[1]}]"))
            else:
                assert not (line.startswith("execve(") and line.endswith(" = 0")), line


def planned(text: str) -> tuple[dict[str, list[Argv]], Counter[Argv]]:
    """In what `vtax plan --commands` prints: the commands that make each environment, and those that are measured."""
    made = {
        found["name"]: [tuple(shlex.split(line[6:])) for line in found["lines"].splitlines()]
        for found in ENVIRONMENT.finditer(text)
    }
    return made, Counter(tuple(shlex.split(found[1])) for found in WORK.finditer(text))


class Ran:
    """A campaign that ran under strace, and what its plan said before."""

    def __init__(self, text: str, campaign: Path, state: Path, image: Image, words: list[Argv]) -> None:
        self.made, self.work = planned(text)
        self.campaign, self.words = campaign, words
        self.labels = labels_of(campaign)
        self.runtime = state / "vtax" / "run"
        self.known = {image.directory: "ROOTFS", image.digest[:12]: "DIGEST"}
        for name, label in self.labels.items():
            self.known |= {f"{self.runtime}/{label}/{name}": "CAMPAIGN", label: "CAMPAIGN"}
        self.known[str(self.runtime)] = "RUNTIME"

    def like_the_plan(self, argv: Sequence[str]) -> Argv:
        """A command with the words that a plan has where it cannot know better: labels, places, the free network."""
        text = "\0".join((Path(argv[0]).name, *argv[1:]))
        for known, word in self.known.items():
            text = text.replace(known, word)
        return words_of(text)

    def of(self, program: str) -> list[Argv]:
        return [self.like_the_plan(one) for one in self.words if Path(one[0]).name == program]

    def shown(self, environment: str, program: str) -> list[Argv]:
        return [words_of("\0".join(line)) for line in self.made[environment] if line[0] == program]

    def given(self) -> Iterator[Argv]:
        """What was given to nodes, without what limits it and asks around it."""
        entering = self.shown("host", "vtax-enter")[0]
        for words in self.of("vtax-enter"):
            yield bare(words[entering.index("COMMAND") :])
        for words in self.of("ssh"):
            if "-O" not in words:  # the end of a connection
                yield bare(shlex.split(words[-1].partition(" && exec ")[2]))


def words_of(text: str) -> Argv:
    return tuple(PREFIX.sub("10.213.X.", text).split("\0"))


def bare(words: Sequence[str]) -> Argv:
    """A command without the shell that asks a node before and after it, and without its time limit."""
    if tuple(words[:2]) == ("sh", "-c") and len(words) > 3:
        words = words[4:]
    if words[0] == "timeout":
        words = words[4:]
    return tuple(TOKEN.sub("TOKEN", word) for word in words)


@pytest.fixture(scope="module")
def ran(cache: Path, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One round on this machine and in containers."""
    top, state = tmp_path_factory.mktemp("plan"), tmp_path_factory.mktemp("s")
    wanted, logs = top / "study.toml", top / "strace"
    wanted.write_text(study(["host", "docker"], PING + CPU.format(seconds=1) + "iterations = 2\n"))
    logs.mkdir()
    env = {**os.environ, "XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(cache)}
    vtax = (sys.executable, "-m", "vtax")
    text = _printed((*vtax, "plan", str(wanted), "--commands"), env)
    _printed((*STRACE, "-o", str(logs / "thread"), "--", *vtax, "run", str(wanted), "-o", str(top / "c")), env)
    return Ran(text, top / "c", state, image, list(executed(logs)))


def _printed(command: Sequence[str], env: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_measured_command_is_that_of_the_plan(ran: Ran) -> None:
    """Each as often as it is planned; what else nodes are given is vtax's own."""
    plan = Campaign.open(ran.campaign).plan()
    trials = Counter((cell.environment, trial.work) for cell in plan.cells for trial in cell.trials)
    wanted = Counter[Argv]()
    for work in plan.work:
        for step in work.steps:
            wanted[step.argv] += trials[work.environment, work.id]
    assert set(wanted) == set(ran.work)
    given = Counter(ran.given())
    assert {argv: count for argv, count in given.items() if argv not in OWN_OF_NODES} == dict(wanted)
    assert set(given) & OWN_OF_NODES == OWN_OF_NODES


def test_nodes_on_this_machine_are_entered_as_the_plan_shows(ran: Ran) -> None:
    (shown,) = ran.shown("host", "vtax-enter")
    place, end = shown.index("DIRECTORY"), shown.index("COMMAND")
    forms = {
        tuple(PLACE.sub("NODE", word) for word in (*one[:place], *one[place + 1 : end])) for one in ran.of("vtax-enter")
    }
    assert forms == {tuple(PLACE.sub("NODE", word) for word in (*shown[:place], *shown[place + 1 : end]))}
    made = [words for words in ran.of("ip") if not any(words[1:][: len(one)] == one for one in IP)]
    assert made == ran.shown("host", "ip") != []


def test_containers_are_made_as_the_plan_shows(ran: Ran) -> None:
    made = [words for words in ran.of("docker") if not any(words[1:][: len(one)] == one for one in DOCKER)]
    assert sorted(set(made)) == sorted(ran.shown("docker", "docker"))
    labels = set(ran.labels.values())
    removed = [words for words in ran.words if words[:1] == ("docker",) and "rm" in words[1:3]]
    assert removed and all(any(label in words[-1] for label in labels) for words in removed)


def test_no_other_program_is_started(ran: Ran) -> None:
    planned_ = {words[0] for words in ran.work} | {words[0] for lines in ran.made.values() for words in lines}
    own = {"vtax-enter", "ssh", "sh", "ssh-keygen", "unshare", "rm", Path(sys.executable).name}
    started = {Path(words[0]).name for words in ran.words}
    assert started - planned_ - own <= FACTS
    assert [words for words in ran.words if words[0] == "rm"] == [("rm", "-f", SHARED)]
    assert {words[1:3] for words in ran.of("sh")} - {("-s",)} >= {("-c", "ip link set lo up")}
    assert all(place.startswith("RUNTIME/") or place.startswith("CAMPAIGN") for *_, place in ran.of("ssh-keygen"))
