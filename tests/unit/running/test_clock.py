"""What is left of a campaign, with what is done once on each new cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.small import MACHINE
from fakes.cluster import FakeProvider
from vtax.model.plan import PlannedTrial
from vtax.model.study import EnvironmentSpec
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.running.clock import Clock

STUDY = """\
name = "own"
rounds = 2
settle = "0 s"
baseline = "host"
[environments.host]
provider = "host"
[nodes]
workers = 1
cpus = 1
[[benchmarks]]
name = "command"
label = "own"
nodes = ["worker1"]
setup = [{ command = ["make"], estimate = 30 }]
iterations = 3
[benchmarks.run]
command = ["work"]
estimate = 10
"""


def test_setup_is_counted_once_on_each_cluster() -> None:
    providers = {"host": FakeProvider("host", Path("run"), separate_nodes=False)}
    spec = EnvironmentSpec(name="host", provider="host")
    plan = make_plan(parse(STUDY, "own.toml").model_copy(update={"environments": (spec,)}), MACHINE, providers)
    pending: dict[str, Sequence[PlannedTrial]] = {cell.id: list(cell.trials) for cell in plan.cells}
    clock = Clock(plan, providers, pending)
    assert clock.remaining_s() == pytest.approx(plan.estimate_s, abs=0.1)
    assert clock.remaining_s(1) == pytest.approx(plan.estimate_s / 2, abs=0.1)
    first, second = (cell.id for cell in plan.cells)
    clock.ready(first)
    for took_s in (40.1, 10.1, 10.1):  # the first with its setup: as estimated
        clock.done(first, took_s)
    assert clock.remaining_s() == pytest.approx(plan.estimate_s / 2, abs=0.5)
    resumed = Clock(plan, providers, {first: [], second: list(plan.cells[1].trials[1:])})
    assert resumed.remaining_s() == pytest.approx(plan.estimate_s / 2 - 10.1, abs=0.1)  # it is made again on a new one
