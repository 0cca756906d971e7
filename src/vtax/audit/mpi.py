"""M: whether the ranks of parallel programs ran where the plan has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, against_first, blocker, differences, observed, shown, unknown, warning
from vtax.evidence.row import row
from vtax.facts.cpu import cpu_list
from vtax.model.capabilities import NodeKind
from vtax.model.cluster import CellRecord
from vtax.model.finding import Finding, Severity
from vtax.model.nodes import ClusterShape, NodeShape, Scope
from vtax.model.trial import TrialRecord

PLACEMENT = re.compile(r"mpi placement (\w+): (.+)")
COUNT = re.compile(r"([\w.-]+)=([0-9]{1,9})\b", re.ASCII)
PARALLEL = (Scope.WORKERS, Scope.CLUSTER)
REMEDY = "the placement is verified when a cluster is made; if it was not, repeat the campaign"
BINDING = re.compile(r"mpi binding (\w+): (.+)")
BOUND = re.compile(r"(\S+?)=([0-9][0-9,-]*)(?: |$)")
PROGRAMS = ("hpcc", "hpl")
GRID = re.compile(r"^W[RC]\w+ +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +", re.MULTILINE)
HPCC_VERSION = ("VersionMajor", "VersionMinor", "VersionMicro", "VersionRelease")
SINGLE_COPY_FAILED = re.compile(r"Read -1, expected \d+|process_vm_readv", re.MULTILINE)
THREADS = re.compile(r"^Number of threads: (\d{1,6})\b", re.MULTILINE)


def runs_in_parallel(evidence: Evidence) -> str:
    scopes = {work.target.scope for work in evidence.plan.work} | {trial.scope for trial in evidence.trials}
    return "" if scopes & set(PARALLEL) else "no program runs over several nodes"


@row(
    "M01",
    Severity.BLOCKER,
    "ranks are on other nodes than planned",
    why="nodes then do unequal work, and messages take another path",
    remedy=REMEDY,
    source="asked of every new cluster by an MPI program that prints host and rank; imported logs do not tell",
    applies=runs_in_parallel,
)
def placement(evidence: Evidence) -> Iterator[Finding | str]:
    """M01: the verified number of ranks on every node. The host environment is one machine and has their sum."""
    wanted = {work.target.scope for work in evidence.plan.work if work.target.scope in PARALLEL}
    found: dict[tuple[str, str], Finding] = {}
    for cell in evidence.provisioned:
        told = placements(cell)
        for scope in sorted(wanted):
            if scope.value not in told:
                missing = f"cell {cell.cell} has no verified placement of MPI ranks on its {scope.value}"
                found.setdefault((cell.environment, "unknown"), unknown("M01", missing, cell.environment))
            elif wrong := misplaced(told[scope.value], of_scope(evidence.plan.shape, scope)):
                message = f"cell {cell.cell}, {scope.value}: {wrong}, so nodes did unequal work"
                found.setdefault((cell.environment, "wrong"), blocker("M01", message, REMEDY, cell.environment))
            else:
                where = " ".join(f"{node}={count}" for node, count in told[scope.value].items())
                yield f"{cell.environment}, {scope.value}: ranks {where}"
    yield from found.values()


def placements(cell: CellRecord) -> dict[str, dict[str, int]]:
    """Scope -> node -> ranks, from the checks that passed when the cell's cluster was made."""
    lines = (PLACEMENT.match(check) for check in cell.checks)
    return {line[1]: {name: int(count) for name, count in COUNT.findall(line[2])} for line in lines if line}


def of_scope(shape: ClusterShape, scope: Scope) -> tuple[NodeShape, ...]:
    return shape.workers if scope is Scope.WORKERS else shape.nodes


def misplaced(ranks: dict[str, int], nodes: tuple[NodeShape, ...]) -> str:
    """What is wrong with the ranks of each node, one for each of its CPUs; "" when nothing is."""
    planned = {node.name: node.cpus for node in nodes}
    if len(ranks) == 1 and len(planned) > 1 and not ranks.keys() & planned.keys():
        total, expected = sum(ranks.values()), sum(planned.values())
        return "" if total == expected else f"{total} ranks on {next(iter(ranks))}; expected {expected}"
    total = sum(ranks.values())
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
    why="ranks wait for messages without sleeping: two of them on one CPU measure the scheduler",
    remedy="fewer ranks a node, or nodes with CPUs of their own",
    source="the allowed CPUs of every rank, asked of every new cluster; imported logs do not tell",
    applies=runs_in_parallel,
)
def binding(evidence: Evidence) -> Iterator[Finding | str]:
    """M02: CPUs that two ranks of a node may use."""
    for environment in evidence.environments:
        cells = [cell for cell in evidence.provisioned if cell.environment == environment]
        lines = [line for cell in cells for check in cell.checks if (line := BINDING.match(check))]
        if not lines:
            yield unknown("M02", "the CPUs of the ranks were not asked for", environment)
            continue
        for line in {found[0]: found for found in lines}.values():
            if shared := shared_by_ranks(line[2]):
                message = f"{line[1]} in {environment}: two ranks may use CPU {shared}"
                yield warning("M02", message, "", environment)
            else:
                yield f"{environment}, {line[1]}: {line[2]}"


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
    why="shared memory is ten times as fast as TCP, so a part of any difference is the path and not virtualization",
    remedy='`mpi_transport = "tcp"` makes the host talk over TCP as nodes must; the ladder preset shows that step '
    "alone",
    source="the command line of mpirun, and what Open MPI says when single copies fail; imported logs have the latter",
    benchmarks=PROGRAMS,
)
def transport(evidence: Evidence) -> Iterator[Finding | str]:
    """M03: shared memory or TCP, inside a node and between nodes."""
    told = {}
    for (environment, label), trials in evidence.entries(*PROGRAMS).items():
        paths = {path for trial in trials for step in trial.steps if (path := path_of(step.argv))}
        if paths:
            told[environment, label] = shown(sorted(paths))
        else:
            yield unknown("M03", f"no command line of mpirun is known of {label}", environment, label)
        failed = [trial for trial in trials if SINGLE_COPY_FAILED.search(logs.text_of(trial))]
        if failed:
            message = (
                f"{label} in {environment}: Open MPI could not copy between ranks at once and fell back to two copies"
            )
            yield warning(
                "M03", message, "allow process_vm_readv in the container (ptrace capability)", environment, label
            )
    for environment, label, theirs, first, ours in against_first(evidence, told):
        message = f"{label}: {theirs} in {environment}, {ours} in {first}"
        yield warning("M03", message, "", environment, label)
    yield from (f"{label} in {environment}: {path}" for (environment, label), path in told.items())


def path_of(argv: tuple[str, ...]) -> str:
    """How ranks reach each other, by the words of mpirun; "" for another program."""
    if "mpirun" not in argv or "btl" not in argv:
        return ""
    inside = "shared memory" if "sm" in argv[argv.index("btl") + 1].split(",") else "TCP"
    alone = any(word.startswith("localhost:") for word in argv)
    return f"{inside} between all ranks" if alone else f"{inside} inside a node, TCP between nodes"


@row(
    "M04",
    Severity.BLOCKER,
    "another MPI, another version of the program, or another problem and grid",
    why="then two programs or two problems are compared",
    remedy="give all environments the same root file system and the same parameters",
    source="`mpirun --version` of the nodes; versions, N, NB, P and Q as hpcc and xhpl print them, also in imported "
    "logs",
    benchmarks=PROGRAMS,
)
def problem(evidence: Evidence) -> Iterator[Finding | str]:
    """M04: MPI, versions, sizes and grids."""
    for one in differences(evidence, "mpi_version"):
        message = f"MPI is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in {evidence.reference}"
        for label in evidence.labels_of(*PROGRAMS):
            yield blocker("M04", message, "", one.environment, label)
    told = {}
    for (environment, label), trials in evidence.entries(*PROGRAMS).items():
        solved = sorted({line for trial in trials for line in problem_of(trial)})
        if solved:
            told[environment, label] = shown(solved)
        else:
            yield unknown("M04", f"the log of {label} names no version and no grid", environment, label)
    for environment, label, theirs, first, ours in against_first(evidence, told):
        yield blocker("M04", f"{label} solved {theirs} in {environment}, {ours} in {first}", "", environment, label)
    yield from (f"{label} in {environment}: {said}" for (environment, label), said in told.items())


def problem_of(record: TrialRecord) -> Iterator[str]:
    """The version and the solved problems of a run of hpcc or xhpl."""
    keys = logs.summary(record)
    version = ".".join(keys[name] for name in HPCC_VERSION if name in keys)
    for n, nb, p, q in GRID.findall(logs.text_of(record)):
        yield f"{f'hpcc {version}, ' if version else ''}N={n} NB={nb} P={p} Q={q}"


@row(
    "M05",
    Severity.BLOCKER,
    "more threads than CPUs",
    why="threads then wait for each other; a BLAS counts the CPUs of the machine and ignores a quota",
    remedy="set `threads` and `ranks_per_node` so that their product is the CPUs of a node",
    source="the command lines against the CPUs and the quota of the nodes; sysbench's own count in imported logs, "
    "where "
    "the CPUs are known",
)
def threads(evidence: Evidence) -> Iterator[Finding | str]:
    """M05: ranks times threads of MPI programs, threads of sysbench, against usable CPUs."""
    for (environment, label), trials in evidence.entries().items():
        wanted = max((count for trial in trials if (count := threads_of(trial)) is not None), default=None)
        if wanted is None:
            continue
        cpus = usable(evidence, environment, trials[0].nodes)
        if cpus is None:
            yield unknown("M05", f"the CPUs that {label} had are not known ({wanted} threads)", environment, label)
        elif wanted > cpus:
            message = f"{label} in {environment}: {wanted} threads on {cpus:g} CPUs"
            said = blocker if trials[0].benchmark in PROGRAMS else warning
            yield said("M05", message, "", environment, label)
        else:
            yield f"{label} in {environment}: {wanted} threads on {cpus:g} CPUs"


def threads_of(record: TrialRecord) -> int | None:
    """Threads of all nodes of a trial together, as far as its command line or its log tells."""
    for step in record.steps:
        if "mpirun" in step.argv and "--np" in step.argv:
            each = next((word.partition("=")[2] for word in step.argv if word.startswith("OPENBLAS_NUM_THREADS=")), "1")
            return int(step.argv[step.argv.index("--np") + 1]) * int(each)
    if record.benchmark.startswith("sysbench"):
        counts = [int(count) for count in logs.found(THREADS, record)]
        return max(counts) * max(1, len(record.nodes)) if counts else None
    return None


def usable(evidence: Evidence, environment: str, nodes: tuple[str, ...]) -> float | None:
    """CPUs of these nodes together; those that nodes of one machine share count once."""
    facts: Mapping[str, Mapping[str, object]] = dict(observed(evidence, environment))
    counted: set[object] = set()
    quota = 0.0
    for node in nodes:
        values = facts.get(node, {})
        allowed = cpu_list(str(values.get("cpus_allowed", "")))
        if not allowed:
            return None
        machine = "" if evidence.capabilities(environment).kind is NodeKind.HOST else node
        counted |= {(machine, cpu) for cpu in allowed}
        quota += float(str(values.get("cpu_quota_cpus", len(allowed))))
    return min(float(len(counted)), quota) if nodes else None
