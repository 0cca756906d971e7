"""M and H: ranks, the problem that was solved, and what hpcc says of its own results."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.audit.imported.evidence import runs, told, values, where
from vtax.evidence.campaign import Evidence, blocker, shown, warning
from vtax.model.finding import Finding
from vtax.units import format_quantity

SHORTEST_S = 60.0
FAR = 10.0  # times: message latencies of two environments so far apart come from different paths
COARSE_S = 1e-6


def placement(evidence: Evidence) -> Iterator[Finding]:
    """M01: ranks that are not spread evenly over the nodes that the log names."""
    for trial, facts in runs(evidence):
        nodes = facts.get("ranks_on_nodes")
        if (
            isinstance(nodes, dict)
            and sum(nodes.values()) > 1
            and (len(set(nodes.values())) > 1 or (len(nodes) == 1 and "," in str(facts.get("hosts", ""))))
        ):
            spread = shown([f"{count} on {name}" for name, count in nodes.items()])
            message = f"{where(trial)} in {trial.environment}: ranks are unevenly placed: {spread}"
            yield blocker("M01", message, "place as many ranks on each node", trial.environment, trial.label)


def unused_ranks(evidence: Evidence) -> Iterator[Finding]:
    """M01: a grid of HPL that leaves ranks idle."""
    for trial, _ in runs(evidence, "hpcc"):
        p, q, ranks = (trial.params.get(name) for name in ("p", "q", "ranks"))
        if isinstance(p, int) and isinstance(q, int) and isinstance(ranks, int) and p * q < ranks:
            message = (
                f"{where(trial)} in {trial.environment}: HPL and PTRANS ran on {p * q} of {ranks} processes "
                f"(P x Q = {p} x {q}); the others were idle, and nothing crossed the network"
            )
            yield warning("M01", message, "choose P x Q = the number of processes", trial.environment, trial.label)


def bound_threads(evidence: Evidence) -> Iterator[Finding]:
    """M05: more threads than the CPUs that a rank is bound to, or that it got."""
    for trial, facts in runs(evidence, "sysbench-cpu", "sysbench-memory"):
        threads = trial.params.get("threads")
        if not isinstance(threads, int) or threads < 2:
            continue
        bound = facts.get("bind_to") in ("core", "hwthread")
        imbalance = facts.get("thread_imbalance", 0.0)
        one_worked = isinstance(imbalance, float) and threads == 2 and imbalance > 0.9
        if bound or one_worked:
            why = f"mpirun --bind-to {facts.get('bind_to')} leaves each rank one core" if bound else ""
            told_ = "one thread did all the events" if one_worked else ""
            message = (
                f"{where(trial)} in {trial.environment}: {threads} threads a rank, but "
                f"{', and '.join(part for part in (why, told_) if part)}: this measures the scheduler"
            )
            yield blocker("M05", message, "--bind-to none, or --map-by :PE=2", trial.environment, trial.label)


def transport(evidence: Evidence) -> Iterator[Finding]:
    """M03: message latencies that no common path explains."""
    latencies = {
        environment: median(found)
        for environment in {trial.environment: 0 for trial, _ in runs(evidence, "hpcc")}
        if (found := values(evidence, environment, "hpcc", "MaxPingPongLatency"))
    }
    ours = latencies.get(evidence.reference)
    for environment, latency in latencies.items():
        if ours and environment != evidence.reference and not 1 / FAR <= latency / ours <= FAR:
            message = (
                f"the slowest pair of ranks needs {format_quantity(latency, 's')} for a message in {environment} and "
                f"{format_quantity(ours, 's')} in {evidence.reference}: another MPI transport, or ranks on one machine"
            )
            yield warning("M03", message, "find out with --mca btl_base_verbose 30", environment, "hpcc")


def timer(evidence: Evidence) -> Iterator[Finding]:
    """O03: a timer of MPI that is too coarse for what was timed, or differs."""
    found = told(evidence, "MPI_Wtick", "hpcc")
    for environment, ticks in found.items():
        if max(map(float, ticks)) > COARSE_S:
            message = (
                f"MPI's timer in {environment} says that it ticks every {max(map(float, ticks)):g} s: "
                "latencies of microseconds are below it"
            )
            yield warning("O03", message, "repeat them with an MPI whose timer is finer", environment, "hpcc")
        elif found.get(evidence.reference, ticks) != ticks:
            message = (
                f"MPI's timer ticks every {shown(ticks)} s in {environment}, {shown(found[evidence.reference])} s there"
            )
            yield warning("O03", message, "use one MPI", environment, "hpcc")
