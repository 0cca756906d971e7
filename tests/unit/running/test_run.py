"""One trial: what it leaves on disk, and how it ends when something goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from builders.recorded import DATA, parse
from fakes.cluster import COUNTERS, EXPIRED, FakeProvider, Reply, Script, node_shape, ran
from vtax.errors import CommandError, EnvironmentMissing
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope, Target
from vtax.model.plan import Cell, InputFile, Load, PlannedTrial, Step, Work
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import Status, TrialRecord
from vtax.providers.base import Site
from vtax.running.steps import READY_S
from vtax.running.trial import not_run, run_trial
from vtax.tools.ping.benchmark import Ping, PingParams
from vtax.transport.visit import FETCH

SHAPE = ClusterShape(nodes=(node_shape("master", (4,)), node_shape("worker1", (0, 1)), node_shape("worker2", (2, 3))))
TRIAL = PlannedTrial(id="r001-box/tool.worker1.1", work="tool.worker1", iteration=1, warmup=False)
CELL = Cell(id="r001-box", round=1, environment="box", trials=(TRIAL,))
DIRECTORY = "/scratch/tool.worker1"


def step(*argv: str, nodes: tuple[str, ...] = ("worker1",), **more: Any) -> Step:
    return Step(nodes=nodes, argv=argv, timeout_s=10, **more)


def work(*steps: Step, scope: Scope = Scope.NODE, nodes: tuple[str, ...] = ("worker1",)) -> Work:
    return Work(
        id="tool.worker1",
        environment="box",
        benchmark="tool",
        label="tool",
        target=Target(scope=scope, nodes=tuple(SHAPE.node(name) for name in nodes), directory=DIRECTORY),
        params={"n": 3},
        steps=steps,
        estimate_s=1,
    )


class Bench:
    """A cluster on which trials run into `place`."""

    def __init__(self, top: Path, script: Script | None = None, separate_nodes: bool = True) -> None:
        self.place = top / "trial"
        self.place.mkdir()
        self.provider = FakeProvider("fake", top, separate_nodes, script=script)
        image = Image(recipe="k", digest="d", directory="/", archive="/a")
        spec = EnvironmentSpec(name="box", provider="fake")
        self.cluster = self.provider.create(spec, SHAPE, "/shared", Site("c1", top / "site", image, top / "keys"))

    def run(self, todo: Work) -> TrialRecord:
        return run_trial(self.cluster, CELL, TRIAL, todo, self.place)

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.place.iterdir() if path.name != "record.json"}


def replying(**replies: Reply) -> Script:
    """What programs answer, by their name."""
    return lambda node, argv, stdin: replies.get(argv[0])


# --- what is on disk -----------------------------------------------------------------------------------------------


def test_what_a_tool_printed_is_on_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(tool=(0, "3 things\n", "a warning\n")))
    record = bench.run(work(step("prepare"), step("tool", "--n=3")))
    assert (record.status, record.failure) == (Status.OK, "")
    assert [(done.step, done.node, done.argv, done.exit_code) for done in record.steps] == [
        (0, "worker1", ("prepare",), 0),
        (1, "worker1", ("tool", "--n=3"), 0),
    ]
    assert bench.files() == {
        "0.worker1.stdout": "",
        "0.worker1.stderr": "",
        "1.worker1.stdout": "3 things\n",
        "1.worker1.stderr": "a warning\n",
    }
    assert [record.steps[1].stdout, record.steps[1].stderr] == ["1.worker1.stdout", "1.worker1.stderr"]
    (call,) = ran(bench.provider.calls, "tool")
    assert (call.node, call.directory, call.timeout_s) == ("worker1", DIRECTORY, 10)


def test_the_record_on_disk_is_the_one_that_is_returned(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    record = bench.run(work(step("tool")))
    assert TrialRecord.model_validate_json((bench.place / "record.json").read_bytes()) == record
    assert (record.id, record.cell, record.round, record.environment) == (TRIAL.id, "r001-box", 1, "box")
    assert (record.work, record.benchmark, record.scope, record.nodes) == (
        "tool.worker1",
        "tool",
        Scope.NODE,
        ("worker1",),
    )
    assert (record.params, record.iteration, record.warmup) == ({"n": 3}, 1, False)
    assert record.elapsed_s >= 0


def test_the_record_is_written_last(tmp_path: Path) -> None:
    """A trial without `record.json` is no trial; so it must not be there before the output is."""
    there: list[bool] = []

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        there.append((bench.place / "record.json").exists())
        return None

    bench = Bench(tmp_path, script)
    bench.run(work(step("tool", outputs=("result",))))
    assert len(there) >= 4  # counters, tool, its file, counters
    assert not any(there)


def test_a_trial_that_did_not_run(tmp_path: Path) -> None:
    record = not_run(CELL, TRIAL, work(step("tool")), "no cluster: it rained", tmp_path, "5" * 64)
    assert record.plan_sha256 == "5" * 64
    assert (record.status, record.failure, record.steps) == (Status.NOT_RUN, "no cluster: it rained", ())
    assert (record.id, record.elapsed_s, record.counters) == (TRIAL.id, 0, {})
    assert record.started > 0
    assert TrialRecord.model_validate_json((tmp_path / "record.json").read_bytes()) == record


# --- several nodes -------------------------------------------------------------------------------------------------


def test_nodes_run_a_step_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other, so one after the other would never end."""
    together = threading.Barrier(2, timeout=5)

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] != "tool":
            return None
        together.wait()
        return 0, f"on {node}\n", ""

    bench = Bench(tmp_path, script)
    both = ("worker1", "worker2")
    record = bench.run(work(step("tool", nodes=both), scope=Scope.WORKERS, nodes=both))
    assert record.status is Status.OK
    assert [done.node for done in record.steps] == list(both)
    assert bench.files()["0.worker1.stdout"] == "on worker1\n"
    assert bench.files()["0.worker2.stdout"] == "on worker2\n"


def test_one_of_several_nodes_fails(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (3, "", "no memory\n") if argv[0] == "tool" and node == "worker2" else None

    bench = Bench(tmp_path, script)
    both = ("worker1", "worker2")
    record = bench.run(work(step("tool", nodes=both), step("after", nodes=both), scope=Scope.WORKERS, nodes=both))
    assert record.status is Status.FAILED
    assert record.failure == "tool on worker2 ended with exit code 3\nno memory"
    assert [(done.node, done.exit_code) for done in record.steps] == [("worker1", 0), ("worker2", 3)]
    assert not ran(bench.provider.calls, "after")


@pytest.mark.parametrize(
    ("scope", "nodes", "where"),
    [
        (Scope.WORKERS, ("worker1", "worker2"), "workers"),
        (Scope.CLUSTER, ("master", "worker1", "worker2"), "cluster"),
        (Scope.NODE, ("worker1",), "worker1"),
    ],
)
def test_a_parallel_program_on_one_machine_may_use_all_its_nodes(
    tmp_path: Path, scope: Scope, nodes: tuple[str, ...], where: str
) -> None:
    bench = Bench(tmp_path, separate_nodes=False)
    files = (InputFile(name="in", content="1\n"),)
    todo = work(step("mpirun", nodes=nodes[:1], inputs=files, outputs=("out",)), scope=scope, nodes=nodes)
    record = bench.run(todo)
    assert {call.node for call in bench.provider.calls if "section levels" not in call.stdin} == {where}
    assert record.steps[0].node == nodes[0]  # the record speaks of nodes, not of how they are reached


def test_nodes_of_one_machine_that_run_the_same_command_stay_on_their_own_cpus(tmp_path: Path) -> None:
    bench = Bench(tmp_path, separate_nodes=False)
    both = ("worker1", "worker2")
    bench.run(work(step("tool", nodes=both), scope=Scope.WORKERS, nodes=both))
    assert sorted(call.node for call in ran(bench.provider.calls, "tool")) == ["worker1", "worker2"]


# --- files ---------------------------------------------------------------------------------------------------------


def test_inputs_are_there_before_the_step(tmp_path: Path) -> None:
    content = "it's $HOME\n'vtax-end-of-file'\nand no line end"
    bench = Bench(tmp_path)
    files = (InputFile(name="in.txt", content=content), InputFile(name="empty", content=""))
    bench.run(work(step("tool", nodes=("worker1", "worker2"), inputs=files)))
    for node in ("worker1", "worker2"):
        mine = [call for call in bench.provider.calls if call.node == node]
        (put,) = (call for call in mine if ">in.txt" in call.stdin)
        (tool,) = (call for call in mine if call.argv == ("tool",))
        assert mine.index(put) < mine.index(tool)
        assert put.directory == DIRECTORY
        assert put.stdin.splitlines()[0] == "set -e"  # or a file that cannot be written would pass
        assert "printf %s 'it'\"'\"'s $HOME\n'\"'\"'vtax-end-of-file'\"'\"'\nand no line end' >in.txt\n" in put.stdin
        assert put.stdin.endswith("printf %s '' >empty\n")


def test_inputs_that_cannot_be_written(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (2, "", "sh: No space left on device\n") if ">in.txt" in stdin else None

    bench = Bench(tmp_path, script)
    record = bench.run(work(step("tool", inputs=(InputFile(name="in.txt", content="1\n"),))))
    assert (record.status, record.steps) == (Status.FAILED, ())
    assert record.failure == "worker1: the files of the trial cannot be written\n  sh: No space left on device"
    assert not ran(bench.provider.calls, "tool")


def test_output_files_are_fetched(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (0, "7 seconds\n", "") if argv == (*FETCH, "out/a b.txt") else None

    bench = Bench(tmp_path, script)
    record = bench.run(work(step("tool", outputs=("out/a b.txt",))))
    assert record.steps[0].outputs == {"out/a b.txt": "0.worker1.out%2Fa%20b.txt"}
    assert bench.files()["0.worker1.out%2Fa%20b.txt"] == "7 seconds\n"
    (fetch,) = ran(bench.provider.calls, FETCH[0])
    assert (fetch.node, fetch.directory) == ("worker1", DIRECTORY)


def test_no_two_output_files_share_a_name(tmp_path: Path) -> None:
    names = ("a/b", "a_b", "a b", "a%2Fb", "stdout", "stderr", "%stdout", "é")

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (0, f"of {argv[2]}", "") if argv[0] == FETCH[0] else (0, "printed", "warned")

    bench = Bench(tmp_path, script)
    done = bench.run(work(step("tool", outputs=names))).steps[0]
    assert {name: bench.files()[file] for name, file in done.outputs.items()} == {name: f"of {name}" for name in names}
    assert (bench.files()[done.stdout], bench.files()[done.stderr]) == ("printed", "warned")


def test_an_output_file_that_is_not_there_is_absent(tmp_path: Path) -> None:
    """The parser says so; the trial itself ended well."""
    bench = Bench(tmp_path, replying(**{FETCH[0]: (3, "", "")}))
    record = bench.run(work(step("tool", outputs=("result",))))
    assert (record.status, record.steps[0].outputs) == (Status.OK, {})
    assert set(bench.files()) == {"0.worker1.stdout", "0.worker1.stderr"}


def test_an_output_file_of_an_earlier_trial_is_gone_before_the_step(tmp_path: Path) -> None:
    """hpcc appends to its output file, and trials of the same work share their directory."""
    bench = Bench(tmp_path)
    bench.run(work(step("tool", outputs=("hpccoutf.txt", "a b"))))
    commands = [(call.argv, call.stdin) for call in bench.provider.calls]
    removal = commands.index((("sh", "-s"), "rm -f -- hpccoutf.txt 'a b'\n"))
    assert removal < commands.index((("tool",), ""))


def test_output_files_of_a_step_that_failed_are_kept_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(**{"tool": (1, "", ""), FETCH[0]: (0, "half of it", "")}))
    record = bench.run(work(step("tool", outputs=("result",))))
    assert record.status is Status.FAILED
    assert bench.files()[record.steps[0].outputs["result"]] == "half of it"


# --- how it ends ---------------------------------------------------------------------------------------------------


def test_a_step_that_fails_ends_the_trial(tmp_path: Path) -> None:
    log = "".join(f"line {number}\n\n" for number in range(1, 31))
    bench = Bench(tmp_path, replying(tool=(7, "what it printed", log)))
    record = bench.run(work(step("tool"), step("after")))
    assert record.status is Status.FAILED
    assert record.failure.splitlines() == [
        "tool on worker1 ended with exit code 7",
        *(f"line {number}" for number in range(19, 31)),
    ]
    assert bench.files()["0.worker1.stderr"] == log
    assert not ran(bench.provider.calls, "after")


def test_without_an_error_log_the_output_is_quoted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(tool=(1, f"FATAL: {'x' * 400}\n", " \n")))
    failure = bench.run(work(step("tool"))).failure
    assert failure == f"tool on worker1 ended with exit code 1\nFATAL: {'x' * 293}"


def test_a_step_that_says_nothing_when_it_fails(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(tool=(-9, "", "")))
    assert bench.run(work(step("tool"))).failure == "tool on worker1 ended with exit code -9"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ((1, "0 of 5 came back\n", ""), Status.OK),
        ((1, "", "0 of 5 came back\n"), Status.FAILED),
        ((1, "unknown host\n", ""), Status.FAILED),
        ((2, "0 of 5 came back\n", ""), Status.FAILED),
    ],
)
def test_an_exit_code_may_tell_a_result(tmp_path: Path, reply: Reply, status: Status) -> None:
    bench = Bench(tmp_path, replying(tool=reply))
    record = bench.run(work(step("tool", results={1: "^0 of 5"}), step("after")))
    assert (record.status, record.steps[0].exit_code) == (status, reply[0])
    assert bool(ran(bench.provider.calls, "after")) is (status is Status.OK)


SILENCE = DATA / "ping" / "iputils-20240905--trixie-silence"


def test_a_peer_that_never_answers_is_measured(tmp_path: Path) -> None:
    """Both commands of ping end with exit code 1 then, and their closing lines say that every packet was lost."""
    replies = {
        count: (SILENCE / name).read_text() for count, name in ((1, "0-worker1.stdout"), (20, "1-worker1.stdout"))
    }
    record = ping_trial(tmp_path, lambda count: (1, replies[count], ""))
    assert (record.status, [done.exit_code for done in record.steps]) == (Status.OK, [1, 1])
    text = record.model_copy(update={"benchmark": "ping", "texts": {record.steps[-1].stdout: replies[20]}})
    assert [(one.metric, one.value) for one in parse(text)] == [("lost_fraction", 1.0)]


def test_ping_without_closing_lines_has_failed(tmp_path: Path) -> None:
    """An address to which there is no way: exit code 2, or 1 in other versions, and nothing was sent."""
    for number, code in enumerate((1, 2)):
        (tmp_path / f"{number}").mkdir()
        reply: Reply = (code, "", "ping: Invalid argument\n")
        record = ping_trial(tmp_path / f"{number}", partial(lambda given, _: given, reply))
        assert (record.status, len(record.steps)) == (Status.FAILED, 1)


def ping_trial(top: Path, reply: Callable[[int], Reply]) -> TrialRecord:
    """A trial of 20 packets; `reply` is what ping answers to a number of packets."""
    target = Target(scope=Scope.PAIRS, nodes=(SHAPE.node("worker1"), SHAPE.node("worker2")), directory=DIRECTORY)
    steps = Ping().steps(PingParams(count=20), target, Mpirun(interface="eth0"))

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return reply(int(argv[argv.index("-c") + 1])) if argv[0] == "ping" else None

    return Bench(top, script).run(work(*steps, scope=Scope.PAIRS, nodes=("worker1", "worker2")))


def test_a_step_that_takes_too_long(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(tool=(EXPIRED, "still at it\n", "")))
    record = bench.run(work(step("tool"), step("after")))
    assert record.status is Status.TIMED_OUT
    assert record.failure == "tool on worker1 was stopped after 1 s\nstill at it"  # 1.25 s, as all fake commands
    assert (record.steps[0].timed_out, len(record.steps)) == (True, 1)


@pytest.mark.parametrize("error", [CommandError("the line is dead"), EnvironmentMissing("ssh is gone")])
def test_a_node_that_cannot_be_reached(tmp_path: Path, error: Exception) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "tool":
            raise error
        return None

    bench = Bench(tmp_path, script)
    record = bench.run(work(step("prepare"), step("tool")))
    assert (record.status, record.failure) == (Status.FAILED, str(error))
    assert [done.argv for done in record.steps] == [("prepare",)]  # what was done is kept
    assert (bench.place / "record.json").exists()


def test_an_interrupt_is_no_record(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "client":
            raise KeyboardInterrupt
        return None

    bench = Bench(tmp_path, script)
    with pytest.raises(KeyboardInterrupt):
        bench.run(work(step("server", background=True), step("client")))
    assert [running.stopped for running in bench.provider.backgrounds] == [1]
    assert not (bench.place / "record.json").exists()


# --- in the background ---------------------------------------------------------------------------------------------

SERVER = step("server", nodes=("worker2",), background=True, ready="Server listening on")
CLIENT = step("client")


def pair(*steps: Step) -> Work:
    return work(*steps, scope=Scope.PAIRS, nodes=("worker1", "worker2"))


def test_a_server_is_ready_before_its_client_and_stopped_after_it(tmp_path: Path) -> None:
    stopped: list[int] = []

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "client":
            stopped.extend(running.stopped for running in bench.provider.backgrounds)
        return (0, "Server listening on 5201\n", "") if argv[0] == "server" else None

    bench = Bench(tmp_path, script)
    record = bench.run(pair(SERVER, CLIENT))
    assert record.status is Status.OK
    assert stopped == [0]  # it stood there, still running, when the client began
    assert [running.stopped for running in bench.provider.backgrounds] == [1]
    assert [(done.step, done.node, done.background) for done in record.steps] == [
        (0, "worker2", True),
        (1, "worker1", False),
    ]
    assert bench.files()["0.worker2.stdout"] == "Server listening on 5201\n"
    (call,) = ran(bench.provider.calls, "server")
    assert (call.node, call.background, call.directory) == ("worker2", True, DIRECTORY)


def test_a_server_that_is_never_ready(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(server=(1, "", "bind: Address already in use\n")))
    record = bench.run(pair(SERVER, CLIENT))
    assert record.status is Status.FAILED
    assert record.failure == f"server on worker2 was not ready within {READY_S:g} s\nbind: Address already in use"
    assert [running.stopped for running in bench.provider.backgrounds] == [1]
    assert [(done.node, done.background, done.exit_code) for done in record.steps] == [("worker2", True, 1)]
    assert not ran(bench.provider.calls, "client")


def test_a_server_without_a_pattern_is_not_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    record = bench.run(pair(step("server", nodes=("worker2",), background=True), CLIENT))
    assert (record.status, len(record.steps)) == (Status.OK, 2)


def test_a_server_is_stopped_when_its_client_fails(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(server=(0, "Server listening on 5201\n", ""), client=(1, "", "refused\n")))
    record = bench.run(pair(SERVER, CLIENT))
    assert record.failure == "client on worker1 ended with exit code 1\nrefused"
    assert [running.stopped for running in bench.provider.backgrounds] == [1]
    assert [done.background for done in record.steps] == [True, False]


# --- under load ----------------------------------------------------------------------------------------------------

BESIDE = Load(
    id="noise.workers",
    benchmark="noise",
    target=Target(
        scope=Scope.PAIRS, nodes=(SHAPE.node("worker1"), SHAPE.node("worker2")), directory="/scratch/noise.pair"
    ),
    params={},
    steps=(SERVER, step("noise", inputs=(InputFile(name="in.txt", content="x"),))),
)


def test_a_load_runs_before_and_ends_after_what_it_disturbs(tmp_path: Path) -> None:
    seen: list[list[int]] = []

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "tool":
            seen.append([running.stopped for running in bench.provider.backgrounds])
        return (0, "Server listening on 5201\n", "") if argv[0] == "server" else None

    bench = Bench(tmp_path, script)
    record = bench.run(work(step("tool")).model_copy(update={"load": BESIDE}))
    assert (record.status, seen) == (Status.OK, [[0, 0]])
    assert [running.stopped for running in bench.provider.backgrounds] == [1, 1]
    assert [done.argv for done in record.steps] == [("tool",)]
    assert [(done.step, done.node, done.argv) for done in record.load] == [
        (0, "worker2", ("server",)),
        (1, "worker1", ("noise",)),
    ]
    assert {"load0.worker2.stdout", "load1.worker1.stdout", "0.worker1.stdout"} <= set(bench.files())
    assert {call.directory for call in ran(bench.provider.calls, "noise")} == {"/scratch/noise.pair"}


def test_a_load_that_is_over_too_early_is_a_failure(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[0] == "tool":
            bench.provider.backgrounds[1].over = True
        return (0, "Server listening on 5201\n", "") if argv[0] == "server" else None

    bench = Bench(tmp_path, script)
    record = bench.run(work(step("tool")).model_copy(update={"load": BESIDE}))
    assert record.status is Status.FAILED
    assert record.failure.startswith("the load ended before the benchmark; make it longer")


def test_without_its_load_nothing_is_measured(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replying(server=(1, "", "bind: Address already in use\n")))
    record = bench.run(work(step("tool")).model_copy(update={"load": BESIDE}))
    assert record.status is Status.FAILED
    assert record.failure.startswith("the load noise.workers: server on worker2 was not ready")
    assert not ran(bench.provider.calls, "tool")


# --- what may have disturbed it ------------------------------------------------------------------------------------


def test_counters_are_what_was_counted_meanwhile(tmp_path: Path) -> None:
    asked: dict[str, int] = {}

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if "section levels" not in stdin:
            return None
        asked[node] = asked.get(node, 0) + 1
        text = COUNTERS.replace("pswpin 0", f"pswpin {7 ** asked[node]}")
        return 0, text.replace("0.50 0.50", f"{asked[node]}.25 0.50"), ""

    bench = Bench(tmp_path, script)
    record = bench.run(pair(CLIENT))
    assert set(record.counters) == {"worker1", "worker2"}
    for counted in record.counters.values():
        assert counted["swap_in_pages"] == 49 - 7
        assert counted["swap_out_pages"] == 0
        assert counted["load1"] == 2.25  # as it is at the end: no difference of loads means anything


def test_counters_of_a_node_that_does_not_answer_are_absent(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (255, "", "") if "section levels" in stdin and node == "worker2" else None

    record = Bench(tmp_path, script).run(pair(CLIENT))
    assert (record.status, set(record.counters)) == (Status.OK, {"worker1"})


def test_counters_of_a_parallel_program_are_read_where_it_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, separate_nodes=False)
    both = ("worker1", "worker2")
    record = bench.run(work(step("mpirun"), scope=Scope.WORKERS, nodes=both))
    assert {call.node for call in bench.provider.calls} == {"workers"}
    assert set(record.counters) == {both[0]}
