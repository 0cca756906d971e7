"""O: memory pressure, clocks, and runs too short to tell."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.audit.evidence import Evidence, blocker, differences, shown, unknown, warning
from vtax.model import Finding, Status, TrialRecord

SHORTEST_S = 1.0
SHORT_BY_NATURE = frozenset({"ping"})  # its result is of single packets, not of the run's length
PRESSURE = {
    "oom_kills": "processes were killed for lack of memory",
    "swap_in_pages": "pages came back from swap",
    "swap_out_pages": "pages were swapped out",
}


def memory_pressure(evidence: Evidence) -> tuple[Finding, ...]:
    """O01: swapping or processes killed for lack of memory, in any trial."""
    ran = [trial for trial in evidence.trials if trial.status is not Status.NOT_RUN]
    if ran and not any(evidence.counters.get(trial.id) for trial in ran):
        return (
            unknown("O01", "no counters were read around the trials, so swapping and OOM kills cannot be excluded"),
        )
    found = []
    for label, environment in dict.fromkeys((trial.label, trial.environment) for trial in ran):
        trials = [trial for trial in ran if (trial.label, trial.environment) == (label, environment)]
        words = [
            f"{total:.0f} {text}"
            for name, text in PRESSURE.items()
            if (total := sum(counted(evidence, trials, name))) > 0
        ]
        if words:
            message = f"{label} in {environment}: {shown(words)}; memory pressure distorted the runs"
            remedy = "give the nodes more memory, or the benchmark a smaller size"
            found.append(blocker("O01", message, remedy, environment, label))
    return tuple(found)


def counted(evidence: Evidence, trials: list[TrialRecord], name: str) -> Iterator[float]:
    """What each trial counted. Nodes may share a kernel and all show its counters: the largest stands for all."""
    for trial in trials:
        nodes = evidence.counters.get(trial.id, {}).values()
        yield max((node[name] for node in nodes if name in node), default=0.0)


def clock_source(evidence: Evidence) -> tuple[Finding, ...]:
    """O03: another clock source than in the reference."""
    return tuple(
        warning(
            "O03",
            f"the clock source is {shown(one.theirs)} in {one.environment} and {shown(one.reference)} in "
            f"{evidence.reference}: reading the time costs more in one of them, and may be less exact",
            "give the guest a stable TSC, and compare times with those taken outside",
            one.environment,
        )
        for one in differences(evidence, "clock_source")
    )


def too_short(evidence: Evidence) -> tuple[Finding, ...]:
    """O05: runs shorter than a second, of which starting up is a large part."""
    runs: dict[tuple[str, str], list[float]] = {}
    for trial in evidence.trials:
        if trial.status is Status.OK and not trial.warmup and trial.benchmark not in SHORT_BY_NATURE:
            runs.setdefault((trial.environment, trial.label), []).append(duration_s(trial))
    return tuple(
        warning(
            "O05",
            f"{len(short)} of {len(times)} runs of {label} in {environment} took less than {SHORTEST_S:g} s (shortest "
            f"{min(times):.2f} s): starting up is a large part of that",
            "give it more work, so that it runs for ten seconds or more",
            environment,
            label,
        )
        for (environment, label), times in runs.items()
        if (short := [time for time in times if time < SHORTEST_S])
    )


def duration_s(trial: TrialRecord) -> float:
    """How long the measured step took: the longest that does not run beside others (some only prepare or clean up)."""
    return max((step.elapsed_s for step in trial.steps if not step.background), default=trial.elapsed_s)
