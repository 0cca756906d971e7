"""What every benchmark keeps, whatever its tool: one contract over the registry, on equal and unequal nodes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.recorded import case_id, cases, load, parse, with_text
from fakes.cluster import node_shape
from vtax.errors import ParseError
from vtax.image.recipe import programs
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.nodes import ClusterShape, Scope, Target
from vtax.model.plan import Step
from vtax.model.study import BenchmarkSpec
from vtax.model.trial import Status, StepRecord, TrialRecord
from vtax.planning.plan import targets
from vtax.tools import benchmarks
from vtax.tools.benchmark import Benchmark

GIB = 2**30
UNITS = {"flop/s", "byte/s", "bit/s", "update/s", "1/s", "s", "byte", "1"}
HEADLINES = 2  # primary metrics: more would leave no claim standing after the correction
SHAPES = {
    "equal": ClusterShape(
        nodes=(node_shape("master", (4, 5)), node_shape("worker1", (0, 1)), node_shape("worker2", (2, 3)))
    ),
    "unequal": ClusterShape(
        nodes=(
            node_shape("master", (7,), GIB),
            node_shape("worker1", (0, 1, 2, 3), 4 * GIB),
            node_shape("worker2", (4, 5, 6), 2 * GIB),
        )
    ),
    "one worker with one CPU": ClusterShape(nodes=(node_shape("master", (1,)), node_shape("worker1", (0,)))),
}
OWN: Mapping[str, Any] = {"command": ["true"]}  # what has no command of its own cannot run without one
LAUNCHERS = (Mpirun(interface="eth0"), Mpirun(interface="lo", one_machine=True))


class Case(NamedTuple):
    """A benchmark on one set of nodes, with its own defaults."""

    benchmark: Benchmark
    target: Target
    shape: str

    def __str__(self) -> str:
        return f"{self.benchmark.name}-{self.target.label}-{self.shape}"


def _cases() -> Iterator[Case]:
    for name, benchmark in benchmarks().items():
        for title, shape in SHAPES.items():
            for scope in benchmark.scopes:
                spec = BenchmarkSpec(name=name, label=name, scopes=(scope,))
                for target in targets(spec, scope, shape, "/shared"):
                    yield Case(benchmark, target, title)


CASES = tuple(_cases())
GROUPS = {  # one test each: a test for every case would be most of the whole suite's time
    f"{name} on {title}": [case for case in CASES if (case.benchmark.name, case.shape) == (name, title)]
    for name in benchmarks()
    for title in SHAPES
}
on_every_target = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
of_every_benchmark = pytest.mark.parametrize("benchmark", benchmarks().values(), ids=lambda one: one.name)


def steps_of(case: Case, params: Any, launcher: Launcher) -> tuple[Step, ...]:
    return case.benchmark.steps(params, case.target, launcher)


def of_provisioning(case: Case) -> bool:
    """Whether it is about the cluster itself: then nothing runs, and nothing takes time."""
    return case.target.scope is Scope.PROVISIONING


def example(benchmark: Benchmark) -> Any:
    """Its parameters as a study has them that says as little as possible."""
    return benchmark.params.model_validate(OWN if getattr(benchmark, "own_code", False) else {})


def resolved(case: Case) -> Any:
    return case.benchmark.resolve(example(case.benchmark), case.target)


# --- parameters ----------------------------------------------------------------------------------------------------


@on_every_target
def test_what_is_resolved_is_resolved_for_good(group: list[Case]) -> None:
    for case in group:
        once = resolved(case)
        again = case.benchmark.resolve(once, case.target)
        assert again == once
        for launcher in LAUNCHERS:
            steps = steps_of(case, once, launcher)
            assert steps_of(case, again, launcher) == steps
            assert not [word for step in steps for word in step.argv if word == "auto" or word.endswith("=auto")]


@on_every_target
def test_parameters_survive_the_plan(group: list[Case]) -> None:
    for case in group:
        kind = case.benchmark.params
        for params in (example(case.benchmark), resolved(case)):
            text = json.dumps(params.model_dump(mode="json"), allow_nan=False)
            assert kind.model_validate(json.loads(text)) == params


@of_every_benchmark
def test_every_parameter_has_a_default(benchmark: Benchmark) -> None:
    assert benchmark.params() == benchmark.params.model_validate({})


# --- steps ---------------------------------------------------------------------------------------------------------


@on_every_target
def test_steps_are_of_this_target_and_nothing_else(group: list[Case]) -> None:
    for case in group:
        params = resolved(case)
        for launcher in LAUNCHERS:
            steps = steps_of(case, params, launcher)
            assert steps == steps_of(case, params, launcher)
            assert bool(steps) != of_provisioning(case)
            assert not any(step.background for step in steps[-1:])  # what is in the background serves a later step
            for step in steps:
                assert_is_of(step, case.target)


def assert_is_of(step: Step, target: Target) -> None:
    assert step.nodes
    assert set(step.nodes) <= set(target.names)
    assert len(set(step.nodes)) == len(step.nodes)
    assert all(step.argv)
    for name in (*(file.name for file in step.inputs), *step.outputs):
        path = PurePosixPath(name)
        assert not path.is_absolute()
        assert ".." not in path.parts
    assert len({file.name for file in step.inputs}) == len(step.inputs)


@on_every_target
def test_a_step_may_take_longer_than_is_estimated(group: list[Case]) -> None:
    for case in group:
        params = resolved(case)
        estimate_s = case.benchmark.estimate_s(params, case.target)
        assert (estimate_s == 0) if of_provisioning(case) else (0 < estimate_s < math.inf)
        for launcher in () if of_provisioning(case) else LAUNCHERS:
            assert_limits(steps_of(case, params, launcher), estimate_s)


def assert_limits(steps: Sequence[Step], estimate_s: float) -> None:
    """The steps that are waited for may take longer than the estimate; what serves them lives longer than they do."""
    assert all(0 < step.timeout_s < math.inf for step in steps)
    assert sum(step.timeout_s for step in steps if not step.background) > estimate_s
    for number, step in enumerate(steps):
        if step.background:
            assert step.timeout_s > sum(later.timeout_s for later in steps[number + 1 :] if not later.background)
            assert len(step.nodes) == 1


@of_every_benchmark
def test_programs_are_in_the_root_file_system(benchmark: Benchmark) -> None:
    assert bool(benchmark.requires) != (Scope.PROVISIONING in benchmark.scopes)
    assert set(benchmark.requires) <= set(programs())
    for case in CASES:
        if case.benchmark is benchmark:
            started = {step.argv[0] for step in steps_of(case, resolved(case), LAUNCHERS[0])}
            assert started <= set(benchmark.requires)


@of_every_benchmark
def test_scopes(benchmark: Benchmark) -> None:
    assert benchmark.default_scopes
    assert set(benchmark.default_scopes) <= set(benchmark.scopes)
    assert len(set(benchmark.scopes)) == len(benchmark.scopes)


# --- metrics -------------------------------------------------------------------------------------------------------


@of_every_benchmark
def test_metrics(benchmark: Benchmark) -> None:
    names = [metric.name for metric in benchmark.metrics]
    assert names
    assert len(set(names)) == len(names)
    assert {metric.unit for metric in benchmark.metrics} <= UNITS
    assert [metric.name for metric in benchmark.metrics if not metric.meaning.strip()] == []
    assert sum(metric.primary for metric in benchmark.metrics) <= HEADLINES


# --- what is printed -----------------------------------------------------------------------------------------------


def record(case: Case, text: str, with_outputs: bool) -> TrialRecord:
    """A trial that ended well, all of whose files hold `text`."""
    params = resolved(case)
    done = tuple(
        StepRecord(
            step=number,
            node=node,
            argv=step.argv,
            exit_code=0,
            timed_out=False,
            background=step.background,
            started=1.0,
            elapsed_s=1.0,
            stdout=f"{number}.{node}.stdout",
            stderr=f"{number}.{node}.stderr",
            outputs={name: f"{number}.{node}.{name}" for name in step.outputs} if with_outputs else {},
        )
        for number, step in enumerate(steps_of(case, params, LAUNCHERS[0]))
        for node in step.nodes
    )
    return TrialRecord(
        id="r001-box/it.1",
        environment="box",
        round=1,
        cell="r001-box",
        work="it",
        benchmark=case.benchmark.name,
        label=case.benchmark.name,
        scope=case.target.scope,
        nodes=case.target.names,
        iteration=1,
        warmup=False,
        params=params.model_dump(mode="json"),
        status=Status.OK,
        started=1.0,
        elapsed_s=1.0,
        steps=done,
        texts={name: text for one in done for name in (one.stdout, one.stderr, *one.outputs.values())},
    )


def refused(case: Case, text: str) -> None:
    for with_outputs in (True, False):
        with pytest.raises(ParseError) as caught:
            parse(record(case, text, with_outputs))
        assert "trials/r001-box/it.1" in caught.value.message


@on_every_target
def test_an_empty_output_is_refused(group: list[Case]) -> None:
    for case in group:
        refused(case, "")


FIRST = tuple({(case.benchmark.name, case.target.scope): case for case in CASES}.values())  # one of each scope
RUBBISH = [
    "0",
    "null",
    "[]",
    "{}",
    '{"start": [], "end": 7}',
    "nan",
    "\0",
    "\n" * 50,
    "Killed\n",
    "é\ufffd\u2028",
    "[" * 100_000,
]


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_rubbish_is_refused(case: Case) -> None:
    for text in RUBBISH:
        refused(case, text)


@settings(max_examples=60, deadline=None)
@given(case=st.sampled_from(FIRST), text=st.text(max_size=200))
def test_any_rubbish_is_refused(case: Case, text: str) -> None:
    refused(case, text)


@cache
def _recorded() -> Mapping[str, TrialRecord]:
    return {case_id(folder): load(folder) for folder in cases()}


WORDS = ("", "0", "-1", "nan", "inf", "1e999", "9" * 320, "null", "[]", "{}", '"', "x", "\n", "\0", "٣")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_output_gives_finite_numbers_or_a_parse_error(data: st.DataObject) -> None:
    """A few characters of what a tool printed are replaced by others: no parser may end in any other way."""
    whole = _recorded()[data.draw(st.sampled_from(sorted(_recorded())))]
    name = data.draw(st.sampled_from(sorted(name for name, text in whole.texts.items() if text)))
    text = whole.texts[name]
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 20))
    word = data.draw(st.sampled_from(WORDS) | st.text(max_size=20))
    damaged = with_text(whole, name, text[:start] + word + text[start + length :])
    try:
        measured = parse(damaged)
    except ParseError:
        return
    assert all(math.isfinite(item.value) for item in measured)


NUMBER = re.compile(r"\d[\d.]*(?:e[-+]?\d+)?")


@pytest.mark.parametrize("folder", cases(), ids=case_id)
def test_a_number_that_is_none_gives_finite_numbers_or_a_parse_error(folder: Path) -> None:
    """Each of the first and the last numbers of an output in turn."""
    whole = _recorded()[case_id(folder)]
    for name, text in whole.texts.items():
        found = list(NUMBER.finditer(text))
        for match in [*found[:30], *found[-50:]]:
            for word in ("nan", "-1", "1e999", "9" * 320, "9" * 5000):
                damaged = with_text(whole, name, text[: match.start()] + word + text[match.end() :])
                with suppress(ParseError):
                    measured = parse(damaged)
                    assert all(math.isfinite(item.value) for item in measured)


def test_every_scope_is_tried() -> None:
    assert {case.target.scope for case in CASES} == set(Scope)
