"""Two campaigns against each other: what differs is said first, what did other work is not compared."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from builders.measurements import measurement, simulated_rounds
from builders.synthetic import campaign, plan
from vtax.analysis.analyse import analyse
from vtax.analysis.campaigns.comparison import compare_campaigns
from vtax.analysis.campaigns.records import CampaignComparison, Change, Outcome
from vtax.analysis.campaigns.setup_differences import Recorded
from vtax.analysis.estimate.rank_sum import bound_rank, shift_interval, u_distribution
from vtax.analysis.estimate.welch import welch
from vtax.analysis.gates import Result, judge, parse_gates, subjects_of_changes
from vtax.cli.compare import lines_of
from vtax.errors import UsageError
from vtax.model.cluster import CellRecord
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind
from vtax.model.plan import Plan
from vtax.model.trial import Status, TrialRecord

ABOUT: Mapping[str, Any] = {"created": "2026-01-01", "image": {"digest": "d", "versions": {"sysbench": "1.0"}}}
SIX = (100.0, 102.0, 98.0, 101.0, 99.0, 100.0)
NARROW = (100.0, 100.1, 99.9, 100.05, 99.95, 100.0)


def recorded(
    values: Mapping[str, Sequence[float]],
    *,
    about: Mapping[str, Any] = ABOUT,
    cells: tuple[CellRecord, ...] = (),
    kind: Kind = Kind.RATE_FIXED_WORK,
    primary: bool = True,
    findings: Sequence[Finding] = (),
    of: Plan | None = None,
) -> Recorded:
    made = of or plan(tuple(values), rounds=6)
    numbers: list[Measurement] = [
        measurement(value, environment=name, round=number, kind=kind, primary=primary)
        for name, several in values.items()
        for number, value in enumerate(several, 1)
    ]
    return Recorded("dir", made, about, cells, analyse(numbers, plan=made, findings=findings, trials=()))


def test_a_change_inside_the_margin_fails_a_strict_gate_when_it_is_proven() -> None:
    made = compare_campaigns(recorded({"host": SIX}), recorded({"host": [0.985 * value for value in SIX]}))
    wide = compare_campaigns(recorded({"host": NARROW}), recorded({"host": [0.985 * value for value in NARROW]}))
    assert only(wide).outcome is Outcome.WITHIN
    gates = parse_gates(["any primary slower than 1%"])
    assert judge(gates, subjects_of_changes(wide), ())[0].result is Result.FAILED
    assert judge(gates, subjects_of_changes(made), ())[0].result is Result.NOT_RESOLVED


# --- runs that gave no number --------------------------------------------------------------------------------------


def simulated_campaign(status: Status, which: Callable[[TrialRecord], bool]) -> Recorded:
    """Ten quiet rounds of `base` and `other`, in which these trials ended like that."""
    made = simulated_rounds(noise=0.001, n=10, looks=(6, 10), seed=7).ended(status, which)
    return Recorded("dir", made.plan, ABOUT, (), made.analysis)


WHOLE = simulated_campaign(Status.OK, lambda _: False)


@pytest.mark.parametrize("swapped", [False, True])
def test_what_never_succeeded_in_one_campaign_is_compared_and_holds_no_gate(swapped: bool) -> None:
    lost = simulated_campaign(Status.TIMED_OUT, lambda trial: trial.environment == "other")
    made = compare_campaigns(lost, WHOLE) if swapped else compare_campaigns(WHOLE, lost)
    found = only(made, "other")
    name = "A" if swapped else "B"
    assert (found.outcome, found.change, found.tax) == (Outcome.DATA_ONLY, None, None)
    assert (found.n_a, found.n_b) == ((0, 10) if swapped else (10, 0))
    assert found.sentence == f"data only: no round of {name} has a result (10 timed out)"
    gates = parse_gates(["any primary slower than 5%", "inconclusive"])
    assert [one.result for one in judge(gates, subjects_of_changes(made), ())] == [Result.NOT_RESOLVED, Result.FAILED]
    assert any("no round of" in line for line in lines_of(made))


def test_what_one_campaign_did_not_plan_stays_absent() -> None:
    lost = simulated_campaign(Status.FAILED, lambda trial: trial.environment == "other")
    plan = lost.plan.model_copy(update={"work": tuple(w for w in lost.plan.work if w.environment == "base")})
    made = compare_campaigns(WHOLE, replace(lost, plan=plan))
    assert [change.environment for change in made.changes] == ["base"]


def test_cells_without_an_end_widen_the_change() -> None:
    late = simulated_campaign(Status.TIMED_OUT, lambda t: t.environment == "other" and t.round in (1, 2, 4, 5))
    assert only(compare_campaigns(WHOLE, WHOLE), "other").outcome is Outcome.WITHIN
    made = compare_campaigns(WHOLE, late)
    found = only(made, "other")
    assert (found.outcome, found.n_b) == (Outcome.NOT_RESOLVED, 6)
    assert found.timeouts is not None
    assert (found.timeouts.a, found.timeouts.b, found.timeouts.low) == (0, 4, None)
    assert found.sentence.endswith("; excluding 4 cells of B that hit their time limit")
    gates = parse_gates(["any primary slower than 5%", "any primary faster than 5%"])
    assert [one.result for one in judge(gates, subjects_of_changes(made), ())] == [Result.NOT_RESOLVED, Result.HOLDS]


def test_a_rank_sum_interval_by_hand() -> None:
    assert [bound_rank(m, m, 0.05) for m in (3, 4, 6, 10)] == [0, 1, 6, 24]  # tables: U of 0, 5, 23 at most
    assert bound_rank(201, 201, 0.05) == pytest.approx(bound_rank(200, 200, 0.05) * (201 / 200) ** 2, rel=1e-3)
    assert shift_interval((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)) == (-math.inf, math.inf)
    assert shift_interval((0.0, 1.0, 2.0, 3.0), (10.0, 10.0, 10.0, 10.0)) == (7.0, 10.0)
    assert shift_interval((0.0, 1.0, 2.0, 3.0), (-math.inf, 10.0, 10.0, 10.0)) == (-math.inf, 10.0)
    assert shift_interval((-math.inf, 1.0, 2.0, 3.0), (-math.inf, 10.0, 10.0, 10.0)) == (-math.inf, math.inf)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 4), (5, 2)])
def test_the_distribution_of_the_rank_sum_is_that_of_all_orders(m: int, n: int) -> None:
    counts = np.zeros(m * n + 1)
    for chosen in itertools.combinations(range(m + n), m):
        others = [place for place in range(m + n) if place not in chosen]
        counts[sum(one > other for one in chosen for other in others)] += 1
    assert u_distribution(m, n) == pytest.approx(counts / counts.sum())


def only(made: CampaignComparison, environment: str = "host") -> Change:
    return next(change for change in made.changes if change.environment == environment)


def test_the_interval_is_that_of_welch() -> None:
    a, b = (1.0, 2.0, 4.0, 3.5), (2.0, 2.5, 7.0)
    found = welch(a, b)
    theirs = ttest_ind(b, a, equal_var=False)
    bounds = theirs.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert found.df == pytest.approx(theirs.df)


def test_two_values_give_no_interval_and_equal_ones_no_spread() -> None:
    assert welch((1.0, 2.0), (1.0, 2.0, 3.0)).half_width is None
    same = welch((1.0, 1.0, 1.0), (2.0, 2.0, 2.0))
    assert (same.low, same.high, same.p_value) == (1.0, 1.0, 0.0)
    assert welch((1.0,) * 3, (1.0,) * 3).p_value == 1.0


def test_half_the_rate_is_half_as_good_and_swapping_gives_the_reciprocal() -> None:
    one, two = recorded({"host": SIX}), recorded({"host": [value / 2 for value in SIX]})
    forth, back = only(compare_campaigns(one, two)), only(compare_campaigns(two, one))
    assert forth.outcome is Outcome.DIFFERS
    assert forth.change is not None
    assert back.change is not None
    assert forth.change.ratio == pytest.approx(0.5)
    assert forth.change.ratio * back.change.ratio == pytest.approx(1.0)
    assert forth.change.low * back.change.high == pytest.approx(1.0)  # type: ignore[operator]
    assert forth.sentence.startswith("differs: B against A -50.0 % [-5")
    assert forth.typical_a == pytest.approx(99.98, abs=0.01), "a harmonic mean"
    assert (forth.n_a, forth.n_b) == (6, 6)


def test_a_cost_that_doubles_is_half_as_good() -> None:
    found = only(
        compare_campaigns(
            recorded({"host": SIX}, kind=Kind.COST), recorded({"host": [2 * v for v in SIX]}, kind=Kind.COST)
        )
    )
    assert found.change is not None
    assert found.change.ratio == pytest.approx(0.5)


def test_no_word_claims_more_than_an_unpaired_comparison_can() -> None:
    made = compare_campaigns(recorded({"host": SIX}), recorded({"host": [value / 2 for value in SIX]}))
    told = " ".join([made.changes[0].sentence, *made.caution])
    assert "faster" not in told
    assert "slower" not in told
    assert "not paired" in made.caution[0]


def test_five_rounds_are_a_pilot_and_two_are_data() -> None:
    assert only(compare_campaigns(recorded({"host": SIX[:5]}), recorded({"host": SIX}))).outcome is Outcome.PILOT
    assert only(compare_campaigns(recorded({"host": SIX[:2]}), recorded({"host": SIX}))).outcome is Outcome.DATA_ONLY


def test_a_difference_within_the_margin_and_one_that_is_not_resolved() -> None:
    quiet = [value**0.1 for value in SIX]
    assert only(compare_campaigns(recorded({"host": quiet}), recorded({"host": quiet}))).outcome is Outcome.WITHIN
    loud = [50.0, 150.0, 60.0, 170.0, 55.0, 140.0]
    assert only(compare_campaigns(recorded({"host": loud}), recorded({"host": SIX}))).outcome is Outcome.NOT_RESOLVED


def test_the_tax_leaves_out_what_moved_the_whole_machine() -> None:
    """The machine of B is half as fast; containers cost 10 % on both."""
    box = [0.9 * value for value in SIX]
    a = recorded({"host": SIX, "container": box})
    b = recorded({"host": [v / 2 for v in SIX], "container": [v / 2 for v in box]})
    found = only(compare_campaigns(a, b), "container")
    assert found.change is not None
    assert found.tax is not None
    assert found.change.ratio == pytest.approx(0.5)
    assert (found.tax.ratio, found.tax.low, found.tax.high) == pytest.approx((1.0, 1.0, 1.0))
    assert found.tax_sentence.startswith("the tax: B against A +0.0 % [")
    assert only(compare_campaigns(a, b)).tax is None, "the baseline has no tax"


def test_the_tax_is_on_what_takes_the_place_of_the_baseline() -> None:
    """A metric that the host does not have in the plan: what virtual machines cost is said against containers."""

    def campaign(slower: float) -> Recorded:
        box = [0.9 * value for value in SIX]
        made = plan(("host", "container", "vm"), rounds=6)
        like = made.work[0].model_copy(update={"label": "tool", "benchmark": "tool"})
        place = like.target.label
        work = tuple(like.model_copy(update={"environment": name}) for name in ("container", "vm"))
        values = {"container": SIX, "vm": [slower * value for value in box]}
        numbers = [
            measurement(value, environment=name, round=n, kind=Kind.RATE_FIXED_WORK, labels={"target": place})
            for name, several in values.items()
            for n, value in enumerate(several, 1)
        ]
        made = made.model_copy(update={"work": work})
        return Recorded("dir", made, ABOUT, (), analyse(numbers, plan=made, findings=(), trials=()))

    found = only(compare_campaigns(campaign(1.0), campaign(0.5)), "vm")
    assert found.tax is not None
    assert found.tax.ratio == pytest.approx(0.5)


def test_an_emulated_environment_is_not_compared_over_campaigns() -> None:
    a, b = recorded({"host": SIX, "vm": SIX}), recorded({"host": SIX, "vm": SIX})
    analysis = b.analysis.model_copy(update={"emulated": ("vm",)})
    found = only(compare_campaigns(a, replace(b, analysis=analysis)), "vm")
    assert found.outcome is Outcome.NOT_COMPARABLE
    assert "vm ran in software emulation in B" in found.sentence


def test_what_pairing_was_worth_inside_the_campaigns() -> None:
    """Both environments drift together by a factor of e over six rounds; what is left between them is 1 %."""
    drift = [math.exp(i / 5) for i in range(6)]
    wiggle = [1.01, 0.99, 1.01, 0.99, 1.01, 0.99]
    a = recorded({"host": drift, "container": [d * w for d, w in zip(drift, wiggle, strict=True)]})
    gain = compare_campaigns(a, recorded({"host": SIX})).pairing_gain
    sd_drift, sd_left = 0.2 * math.sqrt(3.5), math.log(1.01 / 0.99) / 2 * math.sqrt(6 / 5)
    assert gain == pytest.approx(math.sqrt(2) * sd_drift / sd_left, rel=0.01)


# --- what differs --------------------------------------------------------------------------------------------------


def test_other_work_is_not_compared() -> None:
    mine = plan(("host",), rounds=6)
    work = mine.work[0].model_copy(update={"label": "tool", "params": {"N": 100, "NB": 192, "timeout_s": 1.0}})
    other = work.model_copy(update={"params": {"N": 200, "NB": 192, "timeout_s": 9.0}})
    a = recorded({"host": SIX}, of=mine.model_copy(update={"work": (work,)}))
    b = recorded({"host": SIX}, of=mine.model_copy(update={"work": (other,)}))
    made = compare_campaigns(a, b)
    assert [(item.what, item.a, item.b, item.severity) for item in made.unlike] == [
        ("work of hpcc: N", "100", "200", Severity.BLOCKER)
    ]
    assert made.changes[0].outcome is Outcome.NOT_COMPARABLE
    assert made.changes[0].sentence == "not comparable: work of hpcc: N is 100 in A and 200 in B"
    assert made.family == 0


def test_what_only_one_campaign_has_is_told() -> None:
    """An environment, an entry, and work of an entry that both have; swapped, the sides are swapped."""
    a = recorded({"host": SIX, "vm": SIX})
    mine = plan(("host",), rounds=6)
    entries = tuple(spec for spec in mine.study.benchmarks if spec.label != "ping")
    one = next(work for work in mine.work if work.label == entries[0].label)
    less = mine.model_copy(
        update={
            "study": mine.study.model_copy(update={"benchmarks": entries}),
            "work": (one.model_copy(update={"id": "another"}), *(work for work in mine.work if work is not one)),
        }
    )
    b = recorded({"host": SIX}, of=less)
    nodes = json.dumps(one.target.names)
    wanted = {
        "environment vm": ("qemu", "absent"),
        "benchmark entry ping": ("ping", "absent"),
        f"work {one.id}, on nodes": (nodes, "absent"),
        "work another, on nodes": ("absent", nodes),
    }
    assert {item.what: (item.a, item.b) for item in compare_campaigns(a, b).unlike} == wanted
    swapped = compare_campaigns(b, a).unlike
    assert {item.what: (item.b, item.a) for item in swapped} == wanted
    assert {item.severity for item in swapped} == {Severity.WARNING}


def test_tools_root_file_system_options_and_facts_that_differ_are_listed() -> None:
    whole = campaign(("host", "container"), rounds=6)
    warm = tuple(
        cell.model_copy(
            update={
                "host_facts": {
                    **cell.host_facts,
                    "kernel": "6.13.0",
                    "load1": float(i),
                    "mitigations": {"a": "on"},
                    "cpu_flags": ["avx", "new"],
                }
            }
        )
        for i, cell in enumerate(whole.cells)
    )
    cold = tuple(
        cell.model_copy(
            update={"host_facts": {**cell.host_facts, "mitigations": {"a": "off"}, "cpu_flags": ["avx", "old"]}}
        )
        for cell in whole.cells
    )
    about = {"created": "", "image": {"digest": "e", "versions": {"sysbench": "1.1"}}}
    values = {"host": SIX, "container": SIX}
    a, b = recorded(values, cells=cold), recorded(values, cells=warm, about=about)
    listed = {item.what: (item.a, item.b) for item in compare_campaigns(a, b).unlike}
    assert listed == {
        "sha256 of the root file system": ("d", "e"),
        "package sysbench": ("1.0", "1.1"),
        "machine: kernel": ("6.12.9", "6.13.0"),
        "machine: mitigations a": ("off", "on"),
        "machine: cpu_flags, in one only": ('["old"]', '["new"]'),
    }
    assert all(item.severity is Severity.WARNING for item in compare_campaigns(a, b).unlike)


def test_a_fact_that_moves_inside_a_campaign_is_no_difference() -> None:
    cells = campaign(("host",), rounds=6).cells
    moving = tuple(
        cell.model_copy(update={"host_facts": {"governor": ("a", "b")[i % 2]}}) for i, cell in enumerate(cells)
    )
    still = tuple(cell.model_copy(update={"host_facts": {"governor": "c"}}) for cell in cells)
    made = compare_campaigns(recorded({"host": SIX}, cells=moving), recorded({"host": SIX}, cells=still))
    assert not [item for item in made.unlike if "governor" in item.what]


def test_a_blocker_of_the_audit_in_either_campaign_counts() -> None:
    finding = Finding(id="C01", severity=Severity.BLOCKER, message="no limit", remedy="", environment="host")
    made = compare_campaigns(recorded({"host": SIX}), recorded({"host": SIX}, findings=[finding]))
    assert made.changes[0].sentence == "not comparable: C01 in B: no limit"


def test_campaigns_without_a_common_environment_are_refused() -> None:
    a, b = recorded({"host": SIX}), recorded({"vm": SIX})
    with pytest.raises(UsageError, match="no environment in common") as caught:
        compare_campaigns(a, b)
    assert caught.value.remedy == "A has host; B has vm"
    with pytest.raises(UsageError, match="'box' is not in both"):
        compare_campaigns(a, a, "box")
