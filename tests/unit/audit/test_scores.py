"""S01 to S03 and U01 to U03: scores, units, directions, and files that were read twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders.audit_cases import COUNTERS, both, evidence, failed, logged, passed, recorded, unknown, value
from vtax.audit import Evidence, units
from vtax.model.finding import Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind
from vtax.model.nodes import Scope
from vtax.model.plan import Origin
from vtax.model.reading import ReadValue
from vtax.tools.stress_ng.audit import bogo_operations, cpu_time_rate
from vtax.tools.sysbench.audit import settings

STRESS = recorded("stress-ng", "0.19.02--trixie-all", "0-worker1.stdout")
OLDER = recorded("stress-ng", "0.15.06--bookworm-all", "0-node1.stderr")
CPU = recorded("sysbench-cpu", "1.0.20--trixie-node", "0-worker1.stdout")


def of(benchmark: str, host: str, container: str) -> Evidence:
    return logged(benchmark, {"host": host, "container": container}, scope=Scope.NODE)


def test_s01_another_version_or_setting_of_stress_ng() -> None:
    (found,) = failed(bogo_operations, of("stress-ng", STRESS, OLDER))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert "version 0.15.06" in found.message
    assert "version 0.19.02" in found.message
    longer = STRESS.replace("setting to a 1 sec run", "setting to a 60 sec run")
    assert "60 s" in failed(bogo_operations, of("stress-ng", STRESS, longer))[0].message
    method = STRESS.replace("using method 'matrixprod'", "using method 'fft'")
    assert "method fft" in failed(bogo_operations, of("stress-ng", STRESS, method))[0].message
    assert (
        "version 0.19.02, hogs 1 cpu, time 1 s, method matrixprod"
        in passed(bogo_operations, of("stress-ng", STRESS, STRESS))[0]
    )
    assert unknown(bogo_operations, of("stress-ng", "x\n", "x\n"))


@pytest.mark.parametrize(
    ("counted", "fails"), [({}, False), ({"steal_ticks": 200.0}, True), ({"cpu_throttled_periods": 50.0}, True)]
)
def test_s02_rates_by_cpu_time_that_was_taken_away(counted: dict[str, float], fails: bool) -> None:
    campaign = of("stress-ng", STRESS, STRESS)
    campaign = replace(campaign, counters={one.id: {"worker1": {**COUNTERS, **counted}} for one in campaign.trials})
    if fails:
        found = failed(cpu_time_rate, campaign)
        assert (found[0].severity, found[0].metrics) == (Severity.INFO, ("bogo_ops_rate_cpu",))
    else:
        assert passed(cpu_time_rate, campaign)


@pytest.mark.parametrize("stolen", [{"host": 200.0}, {"node": 200.0}, {}])
def test_s02_time_of_a_guest_that_the_machine_or_its_emulator_took(stolen: dict[str, float]) -> None:
    """The rate by CPU time leaves both out."""
    campaign = logged("stress-ng", both(STRESS), scope=Scope.NODE, provider="qemu")
    lost = {"cpu_ticks": 20_000.0, "steal_ticks": stolen.get("host", 0.0)}
    own = {"worker1": {**COUNTERS, "steal_ticks": stolen.get("node", 0.0)}}
    campaign = replace(
        campaign,
        trials=tuple(one.model_copy(update={"host_counters": lost}) for one in campaign.trials),
        counters={one.id: own for one in campaign.trials},
    )
    if stolen:
        assert "1.0% of the CPU time stolen" in failed(cpu_time_rate, campaign)[0].message
    else:
        assert passed(cpu_time_rate, campaign)


def test_s02_unknown() -> None:
    assert unknown(cpu_time_rate, replace(of("stress-ng", STRESS, STRESS), counters={}))


def test_s03_another_sysbench() -> None:
    (found,) = failed(settings, of("sysbench-cpu", CPU, CPU.replace("limit: 20000", "limit: 10000")))
    assert (found.severity, "max_prime 10000" in found.message) == (Severity.BLOCKER, True)
    old = failed(settings, of("sysbench-cpu", CPU, CPU.replace("sysbench 1.0.20", "sysbench 0.4.12")))
    assert any("is sysbench 0.4.12" in one.message for one in old)
    assert passed(settings, of("sysbench-cpu", CPU, CPU))
    assert unknown(settings, of("sysbench-cpu", "x\n", "x\n"))


def measured(ratios: tuple[float, ...], unit: str = "byte/s") -> Evidence:
    values = {
        name: tuple(
            value("tool", f"m{i}", 1.2345e9 * (ratio if name == "container" else 1), unit)
            for i, ratio in enumerate(ratios)
        )
        for name in ("host", "container")
    }
    return logged("tool", both("x\n"), values=values)


UNIT_ERRORS = (
    (8.0, 8.01, 7.99),
    (0.125, 0.1251, 0.1249),
    (1000.0, 1000.0, 1001.0),
    (1.024, 1.0241, 1.0239),
    (1.073741824,) * 3,
)


@pytest.mark.parametrize("ratios", UNIT_ERRORS)
def test_u01_the_factor_between_two_units(ratios: tuple[float, ...]) -> None:
    (found,) = failed(units.unit_factors, other_programs(measured(ratios)))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert found.metrics == tuple(f"m{i}" for i in range(len(ratios)))


def other_programs(campaign: Evidence) -> Evidence:
    """The nodes of the container have other packages."""
    return replace(campaign, cells=evidence({"container": {"packages_sha256": "e" * 64}}).cells)


@pytest.mark.parametrize("ratios", UNIT_ERRORS)
def test_u01_one_program_and_one_parser_have_one_unit(ratios: tuple[float, ...]) -> None:
    (found,) = failed(units.unit_factors, measured(ratios))
    assert (found.severity, found.environment) == (Severity.WARNING, "container")
    assert "by the same program and the same reader" in found.message


@pytest.mark.parametrize("recorded", [None, "e" * 64])
def test_u01_packages_that_are_not_known_or_not_the_same_are_not_one_program(recorded: str | None) -> None:
    campaign = replace(measured((8.0,) * 3), cells=evidence({"container": {"packages_sha256": recorded}}).cells)
    assert failed(units.unit_factors, campaign)[0].severity is Severity.BLOCKER


@pytest.mark.parametrize(
    "ratios",
    [
        (8.1,) * 3,
        (8.0,),
        (8.0, 8.0),
        (1000.0, 1000.0),
        (8.0, 8.0, 5.0),
        (1.024,),
        (1.024, 1.024),
        (1.02, 1.024, 1.03),
        (1.0, 1.0, 1.0),
    ],
)
def test_u01_a_difference_like_any_other(ratios: tuple[float, ...]) -> None:
    assert passed(units.unit_factors, other_programs(measured(ratios)))


@pytest.mark.parametrize(("unit", "fails"), [("byte/s", True), ("bit/s", True), ("1/s", False), ("s", False)])
def test_u01_eight_is_of_bits_and_bytes(unit: str, fails: bool) -> None:
    campaign = other_programs(measured((0.125,) * 3, unit))
    assert bool(units.unit_factors(campaign)) is fails


def with_kind(kind: Kind, direction: Direction, environments: tuple[str, ...] = ("host", "container")) -> Evidence:
    campaign = measured((1.0,))
    changed: list[Measurement] = [
        one.model_copy(update={"kind": kind, "direction": direction}) if one.environment in environments else one
        for one in campaign.measurements
    ]
    return replace(campaign, measurements=tuple(changed))


def test_u02_a_metric_without_a_direction() -> None:
    (found,) = failed(units.declarations, with_kind(Kind.COUNT, Direction.NONE))
    assert (found.severity, found.metrics) == (Severity.BLOCKER, ("m0",))
    assert passed(units.declarations, measured((1.0,)))


def test_u02_a_metric_that_is_two_things() -> None:
    (found,) = failed(units.declarations, with_kind(Kind.COST, Direction.LOWER, ("container",)))
    assert "is byte/s (cost, lower is better), byte/s (rate, fixed time, higher is better)" in found.message


def test_u03_a_file_that_was_read_twice() -> None:
    campaign = measured((1.0,))
    first, second, *_ = campaign.trials

    def twice(lines: Sequence[int]) -> Evidence:
        """The second trial left what the first left: numbers of five digits, on these lines."""
        values = tuple(
            ReadValue(metric=f"m{i}", value=12345.0 + i, unit="byte/s", kind=Kind.COST, file="out", line=line)
            for i, line in enumerate(lines)
        )
        one = campaign.readings[first.id].model_copy(update={"values": values})
        return replace(campaign, readings={**campaign.readings, first.id: one, second.id: one})

    (found,) = failed(units.reused, twice((3, 4)))
    assert found.severity is Severity.BLOCKER
    assert f"{second.id} has the same numbers as {first.id}" in found.message
    assert passed(units.reused, twice((3, 3))), "one line, as xhpl prints, is equal by chance among fifty runs"


def test_u03_values_that_stand_twice_in_logs() -> None:
    same = tuple(value("tool", f"m{i}", 12345.678 + i) for i in range(3))
    own = logged("tool", both("x\n"), values={"host": same})
    imported = replace(own, plan=own.plan.model_copy(update={"origin": Origin.IMPORTED}))
    assert len(failed(units.reused, imported)) == 5  # of six runs
    assert passed(units.reused, own), "their texts differ, so these are round numbers, not copies"
    few = logged("tool", both("x\n"), values={"host": (value("tool", "m", 3.0), value("tool", "n", 5.0))})
    assert passed(units.reused, replace(few, plan=imported.plan))
    assert unknown(units.reused, logged("tool", both("x\n")))


def test_u03_round_trips_of_few_microseconds_agree_by_chance() -> None:
    """ping prints whole microseconds: 2, 5 and 37 of them have one or two digits, however they are written."""
    times = tuple(value("tool", f"m{i}", seconds) for i, seconds in enumerate((2e-06, 5e-06, 3.7e-05, 1.1e-05)))
    assert passed(units.reused, logged("tool", both("x\n"), values={"host": times}))
