"""vtax-supervise, and services as real processes: what commands leave, how servers are stopped, what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import Capabilities
from vtax.model.nodes import ClusterShape, NodeShape, Role, Scope, Target
from vtax.model.plan import Ready, Service, Step
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Cluster, Node
from vtax.running.services import Services
from vtax.transport.local import LocalTransport

pytestmark = pytest.mark.integration
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-static")
SERVER = """
import signal, socket, sys, time
how, port = sys.argv[1], int(sys.argv[2])
def stop(*_):
    print("stopped", flush=True)
    sys.exit(7 if how == "badly" else 0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if how == "never" else stop)
if how == "dies":
    sys.exit("it dies")
if how != "silent":
    server = socket.create_server(("127.0.0.1", port))
    print("now serving", flush=True)
while True:
    time.sleep(0.05)
"""
SHAPE = NodeShape(name="here", role=Role.WORKER, cpus=1, cpu_ids=(0,), memory_bytes=2**30, disk_bytes=2**30)
PORT = 28_431


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bin") / "vtax-supervise"
    source = Path(str(files("vtax.image") / "guest" / "vtax-supervise.c"))
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(made)], check=True)
    return made


def run(program: Path, *argv: str, stdin: str = "", timeout: float = 20) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *argv], input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )


def marked(mark: str) -> list[int]:
    """The processes whose command has an argument."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words:
            found.append(int(place.name))
    return found


# --- the program ---------------------------------------------------------------------------------------------------


def test_it_ends_as_its_command_does(program: Path) -> None:
    assert run(program, "sh", "-c", "echo out; echo err >&2; exit 3").returncode == 3
    assert run(program, "sh", "-c", "kill -INT $$").returncode == 128 + signal.SIGINT
    missing = run(program, "no-such-program")
    assert (missing.returncode, "no-such-program" in missing.stderr) == (127, True)


def test_a_command_has_nothing_to_read_and_no_terminal(program: Path) -> None:
    done = run(program, "sh", "-c", "cat; test -t 0 || echo no terminal", stdin="secret\n")
    assert done.stdout == "no terminal\n"


def test_what_forks_away_is_ended_and_named(program: Path) -> None:
    mark = f"{os.getpid()}.25"
    began = time.monotonic()
    done = run(program, "sh", "-c", f"(setsid sh -c 'setsid sleep 1{mark} & sleep 1{mark}' &) ; echo done; sleep 0.2")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.splitlines()[-1].startswith("vtax-supervise: ended what was still running: ")
    assert "sleep" in done.stderr
    assert marked(f"1{mark}") == []
    assert time.monotonic() - began < 10


def test_a_command_that_leaves_nothing_says_nothing(program: Path) -> None:
    done = run(program, "sh", "-c", "(true &); true")
    assert (done.returncode, done.stderr) == (0, "")


def test_orders_are_obeyed_and_their_end_ends_all(program: Path) -> None:
    handler = "trap 'echo got it; exit 5' INT; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [str(program), "--control", "sh", "-c", handler], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        time.sleep(0.3)
        process.stdin.write("2\n")
        process.stdin.flush()
        assert process.wait(10) == 5
    done = run(program, "--control", "sh", "-c", "trap '' INT TERM; sleep 30; sleep 30")  # standard input is empty
    assert done.returncode == 128 + signal.SIGKILL


def test_a_time_limit_ends_also_what_ignores_it(program: Path) -> None:
    mark = f"{os.getpid()}.5"
    limited = ["timeout", "-k", "8", "1", str(program), "sh", "-c", f"trap '' TERM; setsid sleep 1{mark}; sleep 20"]
    assert subprocess.run(limited, capture_output=True, timeout=20, check=False).returncode == 124
    assert marked(f"1{mark}") == []


# --- services ------------------------------------------------------------------------------------------------------


class Place:
    """This machine as a node on which services run."""

    def __init__(self, top: Path, program: Path) -> None:
        self.transport = LocalTransport(lambda directory, argv: ("env", "-C", directory, *argv))
        shape = ClusterShape(nodes=(SHAPE,))
        cluster = Cluster(
            environment=EnvironmentSpec(name="here", provider="none"),
            shape=shape,
            nodes=(Node("here", "127.0.0.1", SHAPE, self.transport),),
            capabilities=Capabilities(),
            launcher=Mpirun(interface="lo"),
            shared_path="/shared",
        )
        self.program, self.top = program, top
        self.services = Services(cluster, Target(scope=Scope.NODE, nodes=(SHAPE,), directory=str(top)), top)

    def start(self, how: str, ready: Ready | None, exits: Sequence[int] | None = None, number: int = 0) -> str:
        argv = (str(self.program), "--control", sys.executable, "-c", SERVER, how, f"{PORT}")
        service = Service(ready=ready, stop_s=1.0, exits=None if exits is None else tuple(exits))
        step = Step(nodes=("here",), argv=argv, timeout_s=60, background=True, service=service)
        return self.services.start(number, step, service, self.transport)


@pytest.fixture
def place(tmp_path: Path, program: Path) -> Place:
    return Place(tmp_path, program)


@pytest.mark.parametrize("ready", [Ready(port=PORT), Ready(line="^now serving$"), Ready(command=("true",))])
def test_a_service_becomes_ready_and_is_stopped(place: Place, ready: Ready) -> None:
    assert place.start("well", ready) == ""
    time.sleep(0.3)  # with a command that always succeeds it is still starting
    records, failure = place.services.stop()
    assert (failure, [record.exit_code for record in records]) == ("", [0])
    assert (place.top / "0.here.stdout").read_text().endswith("stopped\n")


def test_a_second_one_finds_the_port_taken(place: Place) -> None:
    assert place.start("well", Ready(port=PORT)) == ""
    assert f"port {PORT} is taken by another program" in place.start("well", Ready(port=PORT), number=1)
    assert place.services.stop()[1] == ""


@pytest.mark.parametrize(
    ("how", "ready", "at_start", "at_stop"),
    [
        ("silent", Ready(port=PORT, timeout_s=0.7), "was not ready within 0.7 s: nothing listens on port", ""),
        ("dies", Ready(port=PORT, timeout_s=9), "ended before it was ready", "with exit code 1"),
        ("badly", Ready(port=PORT), "", "ended with exit code 7 when it was stopped"),
        ("never", Ready(port=PORT), "", "ignored SIGTERM for 1 s and was killed"),
    ],
)
def test_services_that_do_not_behave(place: Place, how: str, ready: Ready, at_start: str, at_stop: str) -> None:
    said = place.start(how, ready)
    assert at_start in said if at_start else said == ""
    _, failure = place.services.stop()
    assert at_stop in failure if at_stop else failure == ""
    assert [pid for pid in marked(f"{PORT}") if pid != os.getpid()] == []


def test_the_study_may_allow_a_bad_end(place: Place) -> None:
    assert place.start("never", Ready(port=PORT), exits=(137,)) == ""
    assert place.services.stop()[1] == ""
