"""M and H: ranks, the problem that was solved, and what hpcc says of its own results."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.audit.imported.evidence import runs, told, values, where
from vtax.evidence.campaign import Evidence, blocker, info, shown, warning
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


def problem(evidence: Evidence) -> Iterator[Finding]:
    """M04: another version, another problem or another number of ranks than in the reference."""
    reference = evidence.reference
    for benchmark, fact in (("hpcc", "hpcc_version"), ("hpl", "hpl_version")):
        found = told(evidence, fact, benchmark)
        for environment, theirs in found.items():
            if environment != reference and reference in found and theirs != found[reference]:
                message = f"{benchmark} is {shown(theirs)} in {environment}, {shown(found[reference])} in {reference}"
                yield blocker("M04", message, "use one version", environment, benchmark)
    for benchmark in ("hpcc", "hpl"):
        labels: dict[str, set[str]] = {}
        for trial, _ in runs(evidence, benchmark):
            labels.setdefault(trial.environment, set()).add(trial.label)
        for environment, solved in labels.items():
            if environment != reference and reference in labels and not solved & labels[reference]:
                message = (
                    f"no problem was solved in both: {shown(sorted(solved))} in {environment}, "
                    f"{shown(sorted(labels[reference]))} in {reference}"
                )
                yield blocker("M04", message, "same N, NB, P, Q and ranks everywhere", environment, benchmark)


def residuals(evidence: Evidence) -> Iterator[Finding]:
    """H01: results that failed their own check, or have none."""
    for trial, facts in runs(evidence, "hpcc", "hpl"):
        failed = facts.get("residuals_failed", 0)
        if failed or facts.get("success") is False or facts.get("residual_missing"):
            what = f"{failed} systems solved wrongly" if failed else "no proof that its results are right"
            message = f"{where(trial)} in {trial.environment}: {what}; they are no speed and are refused"
            yield blocker("H01", message, "find out why before measuring again", trial.environment, trial.label)


def short(evidence: Evidence) -> Iterator[Finding]:
    """H03: HPL shorter than a minute, or on more memory than the nodes have."""
    memory = {}
    for trial, facts in runs(evidence):
        nodes = facts.get("ranks_on_nodes")
        if isinstance(facts.get("memory_bytes"), int) and isinstance(nodes, dict):
            memory[trial.environment] = facts["memory_bytes"] * len(nodes)
    for trial, facts in runs(evidence, "hpcc", "hpl"):
        time_s, size = facts.get("hpl_time_s"), facts.get("hpl")
        order = size.get("n", 0) if isinstance(size, dict) else 0
        label = (trial.environment, trial.label)
        if isinstance(time_s, float) and time_s < SHORTEST_S:
            message = (
                f"{where(trial)} in {trial.environment}: HPL took {time_s:.3g} s for N = {order}: noise weighs much"
            )
            yield warning("H03", message, f"raise N until it takes {SHORTEST_S:g} s or more", *label)
        if 8 * order**2 > memory.get(trial.environment, float("inf")):
            message = (
                f"{where(trial)} in {trial.environment}: N = {order} needs more than the nodes' memory: swap decides"
            )
            yield blocker("H03", message, "lower N", *label)


def best_of_many(evidence: Evidence) -> Iterator[Finding]:
    """H04: hpcc keeps the best of several systems."""
    for trial, facts in runs(evidence, "hpcc"):
        rows = facts.get("hpl_rows", 0)
        if isinstance(rows, int) and rows > 1:
            message = f"{where(trial)} in {trial.environment}: HPL is the best of {rows} systems, not their mean"
            yield warning("H04", message, "give hpcc one size, and repeat the run", trial.environment, trial.label)


def per_process(evidence: Evidence) -> Iterator[Finding]:
    """H05: Star figures are of one process."""
    for environment in {trial.environment: 0 for trial, _ in runs(evidence, "hpcc")}:
        rates = values(evidence, environment, "hpcc", "StarSTREAM_Triad")
        processes = values(evidence, environment, "hpcc", "CommWorldProcs")
        if rates and processes and max(processes) > 1:
            each, all_ = (format_quantity(median(rates) * times, "byte/s") for times in (1, max(processes)))
            message = (
                f"Star figures in {environment} are per process: {each} each, about {all_} together (STREAM Triad)"
            )
            yield info("H05", message, "multiply only to compare with a whole machine", environment, "hpcc")


def random_access(evidence: Evidence) -> Iterator[Finding]:
    """H07: RandomAccess that ran out of time."""
    for trial, facts in runs(evidence, "hpcc"):
        made = facts.get("MPIRandomAccess_updates_a_word")
        if isinstance(made, float) and made < 4:
            message = (
                f"{where(trial)} in {trial.environment}: MPIRandomAccess made {made:.2f} updates a word instead of 4: "
                "its time was over first"
            )
            yield warning("H07", message, "read it as a rate over its time bound", trial.environment, trial.label)


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
