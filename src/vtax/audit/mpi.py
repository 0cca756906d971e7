"""M: whether the ranks of parallel programs ran where the plan has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import median

from vtax.audit.subjects import MPI, STORAGE
from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, against_first, observed, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.facts.cpu import cpu_list
from vtax.launchers import COMMANDS, started
from vtax.model.capabilities import NodeKind
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape, NodeShape, Scope
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord
from vtax.units import format_quantity

PLACEMENT = re.compile(r"mpi placement (\w+): (.+)")
COUNT = re.compile(r"(?<![\w.-])([\w.-]{1,200})=([0-9]{1,9})\b", re.ASCII)
PARALLEL = (Scope.WORKERS, Scope.CLUSTER)
WORLD = re.compile(r"mpi world (\w+): ([0-9]{1,6}) ranks, each of which sees all")
MEMORY = re.compile(r"mpi memory \w+: ranks of a node cannot read each other's memory \((.{1,200})\)")
BINDING = re.compile(r"mpi binding (\w+): (.+)")
BOUND = re.compile(r"(?<!\S)([^\s=]{1,200})=([0-9][0-9,-]{0,20000})(?: |$)")
FAR = 10.0  # times: message latencies of two environments so far apart come from different paths
ONE_WORKED = 0.9  # of two threads: the share of the events by which they differ


@row(
    "M01",
    Severity.BLOCKER,
    "ranks are unevenly placed, on other nodes than planned, or idle",
    short="misplaced ranks",
    why="nodes then do unequal work, and messages take another path",
    remedy="place as many ranks on each node as the plan has; vtax verifies that when a cluster is made",
    source="asked of every new cluster by an MPI program that prints host and rank; in logs the nodes of the ranks, or "
    "their number and the grid of the problem",
    scopes=PARALLEL,
    needs=(
        Needs("the verified placement of MPI ranks", checks="mpi placement", origin=Origin.RUN),
        Needs(
            "the nodes of the ranks, or their number and P x Q",
            facts=("ranks_on_nodes", "systems"),
            origin=Origin.IMPORTED,
        ),
    ),
)
def placement(evidence: Evidence) -> Iterator[Result]:
    """M01: the ranks on every node. The host environment is one machine and has their sum."""
    yield from verified(evidence)
    for trial in evidence.trials:
        where = evidence.name_of(trial)
        for facts in evidence.facts((trial,), "ranks_on_nodes"):
            nodes, hosts = facts["ranks_on_nodes"], str(facts.get("hosts", ""))
            uneven = len(set(nodes.values())) > 1 or (len(nodes) == 1 and "," in hosts)
            spread = shown([f"{count} on {name}" for name, count in nodes.items()])
            if uneven and sum(nodes.values()) > 1:
                yield Failed(f"{where}: ranks are unevenly placed: {spread}", trial.environment, trial.label)
            else:
                yield f"{trial.label} in {trial.environment}: {spread}"
        p, q, ranks = (trial.params.get(name) for name in ("p", "q", "ranks"))
        if isinstance(p, int) and isinstance(q, int) and isinstance(ranks, int):
            used = f"{p * q} of {ranks} processes (P x Q = {p} x {q})"
            if p * q < ranks:
                message = f"{where}: the problem was solved on {used}; the others were idle"
                remedy = "choose P x Q = the number of processes"
                yield Failed(message, trial.environment, trial.label, Severity.WARNING, remedy)
            else:
                yield f"{trial.label} in {trial.environment}: {used}"


def verified(evidence: Evidence) -> Iterator[Result]:
    """The placement that was verified when each cluster was made, against the plan."""
    wanted = {work.target.scope for work in evidence.plan.work if work.target.scope in PARALLEL}
    found: dict[tuple[str, str], Failed | Undecided] = {}
    for cell in (cell for cell in evidence.provisioned if evidence.plan.origin is Origin.RUN):
        ranks = placements(cell)
        for scope in sorted(wanted):
            if scope.value not in ranks:
                missing = f"cell {cell.cell}: not recorded: the verified placement of MPI ranks on its {scope.value}"
                found.setdefault((cell.environment, "unknown"), Undecided(missing, cell.environment))
            elif wrong := misplaced(ranks[scope.value], of_scope(evidence.plan.shape, scope), cell.environment):
                message = f"cell {cell.cell}, {scope.value}: {wrong}, so nodes did unequal work"
                found.setdefault((cell.environment, "wrong"), Failed(message, cell.environment))
            else:
                where = " ".join(f"{node}={count}" for node, count in ranks[scope.value].items())
                yield f"{cell.environment}, {scope.value}: ranks {where}"
    yield from found.values()


def placements(cell: CellRecord) -> dict[str, dict[str, int]]:
    """Scope -> node -> ranks, from the checks that passed when the cell's cluster was made."""
    lines = (PLACEMENT.match(check) for check in cell.checks)
    return {line[1]: {name: int(count) for name, count in COUNT.findall(line[2])} for line in lines if line}


def of_scope(shape: ClusterShape, scope: Scope) -> tuple[NodeShape, ...]:
    return shape.workers if scope is Scope.WORKERS else shape.nodes


def misplaced(ranks: dict[str, int], nodes: tuple[NodeShape, ...], environment: str) -> str:
    """What is wrong with the ranks of each node, one for each of its CPUs; "" when nothing is. Those of an environment
    whose nodes are one machine are recorded under its own name, together."""
    planned = {node.name: node.cpus for node in nodes}
    total = sum(ranks.values())
    together = len(planned) > 1 or environment in ranks
    if len(ranks) == 1 and together and not ranks.keys() & planned.keys():
        expected = sum(planned.values())
        return "" if total == expected else f"{total} ranks on {next(iter(ranks))}; expected {expected}"
    wrong = [
        f"{ranks.get(name, 0)} of {total} ranks on {name}; expected {planned.get(name, 0)}"
        for name in dict.fromkeys((*planned, *ranks))
        if ranks.get(name, 0) != planned.get(name, 0)
    ]
    return wrong[0] if wrong else ""


@row(
    "M02",
    Severity.WARNING,
    "ranks are not bound, or share CPUs",
    short="ranks not bound",
    why="ranks wait for messages without sleeping: two of them on one CPU measure the scheduler",
    remedy="use fewer ranks per node, or nodes with more CPUs",
    source="the allowed CPUs of every rank, asked of every new cluster",
    note="a note where an environment and what it is compared with have it alike: it is then about what the number "
    "means",
    scopes=PARALLEL,
    needs=Needs("the CPUs of the ranks", checks="mpi binding", origin=Origin.RUN),
)
def binding(evidence: Evidence) -> Iterator[Result]:
    """M02: CPUs that two ranks of a node may use."""
    overlapping: dict[tuple[str, str], Failed | None] = {}
    for environment in evidence.environments:
        lines = [line for check in evidence.checks(environment) if (line := BINDING.match(check))]
        for line in {found[0]: found for found in lines}.values():
            if shared := shared_by_ranks(line[2]):
                message = f"{line[1]} in {environment}: two ranks may use CPU {shared}"
                overlapping[environment, ""] = Failed(message, environment)
            else:
                overlapping.setdefault((environment, ""), None)
                yield f"{environment}, {line[1]}: {line[2]}"
    yield from weighed(evidence, overlapping, Severity.WARNING)


def shared_by_ranks(text: str) -> str:
    """`worker1 CPU 2` when two ranks of a host may use the same CPU; "" when none do."""
    taken: dict[str, set[int]] = {}
    for host, cpus in BOUND.findall(text):
        both = taken.setdefault(host, set()) & set(cpu_list(cpus))
        if both:
            return f"{min(both)} of {host}"
        taken[host] |= set(cpu_list(cpus))
    return ""


@row(
    "M03",
    Severity.WARNING,
    "messages between ranks take another path than in the baseline",
    short="another path between ranks",
    why="shared memory is ten times as fast as TCP, so a part of any difference is the path and not virtualization",
    remedy='set `mpi_transport = "tcp"`, so that the host uses TCP as nodes must; the ladder preset shows that step '
    "alone. Of imported logs, repeat the run with --mca btl_base_verbose 30",
    source="the command line of the launcher, whether ranks of a new cluster can read each other's memory, and what "
    "Open MPI prints when single copies fail; in logs the latencies of messages",
    benchmarks=MPI,
    needs=(
        Needs("the command line of the launcher", programs=COMMANDS, origin=Origin.RUN),
        Needs("latencies of messages", metrics=("MaxPingPongLatency",), compares=True, origin=Origin.IMPORTED),
    ),
)
def transport(evidence: Evidence) -> Iterator[Result]:
    """M03: shared memory or TCP, inside a node and between nodes."""
    paths: dict[tuple[str, str], str] = {}
    for (environment, label), trials in evidence.entries().items():
        commands = (started(step.argv) for trial in trials for step in trial.steps)
        one_node = all(len(trial.nodes) == 1 for trial in trials)
        if known := {_path(command.path, one_node=one_node) for command in commands if command and command.path}:
            paths[environment, label] = shown(sorted(known))
        refused = [found[1] for check in evidence.checks(environment) if (found := MEMORY.match(check))]
        if refused and "shared memory" in paths.get((environment, label), ""):
            message = (
                f"{label} in {environment}: ranks of a node cannot read each other's memory ({refused[0]}), so that "
                "messages between them take two copies"
            )
            remedy = "allow process_vm_readv (ptrace capability, and one user namespace for all ranks of a node)"
            yield Failed(message, environment, label, remedy=remedy)
        if evidence.facts(trials, "single_copy_failures"):
            message = (
                f"{label} in {environment}: Open MPI could not copy between ranks directly and fell back to two copies"
            )
            remedy = "allow process_vm_readv in the container (ptrace capability)"
            yield Failed(message, environment, label, remedy=remedy)
    for environment, label, theirs, first, ours in against_first(evidence, paths):
        yield Failed(f"{label}: {theirs} in {environment}, {ours} in {first}", environment, label)
    yield from (f"{label} in {environment}: {path}" for (environment, label), path in paths.items())
    if evidence.plan.origin is Origin.IMPORTED:
        yield from latencies(evidence)


def _path(path: str, *, one_node: bool) -> str:
    """The path of messages that there are: of one node, no message leaves it."""
    return path.partition(" inside")[0].partition(" between")[0] if one_node else path


def latencies(evidence: Evidence) -> Iterator[Result]:
    """Message latencies that the same path cannot explain."""
    found: dict[str, dict[str, list[float]]] = {}
    for (environment, label), trials in evidence.entries().items():
        if values := evidence.values(environment, label, "MaxPingPongLatency"):
            found.setdefault(trials[0].benchmark, {}).setdefault(environment, []).extend(values)
    for benchmark, several in found.items():
        times = {environment: median(values) for environment, values in several.items()}
        ours = times.get(evidence.reference)
        for environment, latency in times.items():
            if ours is None or environment == evidence.reference:
                continue
            here, there = (format_quantity(each, "s") for each in (latency, ours))
            said = f"a message between the slowest pair of ranks takes {here} in {environment} and {there} in "
            if 1 / FAR <= latency / ours <= FAR:
                yield said + evidence.reference
            else:
                message = f"{said}{evidence.reference}: another MPI transport, or ranks on one machine"
                yield Failed(message, environment, benchmark)


@row(
    "M07",
    Severity.BLOCKER,
    "ranks do not see each other, or are not as many as planned",
    short="ranks that do not form one world",
    why="each rank then does all the work alone, without messages, and every exit code is 0: it looks fast",
    remedy="start ranks by a launcher that the MPI library was built for, with PMIx of the same major version",
    source="asked of every new cluster by an MPI program that is started as benchmarks are",
    scopes=PARALLEL,
    needs=Needs("the size of the world that ranks see", checks="mpi world", origin=Origin.RUN),
)
def world(evidence: Evidence) -> Iterator[Result]:
    """M07: the verified world of each cluster, against the plan."""
    for environment in evidence.environments:
        lines = [found for check in evidence.checks(environment) if (found := WORLD.match(check))]
        for scope, size in dict.fromkeys((line[1], int(line[2])) for line in lines):
            planned = sum(node.cpus for node in of_scope(evidence.plan.shape, Scope(scope))) if scope in PARALLEL else 0
            said = f"{environment}, {scope}: {size} ranks that see each other"
            if size == planned:
                yield said
            else:
                yield Failed(f"{said}; the plan has {planned}", environment)


@row(
    "M05",
    Severity.BLOCKER,
    "more threads than CPUs",
    short="more threads than CPUs",
    why="threads then wait for each other; a BLAS counts the CPUs of the machine and ignores a quota",
    remedy="set `threads` and `ranks_per_node` so that their product is the number of CPUs of a node; of imported "
    "logs, run mpirun with --bind-to none, or --map-by :PE=2",
    source="the command lines and the threads that a tool reports, against the CPUs and the quota of the nodes; in "
    "logs how ranks were bound, and how threads shared the work",
    note="a warning where an environment and what it is compared with have too few CPUs alike",
    needs=(
        Needs("the CPUs that its nodes may use", node=("cpus_allowed",), origin=Origin.RUN),
        Needs("threads, and how they shared the work", facts=("thread_imbalance", "bind_to"), origin=Origin.IMPORTED),
    ),
)
def threads(evidence: Evidence) -> Iterator[Result]:
    """M05: ranks times threads of MPI programs, threads that a tool reports, against usable CPUs."""
    crowded: dict[bool, dict[tuple[str, str], Failed | None]] = {True: {}, False: {}}
    for (environment, label), trials in evidence.entries().items():
        if evidence.plan.origin is Origin.IMPORTED:
            yield from (each for trial in trials for each in bound_threads(evidence, trial))
            continue
        wanted = max((count for trial in trials if (count := threads_of(evidence, trial)) is not None), default=None)
        if wanted is None:
            continue
        cpus = usable(evidence, environment, trials[0].nodes)
        said = f"{label} in {environment}: {wanted} threads on"
        if cpus is None:
            yield Undecided(f"{said} an unknown number of CPUs", environment, label)
        elif wanted > cpus:
            mpi = trials[0].benchmark in MPI
            crowded[mpi][environment, label] = Failed(f"{said} {cpus:g} CPUs", environment, label)
        else:
            crowded[trials[0].benchmark in MPI][environment, label] = None
            yield f"{said} {cpus:g} CPUs"
    yield from weighed(evidence, crowded[True], Severity.BLOCKER, alike=Severity.WARNING)
    yield from weighed(evidence, crowded[False], Severity.WARNING)


def bound_threads(evidence: Evidence, trial: TrialRecord) -> Iterator[Result]:
    """Of a log: more threads than the CPUs that a rank is bound to, or that it got."""
    count = trial.params.get("threads")
    if not isinstance(count, int) or trial.benchmark in STORAGE:  # threads that wait for disks do not need CPUs
        return
    for facts in evidence.facts_of(trial):
        bind_to, imbalance = facts.get("bind_to"), facts.get("thread_imbalance", 0.0)
        reasons = [f"mpirun --bind-to {bind_to} leaves each rank one core"] if bind_to in ("core", "hwthread") else []
        reasons += ["one thread did all the events"] if count == 2 and float(imbalance) > ONE_WORKED else []
        if count > 1 and reasons:
            message = (
                f"{evidence.name_of(trial)}: {count} threads per rank, but "
                f"{', and '.join(reasons)}: this measures the scheduler"
            )
            yield Failed(message, trial.environment, trial.label)
        else:
            yield f"{trial.label} in {trial.environment}: {count} thread{'' if count == 1 else 's'} per rank"


def threads_of(evidence: Evidence, record: TrialRecord) -> int | None:
    """Threads of all nodes of a trial together, as far as its command line or its output says."""
    for step in record.steps:
        if found := started(step.argv):
            return found.ranks * found.threads
    counts = [int(facts["threads"]) for facts in evidence.facts((record,), "threads")]
    return max(counts) * max(1, len(record.nodes)) if counts else None


def usable(evidence: Evidence, environment: str, nodes: tuple[str, ...]) -> float | None:
    """CPUs of these nodes together; those that nodes of one machine share count once, and so do those that all nodes of
    a study share in every environment."""
    facts: Mapping[str, Mapping[str, object]] = dict(observed(evidence, environment))
    counted: set[object] = set()
    quota = 0.0
    for node in nodes:
        values = facts.get(node, {})
        allowed = cpu_list(str(values.get("cpus_allowed", "")))
        if not allowed:
            return None
        shares = evidence.capabilities(environment).kind is NodeKind.HOST
        machine = str(values.get("on_machine", "")) if shares else node
        counted |= {(machine, cpu) for cpu in allowed}
        quota += float(str(values.get("cpu_quota_cpus", len(allowed))))
    if evidence.plan.study.share_cpus:
        planned = {cpu for node in evidence.plan.shape.nodes if node.name in nodes for cpu in node.cpu_ids}
        return min(float(len(planned)), quota) if nodes else None
    return min(float(len(counted)), quota) if nodes else None
