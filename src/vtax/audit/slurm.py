"""R15, T11: campaigns on nodes of Slurm: allocations, and whether a node is what Slurm says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.evidence.campaign import Evidence, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.units import format_bytes
from vtax.wording import plural

FIRMWARE = 0.05  # of the memory that Slurm is told of: kernels and firmware keep some


def on_slurm(evidence: Evidence) -> str:
    """Why a row about Slurm does not apply; "" when it does."""
    given = any(one.slurm is not None for one in evidence.plan.study.machines.values())
    return "" if given else "no machine is a node of Slurm"


@row(
    "R15",
    Severity.INFO,
    "rounds are of several allocations of Slurm",
    short="several allocations",
    why="a round is of one allocation, so every pair is of one set of nodes; but another allocation may be of other "
    "nodes, and what a node is then differs between rounds",
    remedy="look at the rows about the machine that changed; for one answer about one set of nodes, name them in "
    '`options` ("--nodelist=..."), or ask for more `time`',
    source="the job of each cell, as Slurm's environment names it on the node",
    needs=Needs("the allocation of each cell", host=("slurm_job",), origin=Origin.RUN),
    applies=on_slurm,
)
def allocations(evidence: Evidence) -> Iterator[Result]:
    """R15: the allocations of a campaign."""
    jobs: dict[str, set[str]] = {}
    for cells in evidence.identities.values():
        for _, facts in cells:
            if job := facts.get("slurm_job"):
                jobs.setdefault(str(job.get("job")), set()).add(str(job.get("node")))
    said = "; ".join(f"job {job} on {shown(sorted(nodes))}" for job, nodes in jobs.items())
    if len(jobs) > 1:
        yield Failed(f"{len(jobs)} allocations: {said}")
    elif jobs:
        yield said


@row(
    "T11",
    Severity.WARNING,
    "a node is not what Slurm says of it",
    short="a node unlike Slurm's word",
    why="a job that runs on another node than Slurm names, or that may use more or fewer CPUs than it was given, "
    "shares them with other jobs, or measures other machines than the report names",
    remedy="compare `slurmd -C` on the node with `scontrol show node`; ask those who run the cluster, or use "
    "`exclusive = true`",
    source="`scontrol show node` and `scontrol show job` against what vtax sees on the node",
    needs=Needs("what Slurm says of each node", host=("slurm",), origin=Origin.RUN),
    applies=on_slurm,
)
def as_slurm_says(evidence: Evidence) -> Iterator[Result]:
    """T11: Slurm's word against what was seen on the node, once for each allocation of a machine."""
    for machine, cells in evidence.identities.items():
        seen: dict[object, Mapping[str, Any]] = {}
        for _, facts in cells:
            if facts.get("slurm"):
                seen.setdefault(facts["slurm"].get("job"), facts)
        for facts in seen.values():
            if not facts.get("slurm_job"):
                yield Undecided(f"{machine}: not recorded: the allocation, as seen on the node")
                continue
            wrong = list(_differences(facts))
            yield from (Failed(f"{machine}: {said}") for said in wrong)
            if not wrong:
                count = len(facts.get("cpus_usable", ()))
                yield f"{machine}: node {facts['slurm']['node']}, {count} {plural(count, 'CPU')}, as Slurm says"


def _differences(facts: Mapping[str, Any]) -> Iterator[str]:
    slurm, inside = facts["slurm"], facts["slurm_job"]
    for name, word in (("job", "job"), ("node", "node")):
        if slurm.get(name) != inside.get(name):
            yield f"Slurm says {word} {slurm.get(name)}, and the node {inside.get(name)}"
    cpus, usable = int(slurm.get("job_cpus", 0)), len(facts.get("cpus_usable", ()))
    if cpus and usable and cpus != usable:
        yield f"Slurm gave {cpus} {plural(cpus, 'CPU')}, and {usable} can be used"
    given, has = int(slurm.get("node_memory_bytes", 0)), int(facts.get("memory_total_bytes", 0))
    if given and has and given > (1 + FIRMWARE) * has:
        yield f"Slurm says that it has {format_bytes(given)}, and it has {format_bytes(has)}"
