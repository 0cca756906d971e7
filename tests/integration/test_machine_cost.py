"""What real trials cost this machine: counted, and as much as the benchmark's threads certainly used."""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax import pipeline
from vtax.model.machine_cost import CPU_TIME, NODE_TIME
from vtax.paths import Paths
from vtax.store import Campaign

from .conftest import CPU, Vtax, finish, study
from .test_bad_days import write

pytestmark = [pytest.mark.integration, pytest.mark.alone]
SECONDS = 2
THREADS = 1
STEP_S = 0.01  # in which the kernel counts


def test_the_cpu_time_of_the_machine_and_of_the_nodes(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    campaign, names = tmp_path / "c", ("host", "docker")
    text = study(names, CPU.format(seconds=SECONDS) + f"threads = {THREADS}\n")
    code, _, err = finish(vtax("run", str(write(tmp_path, text)), "-o", str(campaign)))
    assert code == 0, err
    measured, trials = pipeline.measurements(campaign)
    assert {trial.environment for trial in trials} == set(names)
    for trial in trials:
        (counted,) = trial.step_counters.values()
        assert counted["seconds"] == pytest.approx(max(step.elapsed_s for step in trial.steps), abs=0.2)
        assert counted["vtax_cpu_s"] < 0.5
        values = {one.metric: one for one in measured if one.trial == trial.id}
        events = values["events_rate"].value * SECONDS
        machine, nodes = values[CPU_TIME], values[NODE_TIME]
        assert machine.unit == nodes.unit == "s"
        # A thread that always runs uses its two seconds, unless other machines take them.
        stolen_s = counted["steal_ticks"] / 100
        assert nodes.value * events > 0.5 * (SECONDS * THREADS - stolen_s)
        assert machine.value * events > 0.5 * (SECONDS * THREADS - stolen_s)
        assert machine.value * events <= counted["cpu_ticks"] / 100 + STEP_S
        assert nodes.value * events <= machine.value * events + 0.5  # it is measured a moment longer, on both sides
    assert all(one.primary is False for one in measured if one.metric in (CPU_TIME, NODE_TIME))
    assert "machine_cpu_time" in (Campaign.open(campaign).directory / "analysis.json").read_text()
