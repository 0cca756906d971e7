"""M: whether the ranks of parallel programs ran where the plan has them."""

from __future__ import annotations

import re

from vtax.audit.evidence import Evidence, blocker, unknown
from vtax.model import CellRecord, ClusterShape, Finding, NodeShape, Scope

PLACEMENT = re.compile(r"mpi placement (\w+): (.+)")
COUNT = re.compile(r"([\w.-]+)=([0-9]{1,9})\b", re.ASCII)
PARALLEL = (Scope.WORKERS, Scope.CLUSTER)
REMEDY = "the placement is verified when a cluster is made; if it was not, repeat the campaign"


def placement(evidence: Evidence) -> tuple[Finding, ...]:
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
    return tuple(found.values())


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
