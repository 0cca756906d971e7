"""G7 and G10, and that records take the path of the arrays: campaigns of records, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import exponential
from vtax.analysis.records import Verdict
from vtax.analysis.sequential.group_sequential import calibration
from vtax.analysis.sequential.sequential_test import CODES, adjusted_words, holm, last_interim
from vtax.model.study import Interleave
from vtax.selftest import machines
from vtax.selftest.campaigns import differences, differences_by_trial, generator, times, trial_times
from vtax.selftest.check import Check
from vtax.selftest.noise import BY_NAME, SCENARIOS
from vtax.selftest.objects import ENVIRONMENTS, Simulated, plan_of, simulated
from vtax.selftest.stopping import DELTA, LOOKS

PLANNED = (6, 10, 16)
MACHINES = ("a", "b", "c")
NO_VERDICT = (Verdict.DATA_ONLY, Verdict.PILOT)


def _holds(goal: str, what: str, held: list[bool]) -> Check:
    return Check(goal, what, 100 * sum(held) / len(held), 100.0, False, 0.0, len(held))


def g7(seed: int, campaigns: int) -> Iterator[Check]:
    """One boot with many iterations supports no interval and no verdict."""
    values = times(BY_NAME["boot"], generator(seed, 7, 2), np.ones((campaigns, 1)), iterations=30)
    held = []
    for i in range(campaigns):
        found = simulated(plan_of(seed + i, (1,), 30), values[i]).comparison
        held.append(found.low is None and found.p_value is None and found.verdict in NO_VERDICT)
    yield _holds("G7", "one boot, 30 iterations: no interval and no verdict", held)


def same_bits(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Records that go through plan, measurements and `analyse` give the bits that the arrays gave."""
    held: dict[Interleave, list[bool]] = {"cell": [], "trial": []}
    for i, scenario in enumerate(SCENARIOS):
        effect, which = DELTA * (i % 3), range(i, campaigns, len(SCENARIOS))
        values = times(scenario, generator(seed, 11, i), first, iterations=3, effect=effect)
        held["cell"] += _same(seed, values, differences(values), first, LOOKS, which)
        order = first[:, : PLANNED[-1]]
        values = trial_times(scenario, generator(seed, 11, i, 1), order, iterations=4, effect=effect)
        held["trial"] += _same(seed, values, differences_by_trial(values), None, PLANNED, which)
    yield _holds("G10", "records give the same bits as arrays", held["cell"])
    yield _holds("G10", "records of alternating trials give the same bits as arrays", held["trial"])


def _same(
    seed: int, values: Floats, given: Floats, first: Floats | None, looks: tuple[int, ...], which: Iterable[int]
) -> Iterator[bool]:
    """Whether each of these campaigns has the same numbers as records; without `first`, trials alternate."""
    seen = last_interim(given, first, looks, calibration(looks, adjusted=first is not None), DELTA)
    assert seen is not None
    word = adjusted_words(seen.word, holm(seen.p_sequential[:, None])[:, 0], seen.p_within_sequential)
    for campaign in which:
        plan = plan_of(seed + campaign, looks, values.shape[-1], "trial" if first is None else "cell")
        found = simulated(plan, values[campaign]).comparison
        ends = (exponential(float(seen.low[campaign])), exponential(float(seen.high[campaign])))
        yield (
            found.effect == float(seen.fit.theta[campaign])
            and (found.low, found.high) == ends
            and found.p_sequential == float(seen.p_sequential[campaign])
            and found.verdict is CODES[int(word[campaign])]
            and found.interleave == plan.interleave
        )


def same_on_machines(seed: int, campaigns: int) -> Iterator[Check]:
    """Records of several machines, one of which is lost, give the bits that the arrays give."""
    held = []
    for i in range(campaigns):
        plan = plan_of(seed + i, machines.LOOKS, 3, machines=MACHINES)
        places = {(cell.machine, cell.round, cell.environment): n for n, cell in enumerate(plan.cells)}
        first = np.array(
            [
                [
                    1.0 if places[name, number, ENVIRONMENTS[1]] < places[name, number, ENVIRONMENTS[0]] else -1.0
                    for number in range(1, machines.LOOKS[-1] + 1)
                ]
                for name in MACHINES
            ]
        )
        values = times(SCENARIOS[i % len(SCENARIOS)], generator(seed, 13, 96, i), first, iterations=3, effect=DELTA)
        gone = machines.lost(len(MACHINES)) & bool(i % 2)
        several = machines.Campaigns(
            np.where(gone, np.nan, differences(values))[None], first[None], np.zeros((1, len(MACHINES)))
        )
        seen = machines.looked(several)
        values[np.broadcast_to(gone[:, None, :, None], values.shape)] = np.nan
        found = simulated(plan, values).comparison
        word = adjusted_words(seen.word, seen.p_sequential, seen.p_within_sequential)
        held.append(
            found.effect == float(seen.fit.theta[0])
            and (found.low, found.high) == (exponential(float(seen.low[0])), exponential(float(seen.high[0])))
            and found.p_sequential == float(seen.p_sequential[0])
            and found.verdict is CODES[int(word[0])]
        )
    yield _holds("G13", "records of several machines give the same bits as arrays", held)


def g10(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Nothing is dropped in silence, and nothing depends on what it may not depend on."""
    tests: tuple[tuple[str, Callable[[Simulated, Floats, int], bool]], ...] = (
        ("outliers come with the warning about coverage", _warns),
        ("deleting one run changes the output", _notices),
        ("another order of files changes no bit", _same_in_any_order),
        ("swapping the environments negates the effect exactly", _negates),
        ("times and rates get the same verdict", _inverts),
    )
    first = first[:, : PLANNED[-1]]
    ways: tuple[tuple[Interleave, str, Floats], ...] = (
        ("cell", "", times(BY_NAME["tail"], generator(seed, 10), first, iterations=3)),
        ("trial", "alternating trials: ", trial_times(BY_NAME["tail"], generator(seed, 10, 1), first, iterations=4)),
    )
    for interleave, name, values in ways:
        plans = [plan_of(seed + i, PLANNED, values.shape[-1], interleave) for i in range(campaigns)]
        made = [simulated(plan, values[i]) for i, plan in enumerate(plans)]
        for what, test in tests:
            yield _holds("G10", f"{name}{what}", [test(one, values[i], i) for i, one in enumerate(made)])


def _warns(made: Simulated, values: Floats, _: int) -> bool:
    found = made.comparison
    flagged = [note.message for note in found.notes if note.id == "OUTLIERS"]
    logs = np.log(values.reshape(2, -1))
    away = np.abs(logs - np.median(logs, axis=1, keepdims=True))
    outliers = bool((away > 5 * 1.4826 * np.median(away, axis=1, keepdims=True)).any())
    return outliers == bool(flagged) and all("covers its mean in only 80 to 86 %" in message for message in flagged)


def _notices(made: Simulated, _: Floats, i: int) -> bool:
    less = made.without(made.trials[7 * i % len(made.trials)].id).analysis
    return less.comparisons != made.analysis.comparisons and len(less.failures) == 1


def _same_in_any_order(made: Simulated, _: Floats, i: int) -> bool:
    other = made.shuffled(np.random.Generator(np.random.PCG64(i)))
    return other.analysis.model_dump_json() == made.analysis.model_dump_json()


def _negates(made: Simulated, *_: object) -> bool:
    """With the places in the rounds exchanged too: the other environment was measured, everything else was the same."""
    names = {"base": "other", "other": "base"}
    cells = tuple(cell.model_copy(update={"environment": names[cell.environment]}) for cell in made.plan.cells)
    by_name = {cell.id: cell for cell in cells}
    plan = made.plan.model_copy(update={"cells": cells})
    mirrored = Simulated(
        plan,
        tuple(m.model_copy(update={"environment": by_name[m.cell].environment}) for m in made.measurements),
        tuple(t.model_copy(update={"environment": by_name[t.cell].environment}) for t in made.trials),
    )
    one, other = made.comparison, mirrored.comparison
    return one.effect is not None and other.effect == -one.effect and math.isclose(one.sd or 0, other.sd or 1)


def _inverts(made: Simulated, values: Floats, _: int) -> bool:
    one, other = made.comparison, simulated(made.plan, values, rate=True).comparison
    return one.verdict is other.verdict and math.isclose(one.effect or 0, other.effect or 1, abs_tol=1e-12)
