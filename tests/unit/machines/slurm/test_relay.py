"""What starts srun for a node: the real script of a node, a real relay, and a program in the place of srun."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vtax.launchers.srun import PLACE
from vtax.machines.slurm.relay import CLIENT, Joined, Relay

ASKED = ("--mpi=pmix", "--distribution=arbitrary", "--ntasks=2", "--nodelist=master,worker1", "env", "A=1", "xhpl")
WAIT_S = 20.0
# Says what it was given, and runs the script of its task as on the first node.
SRUN = """\
#!/bin/sh
echo "$$" >{place}/pid
echo "$@" >{place}/given
while [ "$1" != /bin/sh ]; do shift; done
SLURMD_NODENAME=${{NODE-c1}} "$@"
code=$?
[ -z "$ENDLESS" ] || exec sleep 60
exit $code
"""


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    program = tmp_path / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(SRUN.format(place=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    nodes = {
        name: Joined(host, ("sh", "-c", f'echo {name} "$@"', "j"))
        for name, host in (("master", "c1"), ("worker1", "c2"))
    }
    made = Relay(tmp_path / "node", "7", nodes)
    (tmp_path / "node" / "srun").write_text(CLIENT.replace(PLACE, str(tmp_path / "node")))
    yield made
    made.close()


def ask(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ("sh", str(tmp_path / "node" / "srun"), *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, cwd=tmp_path, check=False)


def wait(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_srun_starts_the_program_in_the_nodes_and_what_it_prints_comes_back(relay: Relay, tmp_path: Path) -> None:
    made = ask(tmp_path, *ASKED)
    assert (made.returncode, made.stdout, made.stderr) == (0, f"master {tmp_path} env A=1 xhpl\n", "")
    given = (tmp_path / "given").read_text()
    assert given.startswith("--quiet --jobid=7 --ntasks=2 --distribution=arbitrary --nodelist=c1,c2 --overlap ")
    assert "--mpi=pmix" in given


@pytest.mark.usefixtures("relay")
def test_words_are_passed_on_as_they_are(tmp_path: Path) -> None:
    made = ask(tmp_path, *ASKED, "a b", "", "$(reboot)", "it's")
    assert made.stdout == f"master {tmp_path} env A=1 xhpl a b  $(reboot) it's\n"


@pytest.mark.usefixtures("relay")
def test_a_task_on_a_machine_without_a_node_of_the_cluster_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE", "c3")
    made = ask(tmp_path, *ASKED)
    assert made.returncode == 125 and "a rank on c3, which has no node of this cluster" in made.stderr


@pytest.mark.usefixtures("relay")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("xhpl",), "usage: srun"),
        (("--uid=0", *ASKED), "usage: srun"),
        (ASKED[:4], "usage: srun"),
        (("--mpi=none", *ASKED[1:]), "usage: srun"),
        ((*ASKED[:3], "--nodelist=master,c9", "xhpl"), "there is no node c9"),
        ((*ASKED[:2], "--ntasks=3", *ASKED[3:]), "3 tasks on 2 places"),
    ],
)
def test_nothing_else_is_started(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    made = ask(tmp_path, *words)
    assert made.returncode == 125 and expected in made.stderr
    assert not (tmp_path / "given").exists()


def ended(tmp_path: Path) -> bool:
    return not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize("how", ["kill", "close"])
def test_srun_ends_with_the_command_and_with_the_relay(
    relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("ENDLESS", "1")
    command = ("sh", str(tmp_path / "node" / "srun"), *ASKED)
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == f"master {tmp_path} env A=1 xhpl\n".encode()
        if how == "kill":
            os.killpg(running.pid, 9)
        else:
            relay.close()
            running.kill()
        wait(lambda: ended(tmp_path))


def test_links_in_the_place_of_pipes_lead_nowhere(
    relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vtax.machines.slurm.relay.ANSWER_S", 0.3)
    call, victim = tmp_path / "node" / "call.abcdef", tmp_path / "victim"
    call.mkdir()
    victim.write_text("mine")
    for name in ("out", "err", "code"):
        (call / name).symlink_to(victim)
    os.mkfifo(call / "alive")
    (call / "words").write_bytes(b"\0".join(map(os.fsencode, (str(tmp_path), *ASKED, ""))))
    (tmp_path / "node" / "call.linked").symlink_to(call)
    with (tmp_path / "node" / "ask").open("w") as asking:
        asking.write("call.abcdef\ncall.linked\n../call.abcdef\n")
    wait(lambda: len(relay.threads) == 3)
    for thread in relay.threads[1:]:
        thread.join(WAIT_S)
    assert victim.read_text() == "mine" and not (tmp_path / "given").exists()
    assert ask(tmp_path, *ASKED).returncode == 0  # others are served
