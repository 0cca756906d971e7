"""S and O: scores that compare only with themselves, shared CPUs, memory that ran out, runs that were short."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.audit.imported.evidence import against_reference, runs, told, where
from vtax.evidence.campaign import Evidence, blocker, shown, warning
from vtax.model.finding import Finding

SHORTEST_S = 1.0
WHOLE_CPU = 0.9
BUSY = ("cpu", "vm", "io")  # stressors whose workers never wait for a device
SYSBENCH = ("sysbench-cpu", "sysbench-memory", "sysbench-fileio")


def stress_ng(evidence: Evidence) -> Iterator[Finding]:
    """S01: bogus operations of other versions or commands of stress-ng."""
    remedy = "compare bogo ops only of one version, stressor, method and number of workers"
    for fact, words in (
        ("stress_ng_version", "stress-ng is version"),
        ("stress_ng_wording", "two versions of stress-ng, which word a line otherwise:"),
        ("method", "the stressors' method is"),
    ):
        for environment, theirs, ours in against_reference(told(evidence, fact, "stress-ng"), evidence.reference):
            message = f"{words} {theirs!r} in {environment}, {ours!r} in {evidence.reference}"
            yield blocker("S01", message, remedy, environment, "stress-ng")
    for environment in told(evidence, "stress_ng_wording", "stress-ng"):
        if environment not in told(evidence, "stress_ng_version", "stress-ng"):
            message = f"the logs of stress-ng in {environment} do not say its version (only --verbose does)"
            yield warning("S01", message, remedy, environment, "stress-ng")


def cpu_shares(evidence: Evidence) -> Iterator[Finding]:
    """S02: workers that shared CPUs: the rate per CPU second hides it."""
    for trial, facts in runs(evidence, "stress-ng"):
        shares = facts.get("cpu_share_of_worker")
        for stressor, share in shares.items() if isinstance(shares, dict) else ():
            if stressor in BUSY and share < WHOLE_CPU:
                message = (
                    f"{where(trial)} in {trial.environment}: a worker of {stressor} had {share:.0%} of a CPU: more "
                    "workers than CPUs, which the rate per CPU second (usr+sys) hides"
                )
                yield warning(
                    "S02", message, "one worker a CPU; read the real-time rate", trial.environment, trial.label
                )


def sysbench(evidence: Evidence) -> Iterator[Finding]:
    """S03: another sysbench, or other work in it."""
    remedy = "one version, one limit, one number of threads; compare events a second"
    for benchmark in SYSBENCH:
        found = told(evidence, "sysbench_version", benchmark)
        for environment, theirs, ours in against_reference(found, evidence.reference):
            message = f"{benchmark} is sysbench {theirs} in {environment}, {ours} in {evidence.reference}"
            yield blocker("S03", message, remedy, environment, benchmark)
        labels: dict[str, list[str]] = {}
        for trial, _ in runs(evidence, benchmark):
            labels.setdefault(trial.environment, []).append(trial.label)
        ours_ = labels.get(evidence.reference)
        for environment, theirs_ in labels.items():
            alone = sorted(set(theirs_) ^ set(ours_ or theirs_))
            if environment != evidence.reference and alone:
                message = f"{benchmark} did work in one of {environment} and {evidence.reference} only: {shown(alone)}"
                yield warning("S03", message, remedy, environment, benchmark)


def killed(evidence: Evidence) -> Iterator[Finding]:
    """O01: workers that were killed for lack of memory."""
    for trial, facts in runs(evidence):
        kills = facts.get("oom_kills")
        if isinstance(kills, int) and kills > 0:
            message = (
                f"{where(trial)} in {trial.environment}: workers were killed for lack of memory {kills} times and "
                "started again: the rate is of starting over"
            )
            yield blocker("O01", message, "ask for less memory than the nodes have", trial.environment, trial.label)


def too_short(evidence: Evidence) -> Iterator[Finding]:
    """O05: runs of less than a second."""
    for trial, facts in runs(evidence, *SYSBENCH, "iperf3"):
        time_s = facts.get("total_time_s", trial.elapsed_s)
        if isinstance(time_s, float) and 0 < time_s < SHORTEST_S:
            message = f"{where(trial)} in {trial.environment} took {time_s:.3g} s: starting up is a large part of that"
            yield warning("O05", message, "give it more work", trial.environment, trial.label)
