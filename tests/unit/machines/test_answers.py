"""Machines that answer nothing, or what makes no sense: an error of theirs, after a limited time, and none of vtax.

The agent is a program of this test that is started as the real one is, and says what it is told to.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.small import IMAGE
from vtax.errors import EnvironmentMissing, MachineLost, VtaxError
from vtax.machines import agent as machine_agent
from vtax.machines import parcel
from vtax.machines.agent import Agent
from vtax.machines.connection import Connection
from vtax.machines.provider import RemoteProvider
from vtax.machines.spread import SpreadProvider
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec, MachineSpec
from vtax.paths import Paths
from vtax.planning.on_machines import described, refuse_one_machine_twice
from vtax.planning.study import parse
from vtax.running import machine_states
from vtax.running.sending import send_image

SPEC = EnvironmentSpec(name="host", provider="host")
# Answers "hello" and "time", and everything else with the text of its argument, as often as it is asked; a beat with
# every message. Without a text it sends beats and answers nothing.
AGENT = """
import json, sys, time
said = sys.argv[1]
for line in sys.stdin.buffer:
    asked = json.loads(line)
    sys.stdin.buffer.read(asked["bytes"] + (asked["bytes"] > 0))
    text = {"hello": '{"pid": 1}', "time": '{"time": %r}' % time.time()}.get(asked.get("ask"), said)
    while not text:
        print('{"beat": true, "bytes": 0}', flush=True)
        time.sleep(0.05)
    if "beat" not in asked:
        print('{"beat": true, "bytes": 0}\\n{"answer": ' + text + ', "bytes": 0}', flush=True)
"""


class Way(Connection):
    """To this machine. `said` is the text of every answer; `scripts` is what shell scripts print, "" is theirs; the
    agent is `program`. `before` is what each command is given to."""

    def __init__(
        self, place: Path, said: str, scripts: str = "", program: str = AGENT, before: Sequence[str] = ()
    ) -> None:
        super().__init__("a", MachineSpec(ssh="node17", directory=str(place)))
        self.scripts, self.before, self.program = scripts, before, f"import sys\nsys.argv[1] = {said!r}\n{program}"
        (place / "agent" / parcel.digest()).mkdir(parents=True, exist_ok=True)  # it was sent already

    def __str__(self) -> str:
        return "machine a (node17)"

    def connect(self) -> None: ...

    def close(self) -> None: ...

    @property
    def connected(self) -> bool:
        return True

    def command(self, argv: Sequence[str], *, terminal: bool = False) -> tuple[str, ...]:
        if self.scripts:
            return "printf", "%s", self.scripts
        return *self.before, *(self.program if word == machine_agent.START else word for word in argv)


def started(place: Path, said: str) -> Agent:
    made = Agent(Way(place, said))
    made.start()
    return made


def facts(agent: Agent) -> None:
    refuse_one_machine_twice({**described({"a": agent})[0], "b": {"machine_id": "1"}})


def shape() -> ClusterShape:
    return ClusterShape(nodes=())


def checked(agent: Agent) -> None:
    RemoteProvider.check(remote(agent), SPEC, shape(), HostCapacity(cpu_ids=(), memory_bytes=0))


def remote(agent: Agent) -> RemoteProvider:
    """A provider on a machine that described itself well."""
    made = RemoteProvider.__new__(RemoteProvider)
    made.agent, made.kernel, made.shared_path, made.planned = agent, "", "/shared", ()
    made.name = "host"
    return made


def spread(agent: Agent) -> SpreadProvider:
    made = SpreadProvider.__new__(SpreadProvider)
    made.agents, made.machines, made.on = {"a": agent}, {"a": MachineSpec(ssh="node17")}, {}
    return made


ASKS: dict[str, Callable[[Agent], object]] = {
    "facts": facts,
    "describe": lambda agent: RemoteProvider(agent, SPEC),
    "check": checked,
    "image": lambda agent: send_image(agent, IMAGE),
    "ticks": lambda agent: spread(agent).machine_ticks(),
    "facts of a part": lambda agent: spread(agent).machine_facts(),
}
ODD = (
    *("null", "5", '"x"', "true", "[]", "{}", "[[]]", "[[1], 2]", '{"facts": 5, "capacity": 5}', '{"there": 0}'),
    *('{"facts": {"machine_id": [], "boot_id": {}}, "capacity": {"cpu_ids": "x"}}', '{"ticks": "x"}', '{"user": "x"}'),
    *('{"commands": 5, "problems": 5}', '{"commands": [[5]], "problems": ["x"]}', '{"provider": [], "launcher": 5}'),
    *('{"provider": "host", "launcher": {"program": "mpirun", "settings": 5}}', '{"there": false, "directory": 5}'),
)


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("answer", ODD)
def test_an_answer_that_makes_no_sense_is_the_machine_s_fault(name: str, answer: str, tmp_path: Path) -> None:
    """It is refused, or it is taken for what it may be; it is never an error of vtax."""
    agent = started(tmp_path, answer)
    try:
        ASKS[name](agent)
    except VtaxError as error:
        assert isinstance(error, EnvironmentMissing), error  # exit code 3
    finally:
        agent.close()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
def test_what_is_no_number_is_no_message(number: str, tmp_path: Path) -> None:
    """It would be in a file of the campaign, which could not be read again."""
    agent = started(tmp_path, f'{{"facts": {{"load": {number}}}}}')
    with pytest.raises(MachineLost, match="what was heard is not a message"):
        described({"a": agent})


def study() -> Any:
    text = 'name = "x"\nseed = 1\nrounds = 1\nbaseline = "host"\n[environments.host]\nprovider = "host"\n'
    text += '[[benchmarks]]\nname = "sysbench-cpu"\n[machines.a]\nssh = "node17"\n'
    return parse(text, "study.toml")


@pytest.mark.parametrize("answer", ODD)
def test_what_is_left_behind_there_is_listed_or_refused(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_states, "way", lambda *_: Way(tmp_path, answer))
    for check in (True, False):
        (one,) = machine_states.clean_machines(study(), Paths(tmp_path, tmp_path), check=check, everything=False)
        assert one.reason or all(len(item) == 5 for item in one.found)
    (state,) = machine_states.diagnose_machines(study(), Paths(tmp_path, tmp_path), lambda _: None)
    assert not state.works and "makes no sense" in state.reason


def test_a_machine_that_is_there_and_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends beats, so that it is not silent: what is asked has a time limit of its own."""
    monkeypatch.setattr(machine_agent, "ANSWER_S", 0.5)
    monkeypatch.setattr(machine_states, "way", lambda *_: Way(tmp_path, ""))
    began = time.monotonic()
    (one,) = machine_states.clean_machines(study(), Paths(tmp_path, tmp_path), check=True, everything=False)
    assert "the connection to machine a (node17) was lost: it is there, and does not answer" in one.reason
    assert time.monotonic() - began < 20


def test_the_first_start_of_an_agent_may_take_longer_than_it_may_be_silent_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_agent, "LEASE_S", 0.5)
    slow = "import time\ntime.sleep(1)" + AGENT.replace("0.05", "60")  # late, and silent when it is asked for a fact
    agent = Agent(Way(tmp_path, "", program=slow))
    agent.start()
    with pytest.raises(MachineLost, match=r"nothing was heard for 0\.5 s"):
        agent.ask("fact")
    agent.close()


def test_a_question_is_not_waited_for_after_an_agent_that_made_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that does not end when its connection is closed."""
    monkeypatch.setattr(machine_agent, "AT_ONCE_S", 0.3)
    stubborn = "import time\n" + AGENT + "\ntime.sleep(1000)\n"
    agent = Agent(Way(tmp_path, "[]", program=stubborn))
    agent.start()
    assert list(agent.ask("leftovers").content) == []
    began = time.monotonic()
    agent.close()
    assert time.monotonic() - began < 20 < machine_agent.END_S


@pytest.mark.parametrize("said", ["free=many\ndirectory=/srv\n", "kernel=\nfree=-1\ndirectory=/srv\npython=x\n", "\n"])
def test_what_a_machine_says_of_itself_may_be_anything(said: str, tmp_path: Path) -> None:
    fit = f"system=Linux\narchitecture={parcel.ARCHITECTURE}\npython={parcel.PYTHON}\nkernel=6.1\n"
    with pytest.raises(EnvironmentMissing):
        Agent(Way(tmp_path, "[]", scripts=fit + said + machine_agent.READY.decode())).start()


def test_a_machine_on_which_no_command_runs(tmp_path: Path) -> None:
    """What was said instead is shown."""
    way = Way(tmp_path, "[]", before=("sh", "-c", "echo welcome; echo no shell for you >&2; exit 7"))
    with pytest.raises(EnvironmentMissing, match=r"machine a \(node17\): no command runs there") as raised:
        Agent(way).start()
    assert raised.value.detail == "no shell for you"


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    way = Way(tmp_path, "[]")
    way.spec = MachineSpec(ssh="node17", directory=str(tmp_path / "file" / "place"))
    with pytest.raises(EnvironmentMissing, match="vtax's directory there cannot be used") as raised:
        Agent(way).start()
    assert "file" in raised.value.detail and "directory" in raised.value.remedy


def test_what_a_login_prints_is_no_obstacle(tmp_path: Path) -> None:
    agent = Agent(Way(tmp_path, "[]", before=("sh", "-c", 'echo "a = welcome"; exec "$@"', "sh")))
    agent.start()
    assert agent.ask("hello").content == {"pid": 1}
    agent.close()


@pytest.mark.parametrize("said", ["many", "-5", "1" * 5000, "²"])
def test_how_much_of_a_file_is_there_may_be_anything(said: str, tmp_path: Path) -> None:
    """All of it is sent then."""
    (tmp_path / "file").write_text("x")
    way = Way(tmp_path, "[]", scripts=said)
    way.put(tmp_path / "file", "/srv/file")


# The real agent, whose first signal to itself comes when its main thread is about to wait: as if it had not come.
LATE = """
import os, signal, sys
from vtax.running import agent
kill, missed = os.kill, []
def late(process, number):
    missed.append(number) if not missed else kill(process, number)
os.kill = late
agent.main(sys.argv[1])
"""


def test_an_agent_ends_when_its_connection_does_though_a_signal_is_missed(tmp_path: Path) -> None:
    running = subprocess.Popen(
        (sys.executable, "-c", LATE, str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said, _ = running.communicate(json.dumps({"ask": "hello", "id": 1, "with": {}, "bytes": 0}).encode() + b"\n", 30)
    assert b'"answer"' in said
    assert running.returncode == 1  # "the agent ends"
