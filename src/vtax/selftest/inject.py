"""The self-test on a real provider: a handicap of a known size must be found, and identical clusters must not differ.

It is a study like any other, run by the same code: one environment has 10 % less CPU time by a quota, another repeats
the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vtax import pipeline
from vtax.errors import EnvironmentMissing, TrialsFailed, UsageError
from vtax.events import Listener
from vtax.model.record import Record
from vtax.model.study import Study
from vtax.model.trial import TrialRecord
from vtax.paths import Paths
from vtax.planning.overrides import Overrides
from vtax.planning.study import parse
from vtax.providers import option_models, provider, provider_names

if TYPE_CHECKING:
    from vtax.analysis.records import Analysis, Comparison

LOST = 0.1  # share of the CPU time that the slowed environment loses, by default
EXCLUDED = 0.01  # p of "no difference" below which the baseline differs from itself
SLOWED = "slowed"
QUOTA = "cpu_share"  # the option that slows an environment
METRIC = "events_rate"
INJECTED = frozenset({"C02", "C03"})  # what the audit rightly says of the handicap itself
STUDY = """\
name = "inject"
seed = {seed}
looks = [6, 10]
control = true
baseline = "whole"

[environments.whole]
provider = "{engine}"

[environments.slowed]
provider = "{engine}"
cpu_share = {share}

[nodes]
workers = 1
cpus = 1
memory = "256 MiB"

[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
threads = 1
time_s = {seconds}
iterations = {iterations}
"""


class Seen(Record):
    """One environment against the baseline: the ratio with its interval, and the verdict."""

    n: int
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    sentence: str


class Injected(Record):
    """The result. `expected_ratio` is what the quota leaves: 1 without loss.

    `throttled` is the share of the periods in which the quota stopped the slowed environment: near 0, other programs
    had the CPU, and there was no handicap to find. Absent where nothing counted.
    """

    engine: str
    directory: str
    expected_ratio: float
    throttled: float | None
    slowed: Seen
    control: Seen
    detected: bool
    quiet: bool
    passed: bool


def engine_of(wanted: str, paths: Paths) -> str:
    """The provider to use: the one that is named, else the first that works.

    Raises EnvironmentMissing when it does not work, UsageError for one that cannot limit CPU time by a quota.
    """
    able = [name for name in provider_names() if QUOTA in option_models()[name].model_fields]
    if wanted and wanted not in able:
        raise UsageError(f"{wanted!r} cannot limit CPU time by a quota", remedy=f"choose one of {', '.join(able)}")
    reasons = []
    for name in (wanted,) if wanted else able:
        reason = provider(name, paths.runtime).unavailable()
        if not reason:
            return name
        reasons.append(f"{name}: {reason}")
    raise EnvironmentMissing(
        "no provider that limits CPU time by a quota works here",
        detail="\n".join(reasons),
        remedy="run `vtax doctor` to see how to fix it",
    )


def study_of(engine: str, seconds: int, iterations: int, seed: int, lost: float = LOST) -> tuple[str, Study]:
    """The study as text and as read."""
    text = STUDY.format(engine=engine, share=round(1 - lost, 6), seconds=seconds, iterations=iterations, seed=seed)
    return text, parse(text, "inject.toml")


def inject(
    text: str, study: Study, directory: Path, paths: Paths, listener: Listener, budget_s: float | None = None
) -> Injected:
    """Run the study in `directory` and judge the instrument by it."""
    with suppress(TrialsFailed):  # a failed trial is data here too; what is left decides
        overrides = Overrides(budget_s=budget_s)
        pipeline.start(text.encode(), study, directory, paths, listener, False, overrides, ignoring=INJECTED)
    _, trials = pipeline.measurements(directory)
    return judged(pipeline.analyse(directory, ignoring=INJECTED, cache=paths.cache), study, trials, str(directory))


def judged(analysis: Analysis, study: Study, trials: Sequence[TrialRecord], directory: str) -> Injected:
    """Detected: the verdict "slower". Quiet: the control arm does not differ at 1 %."""
    found = {item.environment: item for item in analysis.comparisons if item.metric == METRIC}
    slowed, control = found.get(SLOWED), found.get(analysis.control or "")
    if slowed is None or control is None:
        raise EnvironmentMissing(
            "the self-test has no numbers to judge", detail=_failures(analysis), remedy=f"examine {directory}/trials"
        )
    detected = slowed.verdict == "slower"
    p_value = control.p_value if control.p_sequential is None else control.p_sequential
    quiet = p_value is not None and p_value >= EXCLUDED
    spec = next(spec for spec in study.environments if spec.name == SLOWED)
    return Injected(
        engine=spec.provider,
        directory=directory,
        expected_ratio=float(str(spec.options[QUOTA])),
        throttled=throttled(trials),
        slowed=_seen(slowed),
        control=_seen(control),
        detected=detected,
        quiet=quiet,
        passed=detected and quiet,
    )


def throttled(trials: Sequence[TrialRecord]) -> float | None:
    """The share of periods in which the quota stopped the slowed environment's node; None when nothing counted."""
    counted = [
        counters
        for trial in trials
        if trial.environment == SLOWED
        for counters in trial.counters.values()
        if "cpu_periods" in counters
    ]
    periods = sum(one["cpu_periods"] for one in counted)
    return sum(one.get("cpu_throttled_periods", 0.0) for one in counted) / periods if periods else None


def _seen(item: Comparison) -> Seen:
    return Seen(
        n=item.n,
        ratio=item.ratio,
        low=item.low,
        high=item.high,
        verdict=item.verdict.value,
        sentence=item.sentence,
    )


def _failures(analysis: Analysis) -> str:
    several: Sequence[str] = [f"{failure.trial}: {failure.reason}" for failure in analysis.failures[:5]]
    return "\n".join(several)
