"""C06 to C09: what else ran on the machine, and whether its CPUs kept their speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import median
from typing import Any

from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, canonical, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.capabilities import NodeKind
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.plan import Origin

BUSY = 0.1  # of the machine's CPUs, while vtax runs nothing
APART = 0.1  # by which one environment was busier in every cell than another in any
ENOUGH_CELLS = 6  # of each: below, chance alone puts all of one above all of another in more than 1 % of campaigns
SLOWER = 0.05  # of the clock in the first round
COUNTED = {NodeKind.CONTAINER: "containers", NodeKind.VM: "virtual machines"}
POLICY = {"governor": "the frequency governor", "turbo": "turbo", "smt": "SMT"}
KINDS = {"cgroup_version": "control groups", "seccomp": "seccomp", "root_filesystem": "root file system"}


@row(
    "C06",
    Severity.BLOCKER,
    "something else ran on the machine",
    short="other load on the machine",
    why="foreign load takes time from the benchmark: alike in all environments it is noise, in some of them it is bias",
    remedy="stop what else runs: `vtax clean` for what is left of other campaigns, `top` for other programs",
    source="the machine's CPU time while a new cluster settles, and its containers and virtual machines",
    needs=Needs("the load before the trials (`settle` is too short)", idle=("busy_ticks",), origin=Origin.RUN),
    note="blocks only when the machine was busier in every cell of one environment than in any of the other, of six "
    "cells of each or more, and is a note else: load that is alike everywhere makes intervals wider, and random order "
    "and pairs in rounds take care of it",
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
            yield Failed(message, environment, severity=Severity.INFO)
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
            yield Failed(message, environment, severity=Severity.INFO)


@row(
    "C07",
    Severity.WARNING,
    "frequency policy, turbo or SMT differ or change",
    short="unequal frequency policy",
    why="another governor or a turbo that comes and goes changes the speed of every CPU",
    remedy='set the governor to "performance", and turbo and SMT once for the whole campaign',
    source="/sys of the machine at every cell; absent where a hypervisor hides it",
    note="a note where it changed only from one round to the next: environments are compared within rounds",
    needs=Needs("the machine's frequency policy", host=("governor", "turbo"), origin=Origin.RUN),
)
def frequency_policy(evidence: Evidence) -> Iterator[Result]:
    """C07: governor, turbo, SMT."""
    for known, (fact, name) in product(evidence.identities.values(), POLICY.items()):
        said = [(cell, facts[fact]) for cell, facts in known if fact in facts]
        values = {canonical(value): (cell, value) for cell, value in reversed(said)}
        if len(values) > 1:
            where = ", ".join(f"{value} in {cell.cell}" for cell, value in values.values())
            apart = unlike_in_a_round(evidence, said)
            yield from (Failed(f"{name} changed: {where}", environment) for environment in apart)
            if not apart:
                yield Failed(f"{name} changed between rounds: {where}", severity=Severity.INFO)
        elif values:
            yield f"{name} is {next(iter(values.values()))[1]} in all {len(known)} cells"


def unlike_in_a_round(evidence: Evidence, said: Sequence[tuple[CellRecord, Any]]) -> tuple[str, ...]:
    """The environments in which a fact of the machine differed from the reference's in the same round."""
    known = {(cell.environment, cell.round): canonical(value) for cell, value in said}
    found = {
        environment: None
        for (environment, number), value in known.items()
        if known.get((evidence.reference, number), value) != value
    }
    return tuple(found)


@row(
    "C08",
    Severity.WARNING,
    "the clock fell, or the CPU throttled itself for heat or power",
    short="a slower clock",
    why="a CPU that is hot or limited runs slower, and the later environment pays",
    remedy="cool the machine, disable turbo, or let it rest longer (`settle`)",
    source="scaling_cur_freq and core_throttle_count of the machine around every trial; absent in most "
    "virtual machines",
    note="a note where it happened in an environment and in what it is compared with: that is in the interval",
    needs=Needs(
        "the machine's clock and throttling",
        counters=("cpu_mhz", "throttle_events"),
        each="environment",
        origin=Origin.RUN,
    ),
)
def clock_speed(evidence: Evidence) -> Iterator[Result]:
    """C08: clock against the first round, and thermal throttling."""
    throttled: dict[tuple[str, str], Failed | None] = {}
    slower: dict[tuple[str, str], Failed | None] = {}
    for environment in dict.fromkeys(trial.environment for trial in evidence.runs()):
        trials = [trial for trial in evidence.runs() if trial.environment == environment]
        places = dict.fromkeys(evidence.machine_of.get(trial.cell, "") for trial in trials)
        events = sum(trial.host_counters.get("throttle_events", 0.0) for trial in trials)
        message = f"CPUs throttled themselves {events:.0f} times during {environment}"
        throttled[environment, ""] = Failed(message, environment) if events > 0 else None
        for machine in places:
            own = [trial for trial in trials if evidence.machine_of.get(trial.cell, "") == machine]
            clocks: dict[int, list[float]] = {}
            for trial in own:
                if "cpu_mhz" in trial.host_counters:
                    clocks.setdefault(trial.round, []).append(trial.host_counters["cpu_mhz"])
            if not clocks:
                continue
            slower.setdefault((environment, ""), None)
            began, where = median(clocks[min(clocks)]), f" on {machine}" if machine else ""
            slowest = min(median(each) for each in clocks.values())
            if slowest < (1 - SLOWER) * began:
                message = f"the clock fell from {began:.0f} MHz in the first round to {slowest:.0f} MHz"
                slower[environment, ""] = Failed(f"{message} in {environment}{where}", environment)
            else:
                yield f"{environment}{where}: {began:.0f} MHz in the first round, at least {slowest:.0f} MHz later"
    yield from weighed(evidence, throttled, Severity.WARNING)
    yield from weighed(evidence, slower, Severity.WARNING)


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
