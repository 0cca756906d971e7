"""The plan of a campaign made again from what is stored is the stored one, whatever the study and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest

from fakes.cluster import GIB, FakeProvider
from vtax.model.capabilities import NodeKind
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.planning.overrides import Overrides
from vtax.planning.plan import make_plan
from vtax.planning.presets import PRESETS
from vtax.planning.resuming import made_again
from vtax.planning.study import load
from vtax.providers import option_models
from vtax.store import written

SMALL = HostCapacity(cpu_ids=(0, 1), memory_bytes=4 * GIB)  # too small for several clusters at once
LARGE = HostCapacity(cpu_ids=tuple(range(16)), memory_bytes=256 * GIB)
OVERRIDES = {
    "as it is": Overrides(),
    "--rounds 1": Overrides(rounds=1),
    "--anytime --rounds 7": Overrides(anytime=True, rounds=7),
    "--budget": Overrides(budget_s=1e6),
}


def fakes(study: Study, names: set[str], emulated: bool) -> Mapping[str, FakeProvider]:
    """Providers that take the study's options and are as unlike each other as the real ones."""
    made = {}
    for spec in study.environments:
        if spec.name in names:
            one = FakeProvider(spec.provider, Path("run"), separate_nodes=spec.provider != "host")
            one.options = option_models()[spec.provider]
            if one.options.emulation:
                kind = {"own_kernel": True, "kind": NodeKind.VM}
                one.capabilities = one.capabilities.model_copy(update=kind)
                one.emulated, one.slow = emulated, 12.5 if emulated else 1.0
            made[spec.name] = one
    return made


def again(study: Study, machine: HostCapacity, providers: Mapping[str, FakeProvider]) -> Plan:
    """The plan of a study as it was written and read, after it was compared with itself made again."""
    missing = [spec.name for spec in study.environments if spec.name not in providers]
    left_out = [f"environment {name} is left out: nothing answers" for name in missing]
    stored = written(make_plan(study, machine, providers, left_out=left_out))
    plan = Plan.model_validate_json(stored)
    assert [spec.name for spec in plan.environments] == list(providers)
    assert written(made_again(plan, providers)) == stored
    return plan


@pytest.mark.parametrize("emulated", [False, True], ids=["accelerated", "emulated"])
@pytest.mark.parametrize("machine", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_on_machines_where_some_of_it_works(preset: str, machine: HostCapacity, emulated: bool) -> None:
    study = load(Path(preset)).fixed(2)
    others = [spec.name for spec in study.environments if spec.name != study.baseline]
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            again(study, machine, fakes(study, {study.baseline, *chosen}, emulated))


@pytest.mark.parametrize("override", OVERRIDES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_with_what_the_command_line_overrides(preset: str, override: str) -> None:
    study = OVERRIDES[override].of(load(Path(preset)))
    again(study, LARGE, fakes(study, {spec.name for spec in study.environments}, emulated=True))


def test_these_plans_differ_in_what_matters() -> None:
    """Else the tests above would compare the same plan again and again."""
    study = load(Path("quick")).fixed(2)
    every = {spec.name for spec in study.environments}
    plans = [again(study, LARGE, fakes(study, every, emulated)) for emulated in (False, True)]
    plans.append(again(study, SMALL, fakes(study, {study.baseline}, emulated=False)))
    assert len({plan.sha256 for plan in plans}) == 3
    assert {plan.interleave for plan in plans} == {"trial", "cell"}
    assert any("emulated" in line for line in plans[1].left_out)
    assert any("is left out: nothing answers" in line for line in plans[2].left_out)
