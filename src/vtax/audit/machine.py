"""C05 to C09: what else ran on the machine, and whether its CPUs kept their speed."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.evidence.campaign import Evidence, canonical, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.evidence.stolen import STOLEN, lost, stolen_from_nodes
from vtax.model.capabilities import NodeKind
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.plan import Origin

MUCH_STOLEN = 0.03  # of all CPU time
BUSY = 0.1  # of the machine's CPUs, while vtax runs nothing
APART = 0.1  # by which one environment was busier in every cell than another in any
ENOUGH_CELLS = 3
SLOWER = 0.05  # of the clock in the first round
COUNTED = {NodeKind.CONTAINER: "containers", NodeKind.VM: "virtual machines"}
POLICY = {"governor": "the frequency governor", "turbo": "turbo", "smt": "SMT"}
KINDS = {"cgroup_version": "control groups", "seccomp": "seccomp", "root_filesystem": "root file system"}


@row(
    "C05",
    Severity.BLOCKER,
    "the hypervisor took CPU time away (steal): a warning above 0.5 %, a blocker above 3 %",
    short="CPU time stolen",
    why="a CPU that another guest used is time that the benchmark did not run",
    remedy="run on a host that is not shared, or at a quieter time",
    source="/proc/stat of the machine around every trial, of the CPUs of the trial, and that of nodes under the "
    "machine's own kernel. What a guest with its own kernel counts is a note: an emulated one counts nothing, and "
    "under KVM it is what its own emulator and its neighbours took, which belongs to what is measured",
    needs=Needs("how much CPU time was stolen", counters=("steal_ticks", "trial_steal_ticks"), origin=Origin.RUN),
    note="this is about the machine: what a guest with its own kernel counts as stolen is what its emulator and the "
    "nodes on its CPU took, which is part of what is measured, and a note",
)
def steal(evidence: Evidence) -> Iterator[Result]:
    """C05: CPU time that the machine lost during the trials."""
    for (environment, label), trials in evidence.entries().items():
        share = lost(evidence, trials)
        where = f"{label} in {environment}"
        if share is None:
            yield Undecided(f"{where}: not recorded: how much CPU time the machine lost", environment, label)
        elif share > STOLEN:
            worst = max(one for trial in trials if (one := lost(evidence, [trial])) is not None)
            message = f"{where}: {share:.1%} of the CPU time was stolen ({worst:.1%} in the worst run)"
            yield Failed(message, environment, label, None if share > MUCH_STOLEN else Severity.WARNING)
        else:
            yield f"at most {STOLEN:.1%} of the CPU time was stolen from {environment}"
        guest = evidence.capabilities(environment).own_kernel
        waited = stolen_from_nodes(evidence, trials) if guest else None
        if waited is not None and waited - (share or 0.0) > STOLEN:
            message = f"{where}: a guest waited for its CPUs in {waited:.1%} of their time, beyond what the machine "
            message += "lost: time that the emulator, or nodes that share the CPU, took"
            remedy = "nothing to do: it is part of what this environment costs"
            yield Failed(message, environment, label, Severity.INFO, remedy)


@row(
    "C06",
    Severity.BLOCKER,
    "something else ran on the machine",
    short="other load on the machine",
    why="foreign load takes time from the benchmark: alike in all environments it is noise, in some of them it is bias",
    remedy="stop what else runs: `vtax clean` for what is left of other campaigns, `top` for other programs",
    source="the machine's CPU time while a new cluster settles, and its containers and virtual machines",
    needs=Needs("the load before the trials (`settle` is too short)", idle=("busy_ticks",), origin=Origin.RUN),
    note="blocks only when the machine was busier in every cell of one environment than in any of the other; load that "
    "is alike everywhere makes intervals wider, and random order and pairs in rounds take care of it",
)
def foreign_load(evidence: Evidence) -> Iterator[Result]:
    """C06: load while a new cluster is idle; containers and machines that are not its own."""
    shares: dict[str, list[float]] = {}
    for environment in evidence.environments:
        cells = [cell for cell in evidence.provisioned if cell.environment == environment]
        mine = shares[environment] = [share for cell in cells if (share := busy_share(cell)) is not None]
        if not mine:
            continue
        busy = sum(share > BUSY for share in mine)
        said = f"{environment}: {median(mine):.0%} of the machine's CPUs were busy before the trials"
        if busy:
            message = f"{said} (median; above {BUSY:.0%} in {busy} of {len(mine)} cells)"
            yield Failed(message, environment, severity=Severity.WARNING)
        else:
            yield said
        yield from foreign_nodes(evidence, environment, cells)
    ours = shares.get(evidence.reference, [])
    for environment in evidence.compared:
        theirs = shares.get(environment, [])
        if min(len(ours), len(theirs)) < ENOUGH_CELLS:
            continue
        names = (environment, evidence.reference)
        more, less = names if median(theirs) > median(ours) else names[::-1]
        if min(shares[more]) > max(shares[less]) + APART:
            message = f"the machine was busier in every cell of {more} (at least {min(shares[more]):.0%} of its CPUs) "
            message += f"than in any of {less} (at most {max(shares[less]):.0%})"
            yield Failed(message, environment)


def busy_share(cell: CellRecord) -> float | None:
    """The share of the machine's CPU time that was used while the cluster settled; None when it was not recorded."""
    ticks = cell.idle.get("cpu_ticks", 0.0)
    return cell.idle["busy_ticks"] / ticks if ticks > 0 and "busy_ticks" in cell.idle else None


def foreign_nodes(evidence: Evidence, environment: str, cells: list[CellRecord]) -> Iterator[Failed]:
    """Containers and virtual machines besides the nodes of the cluster, and those of clusters that are paused."""
    nodes = len(evidence.plan.shape.nodes)
    for counted, name in COUNTED.items():
        found = []
        for cell in cells:
            owners = (environment, *cell.paused)
            own = nodes * sum(evidence.capabilities(one).kind is counted for one in owners)
            if (count := cell.host_facts.get("running", {}).get(name)) is not None and int(count) > own:
                found.append((int(count), f"{own} of them nodes of {shown(owners)}"))
        if found:
            most, known = max(found)
            message = f"{most} {name} ran on the machine, {known}"
            yield Failed(message, environment, severity=Severity.WARNING)


@row(
    "C07",
    Severity.WARNING,
    "frequency policy, turbo or SMT differ or change",
    short="unequal frequency policy",
    why="another governor or a turbo that comes and goes changes the speed of every CPU",
    remedy='set the governor to "performance", and turbo and SMT once for the whole campaign',
    source="/sys of the machine at every cell; absent where a hypervisor hides it",
    needs=Needs("the machine's frequency policy", host=("governor", "turbo"), origin=Origin.RUN),
)
def frequency_policy(evidence: Evidence) -> Iterator[Result]:
    """C07: governor, turbo, SMT."""
    cells = [cell for cell in evidence.provisioned if cell.host_facts]
    for fact, name in POLICY.items():
        values = {canonical(cell.host_facts[fact]): cell for cell in reversed(cells) if fact in cell.host_facts}
        if len(values) > 1:
            where = ", ".join(f"{cell.host_facts[fact]} in {cell.cell}" for cell in values.values())
            yield Failed(f"{name} changed: {where}")
        elif values:
            yield f"{name} is {next(iter(values.values())).host_facts[fact]} in all {len(cells)} cells"


@row(
    "C08",
    Severity.WARNING,
    "the clock fell, or the CPU throttled itself for heat or power",
    short="a slower clock",
    why="a CPU that is hot or limited runs slower, and the later environment pays",
    remedy="cool the machine, disable turbo, or let it rest longer (`settle`)",
    source="scaling_cur_freq and core_throttle_count of the machine around every trial; absent in most "
    "virtual machines",
    needs=Needs(
        "the machine's clock and throttling",
        counters=("cpu_mhz", "throttle_events"),
        each="environment",
        origin=Origin.RUN,
    ),
)
def clock_speed(evidence: Evidence) -> Iterator[Result]:
    """C08: clock against the first round, and thermal throttling."""
    for environment in dict.fromkeys(trial.environment for trial in evidence.runs()):
        trials = [trial for trial in evidence.runs() if trial.environment == environment]
        events = sum(trial.host_counters.get("throttle_events", 0.0) for trial in trials)
        clocks: dict[int, list[float]] = {}
        for trial in trials:
            if "cpu_mhz" in trial.host_counters:
                clocks.setdefault(trial.round, []).append(trial.host_counters["cpu_mhz"])
        if events > 0:
            yield Failed(f"CPUs throttled themselves {events:.0f} times during {environment}", environment)
        if clocks:
            began = median(clocks[min(clocks)])
            slowest = min(median(each) for each in clocks.values())
            if slowest < (1 - SLOWER) * began:
                message = f"the clock fell from {began:.0f} MHz in the first round to {slowest:.0f} MHz"
                yield Failed(f"{message} in {environment}", environment)
            else:
                yield f"{environment}: {began:.0f} MHz in the first round, at least {slowest:.0f} MHz later"


@row(
    "C09",
    Severity.INFO,
    "control groups, seccomp or the root file system are of another kind",
    short="other kinds of isolation",
    why="they belong to what an environment is; each has its own cost",
    remedy="nothing to do: it is documented",
    source="facts of every node",
    needs=Needs("control groups, seccomp and root file system of its nodes", node=tuple(KINDS), origin=Origin.RUN),
)
def kinds(evidence: Evidence) -> Iterator[Result]:
    """C09: what an environment is made of."""
    for fact, name in KINDS.items():
        values = {
            environment: shown(sorted({str(value) for values in nodes.values() for value in values}))
            for environment in evidence.environments
            if (nodes := values_of(evidence, environment, fact))
        }
        said = f"{name}: " + ", ".join(f"{value} in {environment}" for environment, value in values.items())
        if len(set(values.values())) > 1:
            yield Failed(said)
        elif values:
            yield said
