"""The judge of what a command does: strace of every call that changes, starts, reaches or opens something, and fanotify
of what the same processes write and execute.

The command lines of one verdict run beneath one strace, each in a process that was forked from one that has imported
everything (driver.py): to start Python so often would take most of the time.
"""

from __future__ import annotations

import ctypes
import http.cookiejar
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

VTAX = Path(sys.executable).with_name("vtax")
DRIVER = Path(__file__).with_name("driver.py")
LIMIT_S = 240
CPU_S = 60.0  # a generous limit for one command: the longest take 5
MEMORY_BYTES = 2 * 2**30
SECRET = "TOPSECRET-LINE-0x42"
CALLS = (
    "execve,open,openat,openat2,creat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,"
)
CALLS += "truncate,chmod,fchmodat,chown,fchownat,mkdir,mkdirat,mknod,mknodat,mount,connect"
CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
PATHS = re.compile(r'"((?:[^"\\]|\\.)*)"')
WRITING = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)")
BASE = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>")
FACTS = ("docker", "podman", "qemu-system-x86_64", "unshare", "taskset", "uname", "ldconfig", "ldconfig.real")
SYSTEM = (
    *(Path(one).resolve() for one in (sys.prefix, sys.base_prefix, *filter(None, sys.path))),
    Path(sys.prefix),
    *map(Path, ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")),
)
LOADERS = tuple(path.resolve().name for path in Path("/lib64").glob("ld-linux*"))
Effect = tuple[str, str]  # a call, and the path that it was about


def effect(line: str) -> Effect | None:
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


class Ended(NamedTuple):
    """How one command ended, and what it printed."""

    code: int
    cpu_s: float
    memory_bytes: int
    printed: str


class Reader:
    """A home directory with something to lose, and a campaign that was received. Commands run in a directory with
    files that Python or a shell would take for its own, if it looked there."""

    def __init__(self, top: Path, good: Path) -> None:
        self.top, self.home, self.campaign = top, top / "home", top / "received"
        self.given = top / "given"  # studies, samples, images
        self.home.mkdir()
        self.given.mkdir()
        self.files = top / "files"  # that are asked for
        self.files.mkdir()
        self.temporary = top / "temporary"
        self.temporary.mkdir()
        (self.home / "precious").write_text(f"{SECRET}\n")
        shutil.copytree(good, self.campaign)
        self.good = top / "good"
        shutil.copytree(good, self.good)
        for name in ("numpy.py", "vtax.py", "sitecustomize.py", "docker", "ssh", ".env"):
            (top / name).write_text(f"#!/bin/sh\ntouch {self.home}/owned\n")
            (top / name).chmod(0o755)
        self.ended: dict[str, Ended] = {}
        self.page = ""
        self.confirmed: list[Effect] = []  # by fanotify: what was written and executed
        self.watched = Watched(self.home)

    def command(self, name: str) -> tuple[str, ...]:
        """A command line by its name, which is that of the command where it only takes a campaign."""
        here, study, asked = str(self.campaign), str(self.given / "study.toml"), str(self.top / "asked")
        files = str(self.files)
        archive = f"docker-archive:{self.given / 'study.tar'}"
        return {
            "watch": ("watch", "--once", here),
            "compare": ("compare", str(self.good), here, "--fail-on", "inconclusive", "--junit", f"{files}/gates.xml"),
            "report": ("report", here, "--format", "html,md,latex,xlsx"),
            "export": ("export", here, "-o", f"{files}/table.csv"),
            "seal": ("seal", here, "-o", f"{files}/sealed.vtax.zip"),
            "seal --check": ("seal", "--check", str(self.given / "sealed.vtax.zip")),
            "from": ("plan", "--from", here, "--into", f"{files}/theirs"),
            "from a sealed one": ("plan", "--from", str(self.given / "sealed.vtax.zip"), "--into", f"{files}/sealed"),
            "compare a sealed one": ("compare", str(self.good), str(self.given / "sealed.vtax.zip")),
            "resume": ("run", "--resume", here),
            "extend": ("import", str(self.top / "logs"), "-e", "vm", "--into", here),
            "plan": ("plan", study),
            "sample": ("plan", study, "--sample", str(self.given / "sample.txt")),
            "run": ("run", study, "-o", asked),
            "doctor on machines": ("doctor", "--machines", study),
            "clean on machines": ("clean", "--machines", study),
            "image build": ("image", "build", study),
            "image sbom": ("image", "sbom", study),
            "image export": ("image", "export", asked, "--study", study),
            "compose": ("compose", study, "host"),
            "up": ("up", "host", "--study", study),
            "measure": ("measure", "--in", "host", "--image", archive, "-o", asked, "--", "true"),
            "import": ("import", str(self.top / "logs"), "-e", "vm", "--into", asked),
            "layout": ("import", str(self.top / "logs"), "--layout", "{environment}/**", "--into", asked),
            "status": ("status",),
            "ssh": ("ssh", "host", "worker1"),
            "exec": ("exec", "host", "worker1", "--", "true"),
            "down": ("down", "host"),
            "image list": ("image", "list"),
            "image remove": ("image", "remove", "../../home"),
            "init": ("init", "-o", f"{files}/study.toml"),
            "schema": ("schema",),
            "reference list": ("reference", "list"),
            "reference show": ("reference", "show", "../../../home/precious"),
            "tune hpl": ("tune", "hpl", "-o", f"{files}/HPL.dat"),
            "peak": ("peak",),
            "workloads": ("workloads",),
        }.get(name, (name, here))

    def traced(self, *names: str, plainly: bool = False) -> list[Effect]:
        """Every call that changes, starts, reaches or opens something, and on what, while commands run one after
        another; `plainly` is one command as a person starts it."""
        logs, said = self.top / "strace", self.top / "said"
        for place in (logs, said):  # one log for each thread: in a common one their calls are cut into pieces
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        places = {
            "XDG_CACHE_HOME": str(self.top / "cache"),
            "XDG_STATE_HOME": str(self.top / "state"),
            "TMPDIR": str(self.temporary),
        }
        env = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}
        trace: tuple[str, ...] = ("strace", "-f", "-ff", "--seccomp-bpf", "-y", "-s", "4096", "-e", f"trace={CALLS}")
        trace += ("-o", str(logs / "thread"), "--", sys.executable)
        lines = [self.command(name) for name in names]
        command = (str(VTAX), *lines[0]) if plainly else (str(DRIVER), str(said), json.dumps(lines))
        with Machine(self.top) as machine, (said / "all").open("wb") as output:
            process = subprocess.Popen(
                (*trace, *command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=self.top,
                start_new_session=True,
            )
            try:
                if "serve" in names:
                    self.visit(process, said, names.index("serve"))
                code = process.wait(LIMIT_S)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # what is traced does not end with its tracer
                process.wait()  # or the next test would be blamed for it
        if not plainly:
            assert code == 0, (said / "all").read_text()
            self.ended = {name: ended(said, number) for number, name in enumerate(names)}
        traced = {int(log.suffix[1:]) for log in logs.iterdir()}
        own = (said, logs)  # of the judge and the driver
        confirmed = [(call, path) for pid, call, path in machine.seen if pid in traced]
        self.confirmed = [one for one in confirmed if Path(one[1]).parent not in own]
        text = [line for log in sorted(logs.iterdir()) for line in log.read_text(errors="replace").splitlines()]
        return [found for line in text if (found := effect(line)) and Path(found[1]).parent not in own]

    def visit(self, process: subprocess.Popen[bytes], said: Path, number: int) -> None:
        """Fetch the root of a server and the page that it leads to, then end the server as Ctrl-C does."""
        deadline, printed, over = time.monotonic() + LIMIT_S, said / f"{number}.txt", said / f"{number}.json"
        while not (printed.exists() and b"token=" in printed.read_bytes()):
            assert time.monotonic() < deadline
            if over.exists():
                return  # it refused the campaign
            assert process.poll() is None, (said / "all").read_text()
            time.sleep(0.05)
        address = next(line for line in printed.read_text().splitlines() if "token=" in line)
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        with opener.open(address, timeout=LIMIT_S) as page:  # by way of the page's own place
            self.page = page.read().decode()
            assert page.headers["Content-Security-Policy"]
        os.kill(int((said / f"{number}.pid").read_text()), signal.SIGINT)

    def allowed(self, call: str, what: str) -> bool:
        """The campaigns' own files, the output that was asked for, caches, and what asking for facts starts; to be
        read, also the interpreter, its modules and libraries, and what the kernel and the system say of themselves."""
        if call == "execve":
            return what in (sys.executable, os.path.realpath(sys.executable)) or is_fact(Path(what))
        if call == "read" and any(Path(what).is_relative_to(one) for one in (*SYSTEM, self.top)):
            return not Path(what).is_relative_to(self.home)
        if call == "connect":
            return what in ("/var/run/docker.sock", "/run/docker.sock") or "nscd" in what
        if what in ("/dev/null", "/dev/tty", "/dev/kvm") or what.startswith(("/proc/self/", "/dev/shm/sem.")):
            return True
        mine = (
            self.campaign,
            self.good,
            self.top / "cache",
            self.top / "state",
            self.top / "asked",
            self.files,
            self.temporary,
        )
        return any(Path(what).is_relative_to(one) for one in mine)


def is_fact(program: Path) -> bool:
    """Whether it is a program of the system that says something about it."""
    return program.name in FACTS and program.is_relative_to("/usr")


def ended(said: Path, number: int) -> Ended:
    result: Mapping[str, float] = json.loads((said / f"{number}.json").read_bytes())
    printed = (said / f"{number}.txt").read_text(errors="replace")
    return Ended(int(result["code"]), result["cpu_s"], int(result["memory_bytes"]), printed)


def judge(reader: Reader, names: Sequence[str]) -> None:
    """Nothing but what is listed is done, it ends, and nothing secret or active is shown."""
    done = reader.traced(*names)
    assert ("execve", sys.executable) in done, "strace has seen it"
    touched = [one for one in done if Path(one[1]).is_relative_to(reader.home)]
    assert (reader.watched.events(), touched) == (0, []), touched
    strange = [one for one in dict.fromkeys(done) if not reader.allowed(*one)]
    assert strange == [], strange
    known = [("execve", name) for name in LOADERS]  # which the kernel starts with every program
    confirmed = [one for one in dict.fromkeys(reader.confirmed) if (one[0], Path(one[1]).name) not in known]
    strange = [one for one in confirmed if not reader.allowed(*one)]
    assert strange == [], f"fanotify: {strange}"
    for name, one in reader.ended.items():
        assert one.code in (0, 2, 3, 4, 5, 130) or (name, one.code) == ("seal --check", 1), (
            f"{name}: {one.code}\n{one.printed[-2000:]}"
        )
        assert (one.cpu_s < CPU_S, one.memory_bytes < MEMORY_BYTES) == (True, True), (name, one)
        assert "error: internal" not in one.printed, f"{name}: {one.printed[-2000:]}"
        assert "Traceback" not in one.printed, f"{name}: {one.printed[-2000:]}"
    for shown in (reader.page, *(one.printed for one in reader.ended.values())):
        assert SECRET not in shown
        assert "\x1b" not in shown


def judge_files(reader: Reader, written: Path) -> None:
    """What the reader had is as it was, and none of it is in what was written."""
    assert (reader.home / "precious").read_text() == f"{SECRET}\n"
    assert [path.name for path in reader.home.iterdir()] == ["precious"]
    for path in written.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**30:
            assert SECRET.encode() not in path.read_bytes(), path
