"""Trials of own commands: their phases in order, services that behave or do not, what is left after a failure."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fakes.cluster import EXPIRED, Call, FakeProvider, FakeTransport, Reply, node_shape
from vtax.errors import DamagedError
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Phase, Scope, Target
from vtax.model.plan import Cell, InputFile, PlannedTrial, Ready, Service, Step, Work
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import Status, TrialRecord
from vtax.providers.base import Site
from vtax.running.trial import run_trial

SHAPE = ClusterShape(nodes=(node_shape("master", (4,)), node_shape("worker1", (0, 1))))
TRIAL = PlannedTrial(id="r001-box/it.worker1.1", work="it.worker1", iteration=1, warmup=False)
CELL = Cell(id="r001-box", round=1, environment="box", trials=(TRIAL,))
PORT, COUNTERS = "/proc/net/tcp", "section levels"


def own(*words: str) -> tuple[str, ...]:
    return ("vtax-supervise", "vtax-run", "--", *words)


def step(*words: str, phase: Phase = Phase.RUN, **more: Any) -> Step:
    return Step(nodes=("worker1",), argv=own(*words), timeout_s=10, phase=phase, **more)


def service(*words: str, ready: Ready | None = None, **more: Any) -> Step:
    return step(*words, background=True, service=Service(ready=ready, **more))


def work(*steps: Step) -> Work:
    target = Target(scope=Scope.NODE, nodes=(SHAPE.node("worker1"),), directory="/scratch/it.worker1")
    return Work(
        id="it.worker1",
        environment="box",
        benchmark="own",
        label="it",
        target=target,
        params={},
        steps=steps,
        estimate_s=1,
    )


SETUP, PREPARE, CLEANUP = (step(one.value, phase=one) for one in (Phase.SETUP, Phase.PREPARE, Phase.CLEANUP))
RUN = step("measure")
SERVER = service("serve", ready=Ready(port=5432, timeout_s=0.2), stop="SIGINT")


@dataclass
class Bench:
    """A node on which trials run, whose programs answer by their names; a port is open once `serve` was started."""

    top: Path
    replies: dict[str, Reply] = field(default_factory=dict)
    serves: bool = True
    taken: bool = False
    trials: int = 0
    done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.provider = FakeProvider("fake", self.top, script=self.answer)
        image = Image(recipe="k", digest="d", directory="/", archive="/a")
        spec = EnvironmentSpec(name="box", provider="fake")
        self.cluster = self.provider.create(spec, SHAPE, "/shared", Site("c1", self.top / "site", image, self.top))
        transport = self.cluster.node("worker1").transport
        assert isinstance(transport, FakeTransport)
        self.node = transport

    def answer(self, node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if PORT in stdin:
            return (0 if self.taken or (self.serves and self.provider.backgrounds) else 1), "", ""
        return self.replies.get(argv[argv.index("--") + 1]) if "--" in argv else None

    def run(self, todo: Work, kept: Callable[[str], bytes] = lambda name: name.encode()) -> TrialRecord:
        self.trials += 1
        self.place = self.top / f"trial{self.trials}"
        self.place.mkdir()
        self.provider.calls.clear()
        self.provider.backgrounds.clear()
        return run_trial(self.cluster, CELL, TRIAL, todo, self.place, done=self.done, kept=kept)

    def commands(self) -> list[str]:
        """The own commands in their order, and "counters" for what was counted around them."""
        return [name for call in self.provider.calls if (name := named(call))]


def named(call: Call) -> str:
    if COUNTERS in call.stdin:
        return "counters"
    return call.argv[call.argv.index("--") + 1] if "--" in call.argv and call.argv[0] == "vtax-supervise" else ""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


ALL = work(SETUP, SERVER, PREPARE, RUN, CLEANUP)


# --- phases --------------------------------------------------------------------------------------------------------


def test_only_the_run_is_between_the_counters(bench: Bench) -> None:
    record = bench.run(ALL)
    assert (record.status, record.failure) == (Status.OK, "")
    assert bench.commands() == ["setup", "serve", "prepare", "counters", "measure", "counters", "cleanup"]
    assert [(done.step, done.phase, done.background) for done in record.steps] == [
        (0, Phase.SETUP, False),
        (1, Phase.RUN, True),
        (2, Phase.PREPARE, False),
        (3, Phase.RUN, False),
        (4, Phase.CLEANUP, False),
    ]
    (running,) = bench.provider.backgrounds
    assert running.signals == [signal.SIGINT]


def test_setup_is_done_once_for_a_cluster(bench: Bench) -> None:
    bench.run(ALL)
    bench.run(ALL)
    assert "setup" not in bench.commands()
    bench.done.clear()  # as a new cluster
    bench.run(ALL)
    assert bench.commands()[0] == "setup"


def test_a_failed_setup_discards_the_directory_and_is_tried_again(bench: Bench) -> None:
    bench.replies["setup"] = (1, "", "no space\n")
    record = bench.run(ALL)
    assert record.status is Status.FAILED
    assert record.failure == "setup: setup on worker1 ended with exit code 1\nno space"
    assert bench.commands() == ["setup", "cleanup"]
    (discarded,) = [call for call in bench.provider.calls if ".failed" in call.stdin]
    assert (discarded.argv, discarded.directory) == (("sh", "-s", "/scratch/it.worker1"), "/")
    del bench.replies["setup"]
    assert bench.run(ALL).status is Status.OK
    assert bench.commands()[0] == "setup"


@pytest.mark.parametrize("name", ["prepare", "measure"])
def test_after_a_failure_services_are_stopped_and_cleanup_runs(bench: Bench, name: str) -> None:
    bench.replies[name] = (3, "", "it broke\n")
    record = bench.run(ALL)
    assert record.status is Status.FAILED
    assert f"{name} on worker1 ended with exit code 3\nit broke" in record.failure
    assert bench.provider.backgrounds[0].stopped == 1
    assert bench.commands()[-1] == "cleanup"


def test_why_a_command_did_not_start_is_on_the_first_line(bench: Bench) -> None:
    """Which is all that progress and summaries show."""
    bench.replies["measure"] = (127, "", "vtax-run: measure: not found\n")
    first, *rest = bench.run(work(RUN)).failure.splitlines()
    assert first == "measure on worker1 ended with exit code 127 (measure: not found)"
    assert rest == ["vtax-run: measure: not found"]


def test_a_failed_cleanup_is_a_failure_but_never_hides_another(bench: Bench) -> None:
    bench.replies["cleanup"] = (1, "", "")
    assert bench.run(ALL).failure == "cleanup: cleanup on worker1 ended with exit code 1"
    bench.replies["measure"] = (2, "", "")
    assert bench.run(ALL).failure == "measure on worker1 ended with exit code 2"


def test_an_interrupt_stops_the_services(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fakes.cluster.FakeVisit.run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.run(work(SERVER, RUN))
    assert bench.provider.backgrounds[0].stopped == 1


def test_exit_codes_of_the_study_and_a_run_that_takes_too_long(bench: Bench) -> None:
    bench.replies["measure"] = (3, "", "")
    assert bench.run(work(step("measure", success=(0, 3)))).status is Status.OK
    assert bench.run(work(step("measure", success=(0,)))).status is Status.FAILED
    bench.replies["measure"] = (0, "", "")
    assert bench.run(work(step("measure", success=(1,)))).status is Status.FAILED
    bench.replies["measure"] = (EXPIRED, "", "")
    assert bench.run(work(RUN)).status is Status.TIMED_OUT


def test_what_was_left_running_is_recorded(bench: Bench) -> None:
    bench.replies["measure"] = (0, "", "one\n\nvtax-supervise: ended what was still running: sleep, sh\n")
    (done,) = bench.run(work(RUN)).steps
    assert done.left == ("sleep", "sh")
    bench.replies["measure"] = (0, "", "vtax-supervise: ended what was still running: x\nbut more was printed\n")
    assert bench.run(work(RUN)).steps[0].left == ()


# --- services ------------------------------------------------------------------------------------------------------


def test_services_stop_in_the_reverse_order(bench: Bench) -> None:
    record = bench.run(work(service("one"), service("two"), RUN))
    assert [done.argv[-1] for done in record.steps] == ["one", "two", "measure"]
    assert record.status is Status.OK


def test_a_port_that_is_taken_is_reported_before_the_service_starts(bench: Bench) -> None:
    bench.taken = True
    record = bench.run(ALL)
    assert "port 5432 is taken by another program" in record.failure
    assert bench.provider.backgrounds == []
    assert "measure" not in bench.commands()


def test_a_service_that_never_becomes_ready(bench: Bench) -> None:
    bench.serves = False
    bench.replies["serve"] = (0, "", "waiting for godot\n")
    record = bench.run(ALL)
    assert record.failure.startswith("serve on worker1 was not ready within 0.2 s: nothing listens on port 5432")
    assert "waiting for godot" in record.failure
    assert bench.commands()[-1] == "cleanup"


def test_a_service_that_ends_before_it_is_ready(bench: Bench) -> None:
    bench.serves = False
    bench.node.dying.add("serve")
    bench.replies["serve"] = (1, "", "bad option\n")
    record = bench.run(ALL)
    assert record.failure.startswith("serve on worker1 ended while it was needed, with exit code 1\nbad option")
    assert "ended before it was ready: nothing listens on port 5432" in record.failure


def test_a_service_that_dies_halfway_is_named_first(bench: Bench) -> None:
    bench.node.dying.add("serve")
    bench.replies |= {"serve": (139, "", "segmentation fault\n"), "measure": (1, "", "connection lost\n")}
    record = bench.run(ALL)
    first, _, rest = record.failure.partition("\nsegmentation fault\n")
    assert first == "serve on worker1 ended while it was needed, with exit code 139"
    assert rest == "measure on worker1 was ended: serve on worker1 has ended\nconnection lost"
    assert record.status is Status.FAILED


def test_a_service_may_end_by_itself_with_a_code_of_the_study(bench: Bench) -> None:
    bench.node.dying.add("once")
    bench.replies["once"] = (0, "", "")
    assert bench.run(work(service("once", exits=(0,)), RUN)).status is Status.OK
    assert bench.run(work(service("once"), RUN)).status is Status.FAILED


def test_a_service_that_may_end_but_crashes_ends_the_run_at_once(bench: Bench) -> None:
    bench.node.dying.add("once")
    bench.replies["once"] = (139, "", "segmentation fault\n")
    record = bench.run(work(service("once", exits=(0, 3)), RUN))
    assert record.failure.startswith(
        "once on worker1 ended while it was needed, with exit code 139\nsegmentation fault"
    )
    assert "measure on worker1 was ended: once on worker1 has ended" in record.failure


def test_the_next_service_is_not_waited_for_when_one_has_died(bench: Bench) -> None:
    bench.node.dying.add("first")
    bench.replies["first"] = (1, "", "bad option\n")
    endless = service("second", ready=Ready(line="never", timeout_s=1000))
    record = bench.run(work(service("first"), endless, RUN))
    assert record.failure.startswith("first on worker1 ended while it was needed, with exit code 1\nbad option")
    assert "second on worker1 is not waited for any longer: first on worker1 has ended" in record.failure
    assert "measure" not in bench.commands()


@pytest.mark.parametrize(
    ("code", "exits", "good"),
    [
        (0, None, True),
        (130, None, True),  # death by SIGINT, which stops it
        (1, None, False),
        (143, None, False),
        (1, (1,), True),
        (0, (1,), False),
    ],
)
def test_how_a_service_may_end(bench: Bench, code: int, exits: Sequence[int] | None, *, good: bool) -> None:
    bench.replies["serve"] = (code, "", "")
    record = bench.run(work(service("serve", stop="SIGINT", exits=exits), RUN))
    assert record.failure == ("" if good else f"serve on worker1 ended with exit code {code} when it was stopped")


def test_a_service_that_ignores_its_signal_is_killed_which_is_a_failure_unless_the_study_allows_it(
    bench: Bench,
) -> None:
    bench.node.stubborn.add("serve")
    record = bench.run(work(service("serve", stop_s=0.1), RUN))
    assert record.failure == "serve on worker1 ignored SIGTERM for 0.1 s and was killed"
    assert bench.run(work(service("serve", exits=(0, 137)), RUN)).status is Status.OK


def test_ready_by_a_line_on_either_output(bench: Bench) -> None:
    for reply in ((0, "", "now accepting connections\n"), (0, "now accepting connections\n", "")):
        bench.replies["serve"] = reply
        assert bench.run(work(service("serve", ready=Ready(line="^now accepting .*s$")), RUN)).status is Status.OK
    bench.replies["serve"] = (0, "starting\n", "")
    record = bench.run(work(service("serve", ready=Ready(line="accepting", timeout_s=0.1)), RUN))
    assert "not ready within 0.1 s: no line of its output matches 'accepting'\nstarting" in record.failure


def test_ready_by_a_command(bench: Bench) -> None:
    asked = Ready(command=own("pg_isready"), timeout_s=0.1)
    assert bench.run(work(service("serve", ready=asked), RUN)).status is Status.OK
    bench.replies["pg_isready"] = (2, "", "no response\n")
    record = bench.run(work(service("serve", ready=asked), RUN))
    assert "its `ready` command ended with exit code 2, saying 'no response'" in record.failure


# --- files ---------------------------------------------------------------------------------------------------------


def test_files_of_the_study_are_carried_to_the_node(bench: Bench) -> None:
    placing = step("chmod", phase=Phase.SETUP, inputs=(InputFile(name="conf/my.cnf", sha256="abc"),))
    bench.run(work(placing, RUN), kept={"abc": b"[mysqld]\n"}.__getitem__)
    (carried,) = [call for call in bench.provider.calls if call.argv[-1] == "./conf/my.cnf"]
    assert (carried.stdin, carried.directory) == ("[mysqld]\n", "/scratch/it.worker1")


def test_a_kept_file_that_was_changed_stops_the_campaign(bench: Bench) -> None:
    def damaged(_: str) -> bytes:
        raise DamagedError("files/abc was changed")

    with pytest.raises(DamagedError):
        bench.run(work(step("a", inputs=(InputFile(name="a", sha256="abc"),))), kept=damaged)


def test_old_outputs_are_removed_and_new_ones_fetched(bench: Bench) -> None:
    todo = work(step("measure", outputs=("result.json",), usage="usage.json"))
    (done,) = bench.run(todo).steps
    (removed,) = [call for call in bench.provider.calls if "rm -f --" in call.stdin]
    assert "rm -f -- result.json usage.json" in removed.stdin
    assert dict(done.outputs) == {"result.json": "0.worker1.result.json", "usage.json": "0.worker1.usage.json"}
