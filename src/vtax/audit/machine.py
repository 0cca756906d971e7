"""C05 to C09: what else ran on the machine, and whether its CPUs kept their speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from vtax.evidence.campaign import Evidence, blocker, canonical, info, shown, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.cluster import CellRecord
from vtax.model.finding import Finding, Severity
from vtax.model.trial import TrialRecord
from vtax.providers import COUNTED

STOLEN, MUCH_STOLEN = 0.005, 0.03  # of all CPU time
BUSY = 0.1  # of the machine's CPUs, while nothing of ours runs
APART = 0.1  # by which one environment was busier in every cell than another in any
ENOUGH_CELLS = 3
SLOWER = 0.05  # of the clock in the first round
POLICY = {"governor": "the frequency governor", "turbo": "turbo", "smt": "SMT"}


@row(
    "C05",
    Severity.BLOCKER,
    "the hypervisor took CPU time away (steal): a warning above 0.5 %, a blocker above 3 %",
    why="a CPU that another guest used is time that the benchmark did not run",
    remedy="run on a host that is not shared, or at a quieter time",
    source="/proc/stat of the machine around every trial, of the CPUs of the trial; beside it that of nodes under the "
    "machine's own kernel. What a guest with a kernel of its own counts is a note: an emulated one counts nothing, and "
    "under KVM it is what its own emulator and its neighbours took, which belongs to what is measured. Imported logs "
    "do not tell",
)
def steal(evidence: Evidence) -> Iterator[Finding | str]:
    """C05: CPU time that the machine lost during the trials."""
    for (environment, label), trials in evidence.entries().items():
        share = lost(evidence, trials)
        if share is None:
            yield unknown("C05", f"nothing counted what was stolen during {label}", environment, label)
        elif share > STOLEN:
            said = blocker if share > MUCH_STOLEN else warning
            worst = max(one for trial in trials if (one := lost(evidence, [trial])) is not None)
            message = f"{label} in {environment}: {share:.1%} of the CPU time was stolen ({worst:.1%} in the worst run)"
            yield said("C05", message, "", environment, label)
        else:
            yield f"at most {STOLEN:.1%} of the CPU time was stolen from {environment}"
        waited = stolen_from_nodes(evidence, trials) if evidence.capabilities(environment).own_kernel else None
        if waited is not None and waited - (share or 0.0) > STOLEN:
            message = f"{label} in {environment}: a guest waited for its CPUs in {waited:.1%} of their time, beyond "
            message += "what the machine lost: time that the emulator, or nodes that share the CPU, took"
            yield info("C05", message, "nothing to do: it is part of what this environment costs", environment, label)


def stolen(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share of CPU time in which workers did not run though they could have, whoever took it; None where nothing
    counted it."""
    known = (stolen_from_machine(evidence, trials), stolen_from_nodes(evidence, trials))
    return max((share for share in known if share is not None), default=None)


def lost(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share of CPU time that others took from the machine during trials of one environment; None where nothing
    counted it. A guest's own count is of what its machine does, and not of what was done to that."""
    if any(evidence.capabilities(trial.environment).own_kernel for trial in trials):
        return stolen_from_machine(evidence, trials)
    return stolen(evidence, trials)


def stolen_from_machine(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share that the machine lost during trials: of their CPUs where these were counted and their nodes stay on
    them, else of all. None for nodes that are elsewhere."""
    here = [trial.host_counters for trial in trials if evidence.capabilities(trial.environment).shares_machine]
    pinned = all(stays(evidence, trial.environment) for trial in trials)
    own = [one for one in here if pinned and "trial_cpu_ticks" in one]
    whole = [one for one in here if not pinned or "trial_cpu_ticks" not in one]
    return share_of([*ticks(own, "trial_"), *ticks(whole, "")])


def stays(evidence: Evidence, environment: str) -> bool:
    """Whether its nodes run on the CPUs of the plan alone."""
    return evidence.option(environment, "pin") is not False and evidence.option(environment, "cpu_limit") != "quota"


def stolen_from_nodes(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share that the nodes themselves counted as stolen, on the node where it was largest."""
    nodes = dict.fromkeys(node for trial in trials for node in evidence.counters.get(trial.id, {}))
    counted = {node: [evidence.counters.get(trial.id, {}).get(node, {}) for trial in trials] for node in nodes}
    shares = [share_of(ticks(each, "")) for each in counted.values()]
    return max((share for share in shares if share is not None), default=None)


def ticks(counters: Iterable[Mapping[str, float]], kind: str) -> list[tuple[float, float]]:
    """(stolen, all) ticks of every reading that has both."""
    names = f"{kind}steal_ticks", f"{kind}cpu_ticks"
    return [(one[names[0]], one[names[1]]) for one in counters if one.keys() >= set(names)]


def share_of(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The share of stolen ticks in all of them together; None where none passed."""
    every = sum(total for _, total in pairs)
    return sum(taken for taken, _ in pairs) / every if every > 0 else None


@row(
    "C06",
    Severity.BLOCKER,
    "something else ran on the machine",
    why="foreign load takes time from the benchmark: alike in all environments it is noise, unlike it is bias",
    remedy="stop what else runs: `vtax clean` for what is left of other campaigns, `top` for other programs",
    source="the machine's CPU time while a new cluster settles, and its containers and virtual machines; imported "
    "logs do "
    "not tell",
)
def foreign_load(evidence: Evidence) -> Iterator[Finding | str]:
    """C06: load while a new cluster is idle; containers and machines that are not its own."""
    shares: dict[str, list[float]] = {}
    for environment in evidence.environments:
        cells = [cell for cell in evidence.provisioned if cell.environment == environment]
        shares[environment] = [share for cell in cells if (share := busy_share(cell)) is not None]
        if not shares[environment]:
            yield unknown("C06", "nobody looked at the load before the trials (`settle` is too short)", environment)
            continue
        busy = [share for share in shares[environment] if share > BUSY]
        said = f"{environment}: {median(shares[environment]):.0%} of the machine's CPUs were busy before the trials"
        if busy:
            message = f"{said} (median; above {BUSY:.0%} in {len(busy)} of {len(shares[environment])} cells)"
            yield warning("C06", message, "", environment)
        else:
            yield said
        yield from strangers(evidence, environment, cells)
    ours = shares.get(evidence.reference, [])
    for environment in evidence.compared:
        theirs = shares.get(environment, [])
        if min(len(ours), len(theirs)) < ENOUGH_CELLS:
            continue
        more, less = (
            (environment, evidence.reference) if median(theirs) > median(ours) else (evidence.reference, environment)
        )
        if min(shares[more]) > max(shares[less]) + APART:
            message = f"the machine was busier in every cell of {more} (at least {min(shares[more]):.0%} of its CPUs) "
            message += f"than in any of {less} (at most {max(shares[less]):.0%})"
            yield blocker("C06", message, "", environment)


def busy_share(cell: CellRecord) -> float | None:
    """The share of the machine's CPU time that was used while the cluster settled; None when nobody looked."""
    ticks = cell.idle.get("cpu_ticks", 0.0)
    return cell.idle["busy_ticks"] / ticks if ticks > 0 and "busy_ticks" in cell.idle else None


def strangers(evidence: Evidence, environment: str, cells: list[CellRecord]) -> Iterator[Finding]:
    """Containers and virtual machines beside the nodes of the cluster."""
    kind, nodes = evidence.capabilities(environment).kind, len(evidence.plan.shape.nodes)
    for counted, name in COUNTED.items():
        own = nodes if kind is counted else 0
        counts = [int(c) for cell in cells if (c := cell.host_facts.get("running", {}).get(name)) is not None]
        if counts and max(counts) > own:
            message = f"{max(counts)} {name} ran on the machine, {own} of them nodes of {environment}"
            yield warning("C06", message, "", environment)


@row(
    "C07",
    Severity.WARNING,
    "frequency policy, turbo or SMT differ or change",
    why="another governor or a turbo that comes and goes changes the speed of every CPU",
    remedy='set the governor to "performance", and turbo and SMT once for the whole campaign',
    source="/sys of the machine at every cell; absent where a hypervisor hides it; imported logs do not tell",
)
def frequency_policy(evidence: Evidence) -> Iterator[Finding | str]:
    """C07: governor, turbo, SMT."""
    cells = [cell for cell in evidence.provisioned if cell.host_facts]
    for fact, name in POLICY.items():
        told = {canonical(cell.host_facts[fact]): cell for cell in reversed(cells) if fact in cell.host_facts}
        values = [str(cell.host_facts[fact]) for cell in told.values()]
        if len(told) > 1:
            where = ", ".join(f"{cell.host_facts[fact]} in {cell.cell}" for cell in told.values())
            yield warning("C07", f"{name} changed: {where}")
        elif values:
            yield f"{name} is {values[0]} in all {len(cells)} cells"
    if not any(fact in cell.host_facts for cell in cells for fact in ("governor", "turbo")):
        yield unknown("C07", "the machine shows no frequency policy")


@row(
    "C08",
    Severity.WARNING,
    "the clock fell, or the CPU throttled itself for heat or power",
    why="a CPU that is hot or limited runs slower, and the later environment pays",
    remedy="cool the machine, lower the turbo, or let it rest longer (`settle`)",
    source="scaling_cur_freq and core_throttle_count of the machine around every trial; absent in most virtual "
    "machines; "
    "imported logs do not tell",
)
def clock_speed(evidence: Evidence) -> Iterator[Finding | str]:
    """C08: clock against the first round, and thermal throttling."""
    for environment in dict.fromkeys(trial.environment for trial in evidence.runs()):
        trials = [trial for trial in evidence.runs() if trial.environment == environment]
        events = [
            trial.host_counters["throttle_events"] for trial in trials if "throttle_events" in trial.host_counters
        ]
        clocks = [(trial.round, trial.host_counters["cpu_mhz"]) for trial in trials if "cpu_mhz" in trial.host_counters]
        if sum(events) > 0:
            yield warning(
                "C08", f"CPUs throttled themselves {sum(events):.0f} times during {environment}", "", environment
            )
        if clocks:
            began = median(mhz for number, mhz in clocks if number == min(number for number, _ in clocks))
            slowest = min(median(mhz for number, mhz in clocks if number == each) for each, _ in clocks)
            if slowest < (1 - SLOWER) * began:
                message = (
                    f"the clock fell from {began:.0f} MHz in the first round to {slowest:.0f} MHz in {environment}"
                )
                yield warning("C08", message, "", environment)
            else:
                yield f"{environment}: {began:.0f} MHz in the first round, at least {slowest:.0f} MHz later"
        elif not events:
            yield unknown("C08", "the machine shows neither its clock nor throttling", environment)


KINDS = {"cgroup_version": "control groups", "seccomp": "seccomp", "root_filesystem": "root file system"}


@row(
    "C09",
    Severity.INFO,
    "control groups, seccomp or the root file system are of another kind",
    why="they belong to what an environment is; each has a cost of its own",
    remedy="nothing to do: it is documented",
    source="facts of every node; imported logs do not tell",
)
def kinds(evidence: Evidence) -> Iterator[Finding | str]:
    """C09: what an environment is made of."""
    seen = False
    for fact, name in KINDS.items():
        told = {
            environment: shown(sorted({str(value) for values in nodes.values() for value in values}))
            for environment in evidence.environments
            if (nodes := values_of(evidence, environment, fact))
        }
        seen = seen or bool(told)
        said = f"{name}: " + ", ".join(f"{value} in {environment}" for environment, value in told.items())
        if len(set(told.values())) > 1:
            yield info("C09", said)
        elif told:
            yield said
    if not seen:
        yield unknown("C09", "no node told what it is made of")
