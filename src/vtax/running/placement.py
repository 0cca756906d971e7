"""Where MPI puts the ranks of a new cluster, by a launch of a real MPI program as the benchmarks are launched.

`vtax-world` (in the root file system) prints, for every rank, its number, the size of the world that it sees, its host,
its CPUs, and whether it can read the memory of the next rank on its host. A launcher that starts ranks that do not know
each other ends with exit code 0, and a benchmark on one rank then looks fast: only the ranks themselves can tell.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from vtax.errors import ProvisionError
from vtax.facts.cpu import cpu_list
from vtax.launchers.base import Ranks, ranks_for, share_cpus
from vtax.model.nodes import Target
from vtax.providers.base import Cluster
from vtax.transport.parallel import each
from vtax.wording import shortened

LAUNCH_S = 60.0
PROGRAM = "vtax-world"
LINE = re.compile(rf"^{PROGRAM} (\d+) (\d+) (\S+) (\S+) (\S+)$", re.MULTILINE)
ALONE, COPIES = "alone", "yes"

Outcome = tuple[list[str], list[str]]  # sentences of checks that passed, and of checks that failed


class Rank(NamedTuple):
    """What one rank says of itself. `copy`: whether it can read the memory of the next rank on its host."""

    number: int
    world: int
    host: str
    cpus: str
    copy: str


def placement(cluster: Cluster, target: Target) -> Outcome:
    """Launch a program on all ranks of a target, and compare what they say with the plan."""
    ranks = ranks_for(target.nodes)
    launcher = cluster.launcher
    argv = launcher.argv((PROGRAM,), target, ranks, yield_when_idle=share_cpus(target))
    files = "".join(
        f"cat >{file.name} <<'vtax-end-of-file'\n{file.content}vtax-end-of-file\n"
        for file in launcher.inputs(target, ranks)
    )
    script = f"{files}{shlex.join(argv)} </dev/null\ncode=$?\ncd /\nrm -rf {target.directory}\nexit $code\n"
    transport = cluster.reach(target.names[0], target.names)
    if not cluster.one_directory:
        _elsewhere(cluster, target, ("true",))  # a command's directory is made for it
    result = transport.run(("sh", "-s"), timeout_s=LAUNCH_S, directory=target.directory, stdin=script)
    if result.exit_code != 0:
        raise ProvisionError(
            f"environment {cluster.environment.name!r}: {launcher.program} does not start on {shortened(target.names)}",
            detail=(result.stderr.strip() or result.stdout.strip())[-1500:],
            remedy="run `vtax up` for such a cluster to examine by hand",
        )
    if not cluster.one_directory:
        _elsewhere(cluster, target, ("rm", "-rf", target.directory))
    found = tuple(one._replace(host=cluster.hostnames.get(one.host, one.host)) for one in answers(result.stdout))
    if wrong := worlds_differ(found, ranks.total, launcher.program):
        return [], [wrong]
    name = cluster.environment.name if launcher.one_machine else ""
    passed, wrong_places = placed(target, ranks, found, name)
    world = f"mpi world {target.label}: {ranks.total} ranks, each of which sees all"
    return [world, *passed, *memory(target, found)] if passed else [], wrong_places


def _elsewhere(cluster: Cluster, target: Target, argv: Sequence[str]) -> None:
    """Run a command in the directory of the target on all its nodes but the first, where these see another one."""

    def run(name: str) -> None:
        cluster.node(name).transport.run(argv, timeout_s=LAUNCH_S, directory=target.directory)

    each(run, target.names[1:])


def answers(text: str) -> tuple[Rank, ...]:
    """What the ranks printed, in the order of their numbers."""
    lines = (Rank(int(number), int(world), *words) for number, world, *words in LINE.findall(text))
    return tuple(sorted(lines))


def worlds_differ(found: Sequence[Rank], planned: int, launcher: str) -> str:
    """What is wrong with the world that the ranks see; "" when it has all of them, each once."""
    worlds = sorted({rank.world for rank in found})
    if worlds == [1] and planned > 1:
        started = f"{len(found)} programs of one rank each" if len(found) > 1 else "one program of one rank"
        return (
            f"{launcher} started {started}, but the plan has one program of {planned} ranks: do launcher and MPI "
            "library belong together?"
        )
    if worlds not in ([planned], []):
        return f"ranks see worlds of {shortened([str(size) for size in worlds])} ranks, but the plan has {planned}"
    if len(found) != planned:
        return f"{len(found)} ranks answered, but the plan has {planned}"
    if [rank.number for rank in found] != list(range(planned)):
        return f"{planned} ranks answered, but not those with the numbers 0 to {planned - 1}"
    return ""


def placed(target: Target, ranks: Ranks, found: Sequence[Rank], machine: str) -> Outcome:
    """As many ranks on each node as planned, none sharing a CPU with another of its node. On one `machine` nodes are
    sets of its CPUs, and ranks share as few as they can."""
    if machine:
        return _placed_on_one_machine(target, found, machine)
    planned = dict(zip(target.names, ranks.per_node, strict=True))
    counts = Counter(rank.host for rank in found)
    if counts != planned:
        return [], [f"ranks are placed as {dict(sorted(counts.items()))}, but the plan has {planned}"]
    shared = [
        f"two ranks on {host} share CPUs" for host in counts if _share([rank for rank in found if rank.host == host])
    ]
    where = " ".join(f"{name}={count}" for name, count in planned.items())
    bound = " ".join(f"{rank.host}={rank.cpus}" for rank in found)
    passed = [f"mpi placement {target.label}: {where}", f"mpi binding {target.label}: {bound}"]
    return ([] if shared else passed), shared


def _placed_on_one_machine(target: Target, found: Sequence[Rank], machine: str) -> Outcome:
    cpus = [rank.cpus for rank in found]
    distinct = {cpu for node in target.nodes for cpu in node.cpu_ids}
    if _share(found) and len(distinct) >= len(found):
        return [], [f"ranks share CPUs: {' '.join(cpus)}"]
    bound = " ".join(f"{machine}={each}" for each in cpus)
    where = f"mpi placement {target.label}: {machine}={len(found)} on CPUs {' '.join(sorted(cpus))}"
    return [where, f"mpi binding {target.label}: {bound}"], []


def memory(target: Target, found: Sequence[Rank]) -> list[str]:
    """Whether ranks of a node can copy from each other's memory; nothing where no two ranks are on one node. That they
    cannot is a matter for the audit: messages then take two copies, which another environment may not need."""
    said = [rank.copy for rank in found if rank.copy != ALONE]
    if not said:
        return []
    failed = sorted({copy.removeprefix("no:") for copy in said if copy != COPIES})
    how = f"cannot read each other's memory ({', '.join(failed)})" if failed else "can read each other's memory"
    return [f"mpi memory {target.label}: ranks of a node {how}"]


def _share(ranks: Sequence[Rank]) -> bool:
    sets = [set(cpu_list(rank.cpus)) for rank in ranks]
    return sum(map(len, sets)) > len(set().union(*sets))
