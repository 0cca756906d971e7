"""S01, S02: bogus operations mean something only against the very same test, and hide time in which nothing ran."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.evidence.settings import differing, sentences, settings_of
from vtax.evidence.stolen import STOLEN, THROTTLED, stolen
from vtax.model.finding import Severity
from vtax.model.plan import Origin

WHOLE_CPU = 0.9
NEVER_WAIT = ("cpu", "vm", "io")  # stressors whose workers never wait for a device


@row(
    "S01",
    Severity.BLOCKER,
    "bogo operations of different versions, methods, instances or durations of stress-ng",
    short="other settings of stress-ng",
    why="a bogo operation is whatever one stressor's loop does in one version; stress-ng is not a precise benchmark "
    "and says so",
    remedy="give all environments the same stress-ng, stressor, method, number of workers and time",
    source="stress-ng's log (the version needs --verbose)",
    benchmarks=("stress-ng",),
    needs=Needs("versions and methods", facts=("stress_ng_version", "settings")),
)
def bogo_operations(evidence: Evidence) -> Iterator[Result]:
    """S01: whether every environment ran the same stressors."""
    known = settings_of(evidence, "stress_ng_version")
    unnamed = [entry for entry, each in known.items() if "version" not in each]
    for environment, label in unnamed:
        message = f"the log of {label} in {environment} does not name the version of stress-ng (--verbose does)"
        yield Undecided(message, environment, label)
    if evidence.plan.origin is Origin.IMPORTED:  # nothing else shows that all ran one version
        for environment in dict.fromkeys(environment for environment, _ in unnamed):
            message = f"the logs of stress-ng in {environment} do not name its version (--verbose does)"
            yield Failed(message, environment, "stress-ng", Severity.WARNING)
    yield from differing(evidence, known)
    yield from sentences(known)


@row(
    "S02",
    Severity.WARNING,
    "operations per CPU second where the CPU was taken away",
    short="CPU time taken away from stress-ng",
    why="the rate by CPU time leaves out the time in which a worker did not run, so it hides what virtualization costs",
    remedy="compare `bogo_ops_rate_real`, the rate by wall time; give every worker a CPU",
    source="steal on the machine and in the nodes, and throttling, around every trial; in logs the CPU time of workers",
    note="a note where an environment and what it is compared with have it alike: it is then about what the number "
    "means",
    benchmarks=("stress-ng",),
    needs=(
        Needs("steal", counters=("steal_ticks", "trial_steal_ticks"), origin=Origin.RUN),
        Needs("the CPU time of workers", facts=("cpu_share_of_worker",), origin=Origin.IMPORTED),
    ),
)
def cpu_time_rate(evidence: Evidence) -> Iterator[Result]:
    """S02: rates by CPU time with steal or throttling, or of workers that shared CPUs."""
    if evidence.plan.origin is Origin.IMPORTED:
        yield from shared_cpus(evidence)
        return
    taken: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries().items():
        lost = stolen(evidence, trials)
        counted = [node for trial in trials for node in evidence.counters.get(trial.id, {}).values()]
        periods = sum(node.get("cpu_periods", 0.0) for node in counted)
        stopped = sum(node.get("cpu_throttled_periods", 0.0) for node in counted) / periods if periods else 0.0
        if lost is None:
            yield Undecided(f"{label} in {environment}: steal was not counted", environment, label)
        elif lost > STOLEN or stopped > THROTTLED:
            message = f"{label} in {environment}: {lost:.1%} of the CPU time stolen, {stopped:.1%} of periods throttled"
            taken[environment, label] = Failed(message, environment, label, metrics=("bogo_ops_rate_cpu",))
        else:
            taken[environment, label] = None
            yield f"{label} in {environment}: {lost:.1%} stolen, {stopped:.1%} throttled"
    yield from weighed(evidence, taken, Severity.WARNING)


def shared_cpus(evidence: Evidence) -> Iterator[Result]:
    """Of logs: workers that had less than a CPU each."""
    for trial in evidence.trials:
        for facts in evidence.facts((trial,), "cpu_share_of_worker"):
            for stressor, share in facts["cpu_share_of_worker"].items():
                said = f"a worker of {stressor} had {share:.0%} of a CPU"
                if stressor in NEVER_WAIT and share < WHOLE_CPU:
                    message = (
                        f"{evidence.name_of(trial)}: {said}: there were more workers than CPUs, which the rate per CPU "
                        "second (usr+sys) hides"
                    )
                    yield Failed(message, trial.environment, trial.label)
                else:
                    yield f"{trial.label} in {trial.environment}: {said}"
