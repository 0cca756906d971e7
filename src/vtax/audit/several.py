"""O06, R12 to R14: what several machines add to a campaign: clocks, machines that are unlike, one that is lost, and
nodes that exist already."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.campaign import Evidence, canonical, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import Status
from vtax.units import format_bytes
from vtax.wording import plural

APART_S = 1.0  # by which the clocks of two machines may differ: times of records are compared between them
KINDS = {
    "cpu_model": "CPU",
    "memory_total_bytes": "memory",
    "kernel": "kernel",
    "microcode": "microcode",
    "firmware": "firmware",
}
ALIKE = 0.02  # of the memory: firmware keeps a little


def several(evidence: Evidence) -> str:
    """Why a row about several machines does not apply; "" when it does."""
    return "" if len(places(evidence)) > 1 else "all nodes are on one machine"


def places(evidence: Evidence) -> tuple[str, ...]:
    """The machines of the study, or those that are nodes of an environment."""
    return tuple(evidence.plan.study.machines) or tuple(name for name in evidence.identities if name)


def rotating(evidence: Evidence) -> str:
    """Why a row about machines that each have all rounds does not apply; "" when it does."""
    return "" if len(evidence.plan.study.machines) > 1 else "all clusters are on the same machines"


def with_existing(evidence: Evidence) -> str:
    """Why a row about nodes that exist already does not apply; "" when it does."""
    return "" if existing_environments(evidence) else "vtax created all nodes"


def existing_environments(evidence: Evidence) -> list[str]:
    return [name for name in evidence.environments if evidence.capabilities(name).existing]


@row(
    "O06",
    Severity.WARNING,
    "the clocks of machines are more than a second apart",
    short="clocks of machines apart",
    why="pairs are of one machine, so no ratio is wrong; but times of files on a shared directory, the timeline and "
    "the order of what happened on different machines are",
    remedy="let NTP or PTP set the clock of every machine (`chronyc tracking`) before the campaign",
    source="the clock of every machine against that of the machine that vtax runs on, at every cell",
    needs=Needs("the records of the campaign", origin=Origin.RUN),
    applies=several,
)
def clocks_apart(evidence: Evidence) -> Iterator[Result]:
    """O06: clocks of machines against each other."""
    ahead = {
        machine: max(known, key=abs)
        for machine, cells in evidence.identities.items()
        if (known := [float(facts["clock_ahead_s"]) for _, facts in cells if "clock_ahead_s" in facts])
    }
    for machine in (name for name in places(evidence) if name not in ahead):
        yield Undecided(f"{machine}: not recorded: how far its clock is from this machine's")
    if len(ahead) < 2:
        return
    first, last = min(ahead, key=lambda name: ahead[name]), max(ahead, key=lambda name: ahead[name])
    apart = ahead[last] - ahead[first]
    if apart > APART_S:
        yield Failed(f"the clock of {last} is {apart:.1f} s ahead of that of {first}")
    else:
        yield f"the clocks of {len(ahead)} machines are {1000 * apart:.0f} ms apart at most"


@row(
    "R12",
    Severity.INFO,
    "machines have another CPU, memory, kernel or firmware",
    short="unlike machines",
    why="environments are compared within machines, so this is no bias; but what they cost may depend on it, and a "
    "mean over unlike machines is about this mixture",
    remedy="read the results of each machine; for an answer about one kind of machine, use machines of that kind",
    source="facts of each machine at its first cell",
    needs=Needs("facts of each machine", host=tuple(KINDS), origin=Origin.RUN),
    applies=several,
)
def unlike(evidence: Evidence) -> Iterator[Result]:
    """R12: machines of different kinds."""
    first = {machine: cells[0][1] for machine, cells in evidence.identities.items() if machine}
    for fact, name in KINDS.items():
        known = {machine: facts[fact] for machine, facts in first.items() if fact in facts}
        size = fact.endswith("_bytes")
        words = {machine: format_bytes(int(one)) if size else str(one) for machine, one in known.items()}
        said = f"{name}: " + ", ".join(f"{word} on {machine}" for machine, word in words.items())
        if size and known:
            sizes = [float(value) for value in known.values()]
            differs = max(sizes) > (1 + ALIKE) * min(sizes)
        else:
            differs = len({canonical(value) for value in known.values()}) > 1
        if differs:
            yield Failed(said)
        elif known:
            yield f"{name}: {next(iter(words.values()))} on {len(known)} {plural(len(known), 'machine')}"


@row(
    "R13",
    Severity.WARNING,
    "a machine was lost, or has fewer rounds than the others",
    short="a machine was lost",
    why="the mean is over the machines that have enough rounds, and its interval relies on the one with the fewest: "
    "without a machine the answer is about the others alone",
    remedy="find out why it was lost (its cells name the reason), and run a new campaign if the answer is to be about "
    "that machine too; `vtax run --resume` continues a campaign that was interrupted",
    source="the rounds of each machine in which every planned run gave a result",
    needs=Needs("the records of the campaign", origin=Origin.RUN),
    applies=rotating,
    whole=True,
)
def lost(evidence: Evidence) -> Iterator[Result]:
    """R13: machines with fewer complete rounds than the one with most."""
    machines = evidence.plan.study.alternatives
    if len(machines) < 2:
        yield "every cluster is spread over all machines"
        return
    done = {trial.id for trial in evidence.trials if trial.status is Status.OK}
    over = max((trial.round for trial in evidence.trials), default=0)
    rounds: dict[str, dict[int, bool]] = {machine: {} for machine in machines}
    for cell in evidence.plan.cells:
        if cell.round <= over and cell.machine in rounds:
            mine = rounds[cell.machine]
            mine[cell.round] = mine.get(cell.round, True) and all(
                one.id in done for one in cell.trials if not one.warmup
            )
    complete = {machine: [number for number, whole in mine.items() if whole] for machine, mine in rounds.items()}
    most = max(map(len, complete.values()))
    for machine, numbers in complete.items():
        if len(numbers) < most:
            last = f", the last is round {max(numbers)}" if numbers else ""
            said = f"{machine} has {len(numbers)} complete {plural(len(numbers), 'round')} of {over}{last}"
            yield Failed(f"{said}; others have {most}")
    if most and all(len(numbers) == most for numbers in complete.values()):
        yield f"{shown(list(machines))} have {most} complete rounds each"


@row(
    "R14",
    Severity.WARNING,
    "nodes existed before the campaign, and were the same in every round",
    short="nodes not created anew",
    why="memory that is fragmented, a noisy neighbour, a bad placement: what one instance has by chance is in all of "
    "its rounds, so the interval says nothing about other instances",
    remedy="repeat the campaign on other instances, or after they were created anew, and compare (`vtax compare`)",
    source="the provider, and what the nodes' machines say of themselves at every cell",
    needs=Needs("the records of the campaign", origin=Origin.RUN),
    applies=with_existing,
)
def not_new(evidence: Evidence) -> Iterator[Result]:
    """R14: nodes that vtax did not create."""
    for environment in existing_environments(evidence):
        rounds = {cell.round for cell in evidence.provisioned if cell.environment == environment}
        nodes = len(evidence.plan.shape.nodes)
        said = (
            f"{environment}: the same {nodes} nodes in {len(rounds)} {plural(len(rounds), 'round')}, not created anew"
        )
        yield Failed(said, environment)
