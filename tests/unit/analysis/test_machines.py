"""Several machines: the mean over them, one that is lost, how they differ, what a verdict says of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vtax.analysis.campaigns.change import improving_logs
from vtax.analysis.campaigns.comparison import paired_differences
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.machines import adjustable_over, by_rounds, covered, fit_over, p_same, pooled, spread_over
from vtax.analysis.estimate.paired import fit
from vtax.analysis.records import Comparison, Verdict
from vtax.model.trial import Status
from vtax.selftest.campaigns import orders
from vtax.selftest.objects import Simulated, plan_of, simulated

NAN = math.nan
NAMES = ("a", "b", "c")


def campaign(effects: list[float], *, rounds: int = 6, noise: float = 0.002, seed: int = 3) -> Simulated:
    """A campaign on as many machines as there are effects (log; above zero is slower), each of another speed."""
    random = np.random.default_rng(seed)
    values = np.exp(noise * random.standard_normal((len(effects), 2, rounds, 1)))
    values *= (1 + np.arange(len(effects)))[:, None, None, None]
    values[:, 1] *= np.exp(effects)[:, None, None]
    return simulated(plan_of(seed, (rounds,), 1, machines=NAMES[: len(effects)]), values)


def test_one_machine_is_the_case_without_anything_to_average() -> None:
    differences = np.random.default_rng(1).standard_normal((50, 10))
    first = orders(1, 50, 10)
    for order in (None, first):
        made, alone = (
            fit(differences, order),
            fit_over(differences[:, None], None if order is None else order[:, None])[0],
        )
        assert (alone.n, alone.df) == (made.n, made.df)
        assert alone.theta == pytest.approx(made.theta, abs=1e-12)
        assert alone.se == pytest.approx(made.se, rel=1e-12)
    assert (pooled(differences[:, None]) == differences).all()


def test_a_round_is_the_mean_over_machines_where_none_lacks_one() -> None:
    grid = np.array([[0.25, 0.5], [0.75, 0.5]])
    assert pooled(grid).tolist() == [0.5, 0.5]


def test_a_machine_that_lacks_a_round_counts_as_much_as_any_other() -> None:
    # machine a: 1, 2, 3 (mean 2, squares 2); b: 10, 14 (mean 12, squares 8), without the third round
    grid = np.array([[1.0, 2.0, 3.0], [10.0, 14.0, NAN]])
    rounds = pooled(grid)
    assert rounds.mean() == pytest.approx((2 + 12) / 2)
    # a weighs 3 / (2 * 3) sqrt(3 / 2 * 2 / 3) = 1 / 2, b 3 / (2 * 2) sqrt(2 * 2 / 3) = 0.8660254
    assert rounds == pytest.approx([7 - 0.5 - 2 * 0.8660254, 7 + 2 * 0.8660254, 7 + 0.5])
    made, _ = fit_over(grid, None)
    assert made.df == 1  # of the machine with two rounds


def test_the_variance_of_the_mean_is_that_of_unequal_machines() -> None:
    """The truth: (0.01² / 12 + 0.04² / 6) / 4, of twelve rounds of one and six of the other."""
    random = np.random.default_rng(2)
    grid = random.standard_normal((40_000, 2, 12)) * np.array([0.01, 0.04])[:, None]
    grid[:, 1, 6:] = NAN
    made, _ = fit_over(grid, None)
    truth = (0.01**2 / 12 + 0.04**2 / 6) / 4
    assert float((made.se**2).mean()) == pytest.approx(truth, rel=0.02)
    assert float(made.theta.var()) == pytest.approx(truth, rel=0.03)


def test_what_running_second_costs_is_taken_out_within_machines() -> None:
    first = np.array([[1.0, -1.0, 1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, 1.0, -1.0, -1.0, 1.0]])
    grid = np.array([[0.01], [0.05]]) + 0.02 * first
    made, left = fit_over(grid, first)
    assert made.carry_over is not None
    assert (float(made.theta), float(made.carry_over)) == pytest.approx((0.03, 0.02))
    assert left == pytest.approx(np.full(6, 0.03))
    assert made.df == 4
    assert adjustable_over(grid, first)
    assert not adjustable_over(grid, np.ones((2, 6)))  # always the same order: it cannot be told from the effect
    assert not adjustable_over(grid[:, :4], first[:, :4])


def test_which_machines_an_estimate_is_about() -> None:
    def counts(*several: int) -> list[bool]:
        return [bool(one) for one in covered(np.array([np.arange(16) < count for count in several]))]

    assert counts(16, 6, 5) == [True, True, False]  # six rounds are enough for a verdict
    assert counts(6, 5, 3, 2) == [True, True, True, False]  # half of what others have, three at least
    assert counts(10, 5, 4) == [True, True, False]
    assert counts(2, 1) == [True, True]


def test_whether_machines_differ_allows_unequal_noise() -> None:
    # equal errors 1, means 0 and 4, 5 rounds each: a Welch t of 4 / sqrt 2 with 8 degrees of freedom
    p = p_same(np.array([0.0, 4.0]), np.array([1.0, 1.0]), np.array([5, 5]))
    assert float(p) == pytest.approx(0.02220, abs=1e-4)
    assert float(p_same(np.array([1.0]), np.array([1.0]), np.array([5]))) == 1.0


def test_others_like_them_are_never_known_better_than_these() -> None:
    means, errors, counts = np.array([-0.01, 0.0, 0.01]), np.full(3, 0.001), np.full(3, 6)
    found = spread_over(means, errors, counts, (np.array(-0.002), np.array(0.002)), 0.05)
    # t(0.975, 2) = 4.3027, deviation 0.01
    half = 4.30265 * 0.01 / math.sqrt(3)
    assert (float(found.low or 0), float(found.high or 0)) == pytest.approx((-half, half), rel=1e-5)
    same = spread_over(np.zeros(3), errors, counts, (np.array(-0.002), np.array(0.002)), 0.05)
    assert (float(same.low or 0), float(same.high or 0)) == (-0.002, 0.002)
    two = spread_over(means[:2], errors[:2], counts[:2], (np.array(-0.002), np.array(0.002)), 0.05)
    assert two.low is None
    assert two.high is None


# --- whole campaigns -------------------------------------------------------------------------------------------------


def test_the_effect_is_the_mean_over_machines_however_fast_each_is() -> None:
    found = campaign([0.04, 0.04, 0.04]).comparison
    assert found.effect == pytest.approx(-0.04, abs=0.004)
    assert found.verdict is Verdict.SLOWER
    assert " on 3 machines" in found.sentence
    assert "differ" not in found.sentence
    assert [(one.machine, one.n, one.covered) for one in found.machines] == [(name, 6, True) for name in NAMES]
    assert found.n == 6
    assert found.dropped == 0


def test_machines_that_differ_are_named() -> None:
    found = campaign([0.06, 0.0, -0.04], rounds=10).comparison
    assert found.effect == pytest.approx(-0.02 / 3, abs=0.003)
    assert "on 3 machines, which differ" in found.sentence
    (note,) = (note for note in found.notes if note.id == "MACHINES_DIFFER")
    assert "in opposite directions" in note.message
    assert note.message.index("on c,") < note.message.index("on b,") < note.message.index("on a;")  # the best first
    assert found.spread is not None
    assert found.spread.p_same < 0.01
    assert found.spread.low is not None
    assert found.low is not None
    assert found.spread.low < found.low


def test_machines_that_contradict_their_mean_leave_no_verdict() -> None:
    found = campaign([0.05, 0.0, -0.05], rounds=10).comparison  # the mean is inside the margin of 2 %, a and c are not
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.remark == "the machines contradict each other, which no number of rounds changes: see each of them"
    assert found.more_rounds is None
    assert found.new_campaign is None
    assert found.spread is not None
    assert found.spread.contradict
    assert "ROBUSTNESS" not in {note.id for note in found.notes}
    slower = campaign([0.15, 0.06, -0.03], rounds=10).comparison  # slower in the mean, and faster on c
    assert slower.high is not None
    assert slower.high < 1
    assert slower.verdict is Verdict.INCONCLUSIVE
    alike = campaign([0.05, 0.09, 0.15], rounds=10).comparison  # they differ, and are all slower
    assert alike.verdict is Verdict.SLOWER
    assert "which differ" in alike.sentence


def test_levels_vary_from_round_to_round_and_not_from_machine_to_machine() -> None:
    analysis = campaign([0.0, 0.0, 0.0], rounds=10).analysis  # machines are 1, 2 and 3 times as slow
    assert all(level.cv is not None and level.cv < 0.004 and level.outliers == 0 for level in analysis.levels)
    assert not {note.id for one in analysis.comparisons for note in one.notes} & {"BIMODAL", "OUTLIERS", "DRIFT"}


def test_a_machine_that_is_lost_soon_is_not_what_the_verdict_is_about() -> None:
    whole = campaign([0.04, 0.04, 0.0], rounds=16)
    lost = whole.ended(Status.NOT_RUN, lambda one: "-c-" in one.cell and one.round > 4)
    found = lost.comparison
    assert "on 2 of 3 machines (not on c)" in found.sentence
    assert [(one.machine, one.n, one.covered) for one in found.machines] == [
        ("a", 16, True),
        ("b", 16, True),
        ("c", 4, False),
    ]
    assert found.effect == pytest.approx(-0.04, abs=0.003)


def test_a_machine_that_is_lost_late_still_counts_and_the_interval_is_wider() -> None:
    whole = campaign([0.04, 0.04, 0.0], rounds=16)
    lost = whole.ended(Status.NOT_RUN, lambda one: "-c-" in one.cell and one.round > 8).comparison
    assert " on 3 machines" in lost.sentence
    assert lost.effect == pytest.approx(-0.08 / 3, abs=0.003)
    assert width(lost) > width(whole.comparison)


def width(one: Comparison) -> float:
    assert one.low is not None
    assert one.high is not None
    return one.high / one.low


def test_a_timeout_on_one_machine_leaves_its_round_open() -> None:
    whole = campaign([0.04, 0.04, 0.04], rounds=10)
    slow = whole.ended(
        Status.TIMED_OUT, lambda one: one.environment == "other" and "-b-" in one.cell and one.round == 3
    )
    found = slow.comparison
    assert found.n == 9
    assert found.timeouts is not None
    assert (found.timeouts.environment, found.timeouts.baseline) == (1, 0)


def test_the_order_of_files_changes_no_bit() -> None:
    whole = campaign([0.03, 0.01, 0.02])
    assert whole.shuffled(np.random.default_rng(4)).analysis == whole.analysis


def test_one_machine_leaves_no_trace_in_the_analysis() -> None:
    values: Floats = np.exp(0.002 * np.random.default_rng(5).standard_normal((2, 6, 1)))
    here = simulated(plan_of(3, (6,), 1), values)
    text = here.analysis.model_dump_json()
    assert '"machine' not in text
    assert '"spread"' not in text
    there = simulated(plan_of(3, (6,), 1, machines=("a",)), values[None])
    ours, theirs = here.comparison, there.comparison
    assert theirs.sentence == f"{ours.sentence} on 1 machine"
    assert theirs.machines == ()


# --- two campaigns ---------------------------------------------------------------------------------------------------


def test_two_campaigns_compare_rounds_and_not_blocks() -> None:
    values = {("a", 1): 1.0, ("b", 1): 3.0, ("a", 2): 2.0, ("b", 2): 4.0, ("a", 3): 3.0, ("b", 3): 5.0}
    assert by_rounds(values) == (2.0, 3.0, 4.0)
    levels = {one.environment: one for one in campaign([0.04, 0.0]).analysis.levels}
    apart = paired_differences(levels["other"], levels["base"])
    assert len(apart) == 6
    assert np.mean(apart) == pytest.approx(-0.02, abs=0.003)
    assert len(improving_logs(levels["base"])) == 6
    assert levels["base"].n == 6
    # machines are 1 and 2 times as slow: the mean of the logarithms
    assert np.mean(improving_logs(levels["base"])) == pytest.approx(-math.log(2) / 2, abs=0.003)
    assert levels["base"].sd == pytest.approx(0.003, abs=0.002)
