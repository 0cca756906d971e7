"""The ladder: each step against the one before it, over the rounds that all steps share."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from builders.measurements import measurement
from builders.synthetic import plan
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.cli.analyse import lines_of
from vtax.errors import StudyError
from vtax.model.finding import Finding, Severity
from vtax.model.metric import Kind
from vtax.model.study import EnvironmentSpec
from vtax.planning.study import parse
from vtax.report.document.ladder_table import ladder_table
from vtax.report.document.model import Ratio

STEPS = ("host", "tcp", "box")


def climbed(
    values: Mapping[str, Sequence[float]],
    *,
    steps: tuple[str, ...] = STEPS,
    kind: Kind = Kind.RATE_FIXED_WORK,
    findings: Sequence[Finding] = (),
    specs: tuple[EnvironmentSpec, ...] = (),
) -> Analysis:
    made = plan(tuple(values))
    update = {"ladder": steps, "environments": specs or made.study.environments, "control": bool(specs)}
    made = made.model_copy(update={"study": made.study.model_copy(update=update)})
    numbers = [
        measurement(value, environment=name, round=number, kind=kind)
        for name, several in values.items()
        for number, value in enumerate(several, 1)
    ]
    return analyse(numbers, plan=made, findings=findings, trials=())


def test_a_rung_is_the_geometric_mean_of_paired_ratios() -> None:
    found = climbed({"host": [100, 200, 400], "tcp": [50, 100, 200], "box": [25, 50, 50]}).ladder
    assert len(found) == 1
    first, second = found[0].rungs
    assert (first.previous, first.environment) == ("host", "tcp")
    assert (first.ratio, first.low, first.high) == pytest.approx((0.5, 0.5, 0.5))
    assert (second.previous, second.environment) == ("tcp", "box")
    assert second.ratio == pytest.approx((0.5 * 0.5 * 0.25) ** (1 / 3))
    assert second.low is not None
    assert second.low < second.ratio
    assert found[0].n == 3


def test_the_product_of_the_rungs_is_the_total_also_when_a_round_is_missing_on_one_step() -> None:
    found = climbed({"host": [90, 110, 100, 95], "tcp": [80, 70, 75], "box": [40, 44, 45, 30]}).ladder[0]
    assert found.n == 3, "round 4 is not on all steps, so it is on none"
    assert math.prod(rung.ratio for rung in found.rungs) == pytest.approx(found.total.ratio)
    assert found.total.ratio == pytest.approx((40 / 90 * 44 / 110 * 45 / 100) ** (1 / 3))
    assert (found.total.previous, found.total.environment) == ("host", "box")


def test_a_cost_that_doubles_is_half_as_good() -> None:
    found = climbed({"host": [1.0, 1.0], "tcp": [2.0, 2.0]}, steps=("host", "tcp"), kind=Kind.COST).ladder[0]
    assert found.rungs[0].ratio == pytest.approx(0.5)
    assert found.rungs[0].low is None, "two rounds give no interval"


def test_a_step_that_was_left_out_is_skipped_and_the_rung_names_where_it_starts() -> None:
    found = climbed({"host": [100, 100, 100], "box": [50, 50, 50]}).ladder[0]
    assert [(rung.previous, rung.environment) for rung in found.rungs] == [("host", "box")]


def test_what_has_no_ratio_has_no_ladder() -> None:
    assert climbed({"host": [0.1, 0.2], "tcp": [0.1, 0.3]}, kind=Kind.PROPORTION).ladder == ()
    assert climbed({"host": [1, 2], "tcp": [1, 2]}, steps=()).ladder == ()


def test_a_blocker_stands_on_the_rungs_that_it_touches_only() -> None:
    blocked = Finding(id="C01", severity=Severity.BLOCKER, message="no limit", remedy="set one", environment="box")
    found = climbed({"host": [2, 2], "tcp": [2, 2], "box": [1, 1]}, findings=[blocked]).ladder[0]
    assert [rung.blocker for rung in found.rungs] == ["", "no limit"]
    assert found.total.blocker == "no limit"


def test_lines_have_intervals_and_no_figure_that_is_forbidden() -> None:
    values = {"host": [100.0, 101, 102], "tcp": [50.0, 51, 50], "box": [25.0, 25, 26]}
    blocked = Finding(id="C01", severity=Severity.BLOCKER, message="no limit", remedy="set one", environment="box")
    (line,) = [line for line in lines_of(climbed(values, findings=[blocked])) if line.startswith("ladder")]
    assert re.fullmatch(
        r"ladder of tool elapsed \(3 rounds\): host to tcp -50\.2 % \[-\d\d\.\d, -\d\d\.\d\], "
        r"tcp to box not comparable, host to box not comparable",
        line,
    )


def test_a_control_arm_that_differs_forbids_every_step() -> None:
    random = np.random.Generator(np.random.PCG64(1))
    values = {
        name: (level * (1 + 0.001 * random.normal(size=8))).tolist()
        for name, level in (("host", 100.0), ("again", 90.0), ("box", 50.0))
    }
    specs = (
        EnvironmentSpec(name="host", provider="docker"),
        EnvironmentSpec(name="again", provider="docker", control_of="host"),
        EnvironmentSpec(name="box", provider="docker"),
    )
    (found,) = climbed(values, steps=("host", "box"), specs=specs).ladder
    assert found.total.blocker.startswith("tool elapsed of the control arm is 0.8999 times that of the baseline")


TEXT = """
name = "climb"
baseline = "host"
ladder = {steps}
environments.host = {{provider = "host"}}
environments.tcp = {{provider = "host", mpi_transport = "tcp"}}
benchmarks = [{{name = "ping"}}]
"""


def test_a_study_declares_its_ladder() -> None:
    assert parse(TEXT.format(steps='["host", "tcp"]'), "climb.toml").ladder == ("host", "tcp")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ('["host", "tpc"]', 'did you mean "tcp"'),
        ('["host"]', "a single step compares nothing"),
        ('["host", "tcp", "host"]', '"host" is listed twice'),
    ],
)
def test_a_ladder_that_cannot_be_is_a_mistake(steps: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(TEXT.format(steps=steps), "climb.toml")
    assert [mistake.path for mistake in caught.value.mistakes] == ["ladder"]
    assert said in str(caught.value)


def test_the_ladder_as_a_table() -> None:
    values = {"host": [100.0, 101, 102], "tcp": [50.0, 51, 50], "box": [25.0, 25, 26]}
    table = ladder_table(climbed(values))
    assert [column.title for column in table.columns] == ["Metric", "host to tcp", "tcp to box", "all steps"]
    (row,) = table.rows
    assert row.cells[0].text.startswith("tool elapsed")
    assert row.cells[0].note == "3 rounds"
    assert isinstance(row.cells[1].value, Ratio)
    assert row.cells[1].text.startswith("0.498 [")
    assert (row.cells[1].value.low or 1) < 0.498 < (row.cells[1].value.high or 0)
    assert ladder_table(climbed(values, steps=())).rows == ()


def test_a_step_that_does_not_compare_says_so_in_the_table() -> None:
    blocked = Finding(id="C01", severity=Severity.BLOCKER, message="no limit", remedy="set one", environment="box")
    table = ladder_table(climbed({"host": [2, 2], "tcp": [2, 2], "box": [1, 1]}, findings=[blocked]))
    assert [cell.note for cell in table.rows[0].cells[1:]] == [
        "",
        "not comparable: no limit",
        "not comparable: no limit",
    ]
