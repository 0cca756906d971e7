"""A campaign made to do harm, and every command that reads campaigns, with strace as the judge.

Each trick is its own copy of a good campaign, so that a refusal of one does not hide another. Whatever a command says,
it opens nothing for writing, renames, removes, connects to and executes nothing but what is listed here, and it ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.small import PRINTED, new_campaign, planned, store
from fakes.cluster import FakeProvider

pytestmark = pytest.mark.integration
VTAX = Path(sys.executable).with_name("vtax")
LIMIT_S = 120
SECRET = "TOPSECRET-LINE-0x42"
CALLS = (
    "execve,open,openat,openat2,creat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,"
)
CALLS += "truncate,chmod,fchmodat,chown,fchownat,mkdir,mkdirat,mknod,mknodat,mount,connect"
CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
PATHS = re.compile(r'"((?:[^"\\]|\\.)*)"')
WRITING = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)")
BASE = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>")
READ = ("audit", "report", "export", "watch", "compare", "resume")


def changed(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def record_of(campaign: Path) -> Path:
    return next(campaign.glob("trials/*/*/record.json"))


def output_of(campaign: Path) -> Path:
    return next(campaign.glob("trials/*/*/*.stdout"))


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def temporary_links(campaign: Path, home: Path) -> None:
    for number in range(2000):
        (campaign / f".audit.json.{number}.tmp").symlink_to(home / "precious")


def poisoned_plan(plan: Any) -> None:
    plan["work"][0]["steps"][0]["argv"] = ["sh", "-c", "touch /tmp/owned"]
    plan["study"]["image"]["mirror"] = "--setup-hook=touch /tmp/owned"


ESCAPES = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07"
TRICKS: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda campaign, home: None,
    "an id": lambda campaign, home: changed(campaign / "campaign.json", lambda about: about.update(id=str(home))),
    "a command": lambda campaign, home: changed(campaign / "plan.json", poisoned_plan),
    "an argument": lambda campaign, home: changed(
        campaign / "plan.json", lambda plan: plan["work"][0]["steps"][0].update(argv=["sh", "-c", "touch /tmp/owned"])
    ),
    "a report elsewhere": lambda campaign, home: (campaign / "report").symlink_to(home),
    "a lock elsewhere": lambda campaign, home: (campaign / ".lock").symlink_to(home / "precious"),
    "temporary files": temporary_links,
    "a file of the reader": lambda campaign, home: changed(
        record_of(campaign), lambda record: record["steps"][0].update(stdout=str(home / "precious"))
    ),
    "output elsewhere": lambda campaign, home: replaced(
        output_of(campaign), lambda path: path.symlink_to(home / "precious")
    ),
    "endless output": lambda campaign, home: replaced(output_of(campaign), lambda path: path.symlink_to("/dev/zero")),
    "a pipe": lambda campaign, home: replaced(output_of(campaign), os.mkfifo),
    "much output": lambda campaign, home: output_of(campaign).write_text(PRINTED + "1" * 20_000_000),
    "escapes": lambda campaign, home: changed(
        record_of(campaign), lambda record: record.update(status="failed", failure=ESCAPES)
    ),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of four rounds."""
    top = tmp_path_factory.mktemp("good")
    made = new_campaign(top / "campaign", {name: FakeProvider(name, top) for name in ("host", "docker")}, rounds=4)
    store(made, dict.fromkeys(planned(made.plan()), PRINTED))
    return made.directory


class Reader:
    """A home directory with something to lose, and a campaign that was received."""

    def __init__(self, top: Path, good: Path) -> None:
        self.top, self.home, self.campaign = top, top / "home", top / "received"
        self.home.mkdir()
        (self.home / "precious").write_text(f"{SECRET}\n")
        shutil.copytree(good, self.campaign)
        self.good = top / "good"
        shutil.copytree(good, self.good)
        self.printed = ""

    def command(self, name: str) -> tuple[str, ...]:
        here = str(self.campaign)
        return {
            "watch": ("watch", "--once", here),
            "compare": ("compare", str(self.good), here),
            "export": ("export", here, "-o", str(self.top / "asked.csv")),
            "resume": ("run", "--resume", here),
        }.get(name, (name, here))

    def traced(self, name: str) -> list[tuple[str, str]]:
        """Every call that changes, starts or reaches something, and on what, while a command runs."""
        logs = self.top / "strace"  # one for each thread: in a common one their calls are cut into pieces
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        places = {"XDG_CACHE_HOME": str(self.top / "cache"), "XDG_STATE_HOME": str(self.top / "state")}
        env = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1"}
        trace = ("strace", "-ff", "-y", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(logs / "thread"), "--")
        done = subprocess.run(
            (*trace, sys.executable, str(VTAX), *self.command(name)),
            capture_output=True,
            timeout=LIMIT_S,
            env=env,
            cwd=self.top,
        )
        self.printed = (done.stdout + done.stderr).decode(errors="replace")
        lines = [line for log in sorted(logs.iterdir()) for line in log.read_text(errors="replace").splitlines()]
        return [found for line in lines if (found := effect(line))]

    def allowed(self, call: str, what: str) -> bool:
        """The campaigns' own files, the output that was asked for, caches, and what asking for facts starts."""
        if call == "execve":
            return what in (sys.executable, os.path.realpath(sys.executable)) or Path(what).name in FACTS
        if call == "connect":
            return what in ("/var/run/docker.sock", "/run/docker.sock") or "nscd" in what
        mine = (self.campaign, self.good, self.top / "cache", self.top / "state", self.top / "asked.csv")
        if what in ("/dev/null", "/dev/tty") or what.startswith(("/proc/self/", "/dev/shm/sem.", "/tmp/tmp")):
            return True
        return any(Path(what) == one or one in Path(what).parents for one in mine)


FACTS = ("docker", "podman", "ssh", "qemu-system-x86_64", "unshare", "taskset", "uname", "ldconfig", "ldconfig.real")


def effect(line: str) -> tuple[str, str] | None:
    """The call of a line and its path, where it may change, start or reach something and succeeded."""
    found = CALL.match(line)
    if found is None or int(found[3]) < 0:
        return None
    call, arguments = found[1], found[2]
    if call in ("open", "openat", "openat2") and WRITING.search(arguments) is None:
        return None
    paths = PATHS.findall(arguments)
    if not paths:
        return None if call == "connect" else (call, arguments)  # a netlink or other nameless socket
    base = BASE.match(arguments)
    path = paths[-1] if call.startswith(("rename", "link", "symlink")) else paths[0]
    return call, os.path.normpath(Path(base[1] if base else "/") / path)


def test_the_judge_sees_what_a_command_does(tmp_path: Path, good: Path) -> None:
    """Else all that follows would prove nothing."""
    reader = Reader(tmp_path, good)
    done = reader.traced("report")
    assert ("execve", sys.executable) in done
    written = {Path(what).name for call, what in done if call.startswith("rename")}
    assert {"index.html", "report.md", "analysis.json", "audit.json"} <= written
    assert not reader.allowed("rename", str(reader.home / "precious"))
    assert not reader.allowed("execve", "/bin/sh")
    away = f'openat(7<{reader.home}>, "precious", O_WRONLY|O_CLOEXEC) = 8<{reader.home}/precious>'
    assert effect(away) == ("openat", str(reader.home / "precious"))
    assert effect(away.replace("O_WRONLY", "O_RDONLY")) is None


@pytest.mark.parametrize("trick", TRICKS)
def test_looking_at_a_hostile_campaign_does_nothing_else(trick: str, tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    TRICKS[trick](reader.campaign, reader.home)
    for name in READ:
        done = reader.traced(name)
        assert ("execve", sys.executable) in done  # strace has seen it
        assert [one for one in dict.fromkeys(done) if not reader.allowed(*one)] == [], name
        assert SECRET not in reader.printed, name
        assert "\x1b" not in reader.printed, name
        assert "Traceback" not in reader.printed, f"{name}: {reader.printed[-2000:]}"
    assert (reader.home / "precious").read_text() == f"{SECRET}\n"
    assert [path.name for path in reader.home.iterdir()] == ["precious"]
    for path in reader.campaign.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert SECRET.encode() not in path.read_bytes(), path
