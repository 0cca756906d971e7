"""G12: CPU time that a hypervisor takes. Where it hits all environments alike it is noise; where it follows one, it is
a bias that no interval shows, and the audit has to find it in the counters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vtax.analysis.analyse import analysis_of
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import LEVEL
from vtax.analysis.prepared import prepare
from vtax.analysis.records import Comparison
from vtax.analysis.sequential.sequential_test import FASTER, SLOWER, TRIVIAL
from vtax.audit import audit, findings_of
from vtax.evidence.campaign import Evidence
from vtax.selftest.campaigns import differences_by_trial, ended, generator, places
from vtax.selftest.check import Check, reference, share
from vtax.selftest.noise import Random, stolen_shares
from vtax.selftest.objects import Simulated, plan_of, simulated

LOOKS = (6, 10)
ITERATIONS = 4
MARGIN = 0.05
NOISE = 0.01  # of each trial besides
TAKEN, VARIES = 0.08, 0.02  # of the CPU time of one environment, mean and deviation
ROW = "C05"
FALSE = (FASTER, SLOWER, TRIVIAL)


class Stolen(NamedTuple):
    """Times of identical environments, and the share of CPU time that each trial lost; shape (campaigns, 2, rounds,
    iterations)."""

    times: Floats
    shares: Floats


def g12(seed: int, campaigns: int, recorded: int, first: Floats) -> Iterator[Check]:
    """Common stolen time makes no verdict; what follows one environment makes one, and the audit rules it out."""
    first = first[:, : LOOKS[-1]]
    for i, (what, one_sided) in enumerate((("from all environments", False), ("from one environment", True))):
        made = stolen_times(generator(seed, 13, i), first, one_sided=one_sided)
        end = ended(differences_by_trial(made.times)[:, None], None, LOOKS, math.log1p(MARGIN))
        claimed = f"CPU time stolen {what}: identical, declared different"
        if one_sided:
            yield reference("G12", f"{claimed}, before the audit", end.share(*FALSE), campaigns)
        else:
            yield share("G12", claimed, end.share(*FALSE), LEVEL, campaigns)
        plans = [plan_of(seed + k, LOOKS, ITERATIONS, "trial", MARGIN) for k in range(min(recorded, campaigns))]
        found = [audited(simulated(plan, made.times[k], stolen=made.shares[k])) for k, plan in enumerate(plans)]
        ruled_out = sum(one.ruled_out_by == ROW for one in found) / len(found)
        what = f"CPU time stolen {what}: {ROW} rules the comparison out"
        if one_sided:
            yield share("G12", what, ruled_out, 0.95, len(found), at_most=False)
        else:
            yield reference("G12", what, ruled_out, len(found))


def stolen_times(random: Random, first: Floats, *, one_sided: bool) -> Stolen:
    """Alternating trials on a machine of which a hypervisor takes time in bursts; with `one_sided`, environment 1 loses
    more, always."""
    campaigns, rounds = first.shape
    slots = places(first, ITERATIONS, alternating=True)
    bursts = stolen_shares(random, campaigns, 2 * rounds * ITERATIONS)
    begins = (2 * ITERATIONS * np.arange(rounds))[None, None, :, None]
    shares = np.take_along_axis(bursts, (begins + slots).reshape(campaigns, -1), axis=1).reshape(slots.shape)
    if one_sided:
        more = np.clip(TAKEN + VARIES * random.standard_normal(shares[:, 1].shape), 0.0, 0.5)
        shares[:, 1] = 1 - (1 - shares[:, 1]) * (1 - more)
    noise = NOISE * random.standard_normal(shares.shape)
    return Stolen(np.asarray(np.exp(noise) / (1 - shares)), shares)


def audited(campaign: Simulated) -> Comparison:
    """The comparison of a campaign under what the audit's row about stolen time says of its counters."""
    numbers = prepare(campaign.measurements, plan=campaign.plan, trials=campaign.trials, declared={})
    evidence = Evidence(
        plan=campaign.plan,
        trials=campaign.trials,
        measurements=campaign.measurements,
        counters={trial.id: trial.counters for trial in campaign.trials},
        prepared=numbers,
    )
    findings = [finding for finding in findings_of(audit(evidence).rows) if finding.id == ROW]
    (found,) = analysis_of(numbers, findings).comparisons
    return found
