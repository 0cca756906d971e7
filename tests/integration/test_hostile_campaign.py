"""A campaign made to do harm, and every command that reads campaigns, with strace as the judge.

Each trick is its own copy of a good campaign, so that a refusal of one does not hide another; one copy has them all.
Whatever a command says, it opens, renames, removes, connects to and executes nothing but what is listed here, and it
ends. fanotify is a second judge: of what is written and executed anywhere, and of every look at the reader's own files.
"""

from __future__ import annotations

import ctypes
import http.cookiejar
import io
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars
import pytest

from builders.small import PRINTED, new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax.export import parquet
from vtax.export.tables import COLUMNS

from .conftest import CPU, study

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
READ = ("analyse", "audit", "report", "export", "watch", "compare", "serve", "resume")


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
    "everything": lambda campaign, home: everything(campaign, home),
}


def everything(campaign: Path, home: Path) -> None:
    """All of them, each on a trial of its own."""
    outputs = sorted(campaign.glob("trials/*/*/*.stdout"))
    records = [output.with_name("record.json") for output in outputs]
    for name in ("an id", "a command", "a report elsewhere", "a lock elsewhere", "temporary files"):
        TRICKS[name](campaign, home)
    changed(records[0], lambda record: record["steps"][0].update(stdout=str(home / "precious")))
    replaced(outputs[1], lambda path: path.symlink_to(home / "precious"))
    replaced(outputs[2], lambda path: path.symlink_to("/dev/zero"))
    replaced(outputs[3], os.mkfifo)
    outputs[4].write_text(PRINTED + "1" * 20_000_000)
    changed(records[5], lambda record: record.update(status="failed", failure=ESCAPES))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of four rounds."""
    top = tmp_path_factory.mktemp("good")
    made = new_campaign(top / "campaign", {name: FakeProvider(name, top) for name in ("host", "docker")}, rounds=4)
    store(made, dict.fromkeys(planned(made.plan()), PRINTED))
    return made.directory


class Watched:
    """What fanotify reports of a directory: a second judge, which does not depend on a list of system calls."""

    ANY = 0x1 | 0x2 | 0x8 | 0x20 | 0x08000000  # accessed, modified, closed after writing, opened; files in it
    NON_BLOCKING, ADD, HERE = 0x2, 0x1, -100

    def __init__(self, directory: Path, kind: int = ANY, how: int = ADD, flags: int = NON_BLOCKING) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        library.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
        self.group = library.fanotify_init(flags, os.O_RDONLY)
        marked = library.fanotify_mark(self.group, how, kind, self.HERE, os.fsencode(directory))
        assert (self.group >= 0, marked) == (True, 0), os.strerror(ctypes.get_errno())

    def events(self) -> int:
        """How many bytes of events there have been since the last call, each with an open file, which this process
        keeps until it ends."""
        try:
            return len(os.read(self.group, 2**16))
        except BlockingIOError:
            return 0


class Machine(Watched):
    """What all processes of this machine write and execute on the file system of a directory, while it is entered."""

    WRITTEN, EXECUTED, OVERFLOW = 0x8, 0x1000, 0x4000
    MOUNT, UNLIMITED = 0x10, 0x10
    EVENT = struct.Struct("=IBBHQii")

    def __init__(self, directory: Path) -> None:
        everything = self.ADD | self.MOUNT
        super().__init__(directory, self.WRITTEN | self.EXECUTED, everything, self.NON_BLOCKING | self.UNLIMITED)
        self.seen: list[tuple[int, str, str]] = []  # process, call, path
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.follow)

    def __enter__(self) -> Machine:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.note()
        os.close(self.group)

    def follow(self) -> None:
        while not self.over.wait(0.01):
            self.note()

    def note(self) -> None:
        with suppress(BlockingIOError):
            while events := os.read(self.group, 2**16):
                for _, _, _, _, mask, descriptor, process in self.EVENT.iter_unpack(events):
                    assert not mask & self.OVERFLOW
                    path = str(Path(f"/proc/self/fd/{descriptor}").readlink()).removesuffix(" (deleted)")
                    os.close(descriptor)
                    call = "execve" if mask & self.EXECUTED else "open"
                    self.seen.append((process, call, path))


class Reader:
    """A home directory with something to lose, and a campaign that was received."""

    def __init__(self, top: Path, good: Path) -> None:
        self.top, self.home, self.campaign = top, top / "home", top / "received"
        self.home.mkdir()
        (self.home / "precious").write_text(f"{SECRET}\n")
        shutil.copytree(good, self.campaign)
        self.good = top / "good"
        shutil.copytree(good, self.good)
        self.printed = self.page = ""
        self.confirmed: list[tuple[str, str]] = []  # by fanotify: what was written and executed
        self.watched = Watched(self.home)

    def command(self, name: str) -> tuple[str, ...]:
        here = str(self.campaign)
        return {
            "watch": ("watch", "--once", here),
            "compare": ("compare", str(self.good), here),
            "export": ("export", here, "-o", str(self.top / "asked.csv")),
            "resume": ("run", "--resume", here),
            "plan": ("plan", str(self.top / "study.toml")),
            "run": ("run", str(self.top / "study.toml"), "-o", str(self.top / "asked")),
            "image": ("image", "build", str(self.top / "study.toml")),
            "compose": ("compose", str(self.top / "study.toml"), "host"),
            "import": ("import", str(self.top / "logs"), "-e", "vm", "--into", str(self.top / "asked")),
        }.get(name, (name, here))

    def traced(self, name: str) -> list[tuple[str, str]]:
        """Every call that changes, starts or reaches something, and on what, while a command runs."""
        logs = self.top / "strace"  # one for each thread: in a common one their calls are cut into pieces
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        places = {"XDG_CACHE_HOME": str(self.top / "cache"), "XDG_STATE_HOME": str(self.top / "state")}
        env = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1"}
        trace = (
            "strace",
            "-f",
            "-ff",
            "--seccomp-bpf",
            "-y",
            "-s",
            "4096",
            "-e",
            f"trace={CALLS}",
            "-o",
            str(logs / "thread"),
            "--",
        )
        argv = (*trace, sys.executable, str(VTAX), *self.command(name))
        said = self.top / "said.txt"
        with Machine(self.top) as machine, said.open("wb") as output:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=self.top
            )
            try:
                if name == "serve":
                    self.visit(process, said)
                process.wait(LIMIT_S)
            finally:
                process.kill()
        traced = {int(log.suffix[1:]) for log in logs.iterdir()}
        self.confirmed = [(call, path) for pid, call, path in machine.seen if pid in traced]
        self.printed = said.read_text(errors="replace")
        lines = [line for log in sorted(logs.iterdir()) for line in log.read_text(errors="replace").splitlines()]
        return [found for line in lines if (found := effect(line))]

    def visit(self, process: subprocess.Popen[bytes], said: Path) -> None:
        """Fetch the root of a server and the page that it leads to, then end the server as Ctrl-C does."""
        deadline = time.monotonic() + LIMIT_S
        while process.poll() is None and b"token=" not in said.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        if process.poll() is not None:
            return  # it refused the campaign
        address = next(line for line in said.read_text().splitlines() if "token=" in line)
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        with opener.open(address, timeout=LIMIT_S) as page:  # by way of the page's own place
            self.page = page.read().decode()
            assert page.headers["Content-Security-Policy"]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGINT)

    def allowed(self, call: str, what: str) -> bool:
        """The campaigns' own files, the output that was asked for, caches, and what asking for facts starts; to be
        read, also the interpreter, its modules and libraries, and what the kernel and the system say of themselves."""
        if call == "execve":
            return what in (sys.executable, os.path.realpath(sys.executable)) or Path(what).name in FACTS
        if call == "read" and any(Path(what).is_relative_to(one) for one in (*SYSTEM, self.top)):
            return not Path(what).is_relative_to(self.home)
        if call == "connect":
            return what in ("/var/run/docker.sock", "/run/docker.sock") or "nscd" in what
        mine = (
            self.campaign,
            self.good,
            self.top / "cache",
            self.top / "state",
            self.top / "asked",
            self.top / "asked.csv",
        )
        if what in ("/dev/null", "/dev/tty") or what.startswith(("/proc/self/", "/dev/shm/sem.", "/tmp/tmp")):
            return True
        return any(Path(what) == one or one in Path(what).parents for one in mine)


FACTS = ("docker", "podman", "ssh", "qemu-system-x86_64", "unshare", "taskset", "uname", "ldconfig", "ldconfig.real")
SYSTEM = (
    *(Path(one).resolve() for one in (sys.prefix, sys.base_prefix, *filter(None, sys.path))),
    Path(sys.prefix),
    *map(Path, ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")),
)


def effect(line: str) -> tuple[str, str] | None:
    """The call of a line and its path, where it may change, start or reach something and succeeded."""
    found = CALL.match(line)
    if found is None or int(found[3]) < 0:
        return None
    call, arguments = found[1], found[2]
    reading = call in ("open", "openat", "openat2") and WRITING.search(arguments) is None
    paths = PATHS.findall(arguments)
    if not paths:
        return None if call == "connect" else (call, arguments)  # a netlink or other nameless socket
    base = BASE.match(arguments)
    path = paths[-1] if call.startswith(("rename", "link", "symlink")) else paths[0]
    return "read" if reading else call, os.path.normpath(Path(base[1] if base else "/") / path)


def test_the_judge_sees_what_a_command_does(tmp_path: Path, good: Path) -> None:
    """Else all that follows would prove nothing."""
    reader = Reader(tmp_path, good)
    done = reader.traced("report")
    assert ("execve", sys.executable) in done
    written = {Path(what).name for call, what in done if call.startswith("rename")}
    assert {"index.html", "report.md", "analysis.json", "audit.json"} <= written
    reader.traced("serve")
    assert "<title>" in reader.page, "it was fetched from a server that ran"
    assert reader.watched.events() == 0
    (reader.home / "precious").read_bytes()
    assert reader.watched.events() > 0, "the second judge sees it when a file is only read"
    assert not reader.allowed("rename", str(reader.home / "precious"))
    assert not reader.allowed("execve", "/bin/sh")
    away = f'openat(7<{reader.home}>, "precious", O_WRONLY|O_CLOEXEC) = 8<{reader.home}/precious>'
    assert effect(away) == ("openat", str(reader.home / "precious"))
    assert effect(away.replace("O_WRONLY", "O_RDONLY")) == ("read", str(reader.home / "precious"))
    assert not reader.allowed("read", str(reader.home / "precious"))
    assert not reader.allowed("read", "/root/.ssh/id_ed25519")
    assert not reader.allowed("open", "/etc/passwd"), "what may be read is not written"
    with Machine(tmp_path) as machine:
        (tmp_path / "made").write_text("")
        subprocess.run(["true"], check=True)
    made = {(call, Path(path).name) for pid, call, path in machine.seen if pid == os.getpid() or call == "execve"}
    assert {("open", "made"), ("execve", "true")} <= made


SHORT = ("an id", "a command", "a report elsewhere", "a pipe", "escapes", "everything")  # one of each sort


@pytest.mark.parametrize(
    "trick", [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in TRICKS]
)
def test_looking_at_a_hostile_campaign_does_nothing_else(trick: str, tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    TRICKS[trick](reader.campaign, reader.home)
    for name in READ:
        judge(reader, name)
    judge_files(reader, reader.campaign)


def judge(reader: Reader, name: str) -> None:
    """Nothing but what is listed is done, and nothing secret or active is shown."""
    done = reader.traced(name)
    assert ("execve", sys.executable) in done  # strace has seen it
    assert reader.watched.events() == 0, f"{name} touched a file that is not the campaign's"
    assert [one for one in dict.fromkeys(done) if not reader.allowed(*one)] == [], name
    known = [("execve", name) for name in LOADERS]  # which the kernel starts with every program
    confirmed = [one for one in dict.fromkeys(reader.confirmed) if (one[0], Path(one[1]).name) not in known]
    assert [one for one in confirmed if not reader.allowed(*one)] == [], f"{name}: fanotify"
    for shown in (reader.printed, reader.page):
        assert SECRET not in shown, name
        assert "\x1b" not in shown, name
    assert "Traceback" not in reader.printed, f"{name}: {reader.printed[-2000:]}"
    assert "internal" not in reader.printed, f"{name}: {reader.printed[-2000:]}"


LOADERS = tuple(path.resolve().name for path in Path("/lib64").glob("ld-linux*"))


def judge_files(reader: Reader, written: Path) -> None:
    """What the reader had is as it was, and none of it is in what was written."""
    assert (reader.home / "precious").read_text() == f"{SECRET}\n"
    assert [path.name for path in reader.home.iterdir()] == ["precious"]
    for path in written.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert SECRET.encode() not in path.read_bytes(), path


def hostile_logs(logs: Path, home: Path) -> None:
    """A folder of logs with all that a folder can have in it."""
    logs.mkdir()
    (logs / "good.txt").write_text(PRINTED)
    (logs / "elsewhere.txt").symlink_to(home / "precious")
    (logs / "folder").symlink_to(home)
    (logs / "itself").symlink_to(logs)
    os.mkfifo(logs / "pipe.txt")
    os.mknod(logs / "zero.txt", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(logs / "socket.txt"))
    (logs / "e\x1b[31mred.txt").write_text(PRINTED.replace("1092.04", "1092.05"))
    (logs / "--help").write_text(PRINTED.replace("1092.04", "1092.06"))
    (logs / "escapes.txt").write_text(PRINTED.replace("1092.04", ESCAPES))
    (logs / "sections.json").write_text("{\n}\n" * 20_000)
    (logs / "deep.json").write_text("{" * 100_000)
    header = ",".join(COLUMNS)
    for number, trial in enumerate(("../../home/x", "/etc/x", "a/..", str(home))):
        row = f"vtax-measurements/1,a,1,a.r1,{trial},1,false,ping,ping,rtt_avg,1.0,s,cost,lower,true,{{}}"
        row += f",trials/{trial}/x"
        (logs / f"table{number}.csv").write_text(f"{header}\n{row}\n")
    (logs / "table.parquet").write_bytes(parquet_bomb())


def parquet_bomb() -> bytes:
    """Some kilobytes that are a gigabyte when they are unpacked."""
    buffer = io.BytesIO()
    text = polars.Series(["x" * 60_000]).new_from_index(0, 1000)
    polars.DataFrame(dict.fromkeys(COLUMNS, text)).write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.long
def test_a_page_that_is_gigabytes_when_it_is_unpacked_is_refused() -> None:
    buffer = io.BytesIO()
    polars.DataFrame({"a": ["y" * (3 * 2**29)]}).write_parquet(buffer)
    assert len(buffer.getvalue()) < 100_000
    with pytest.raises(ValueError, match="more than 2 GiB of memory when it is unpacked"):
        parquet.lines(buffer.getvalue())


def test_importing_hostile_logs_does_nothing_else(tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    hostile_logs(tmp_path / "logs", reader.home)
    judge(reader, "import")
    assert "good.txt" in reader.printed
    reader.campaign = tmp_path / "asked"
    assert len(list(reader.campaign.rglob("*"))) < 100
    for name in ("import", "report", "export"):
        judge(reader, name)
    judge_files(reader, reader.campaign)


STUDIES = {
    "an option": "--setup-hook=touch /tmp/owned",
    "no signatures": "deb [trusted=yes] http://127.0.0.1:9/evil trixie main",
}


def write_study(reader: Reader, mirror: str) -> None:
    text = study(["host"], CPU.format(seconds=1)) + f'[image]\nmirror = "{mirror}"\n'
    (reader.top / "study.toml").write_text(text)


@pytest.mark.parametrize("trick", STUDIES)
def test_a_hostile_study_runs_nothing(trick: str, tmp_path: Path, good: Path) -> None:
    """Finding 1 of the first review: the mirror was an option of mmdebstrap, and so a shell command as root."""
    reader = Reader(tmp_path, good)
    write_study(reader, STUDIES[trick])
    for name in ("plan", "run", "image", "compose"):
        judge(reader, name)
        assert "image.mirror: " in reader.printed
    assert not Path("/tmp/owned").exists()


def test_a_plan_shows_where_the_root_file_system_comes_from(tmp_path: Path, good: Path) -> None:
    """It asks this machine what works here, and does nothing to it."""
    reader = Reader(tmp_path, good)
    write_study(reader, "http://127.0.0.1:9/debian")
    done = reader.traced("plan")
    assert "from http://127.0.0.1:9/debian" in reader.printed
    assert not {Path(what).name for call, what in done if call == "execve"} & {"mmdebstrap", "apt-get", "chroot"}
