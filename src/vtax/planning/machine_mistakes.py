"""What is wrong with the machines of a study, and with where it places its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vtax.errors import Mistake
from vtax.model.names import SLURM_OPTIONS
from vtax.model.study import SPREAD, TOGETHER
from vtax.planning.machine_tables import machine_names
from vtax.planning.mistakes import unknown_choice
from vtax.providers import option_models
from vtax.wording import listed, plural


def machine_mistakes(raw: Mapping[str, Any], environments: Sequence[str], nodes: Sequence[str]) -> Iterable[Mistake]:
    """Machines that are one machine, names that cannot be told apart, and nodes that have no machine."""
    table, about = raw.get("machines", {}), raw.get("nodes")
    place = about.get("place", TOGETHER) if isinstance(about, dict) else TOGETHER
    if not isinstance(table, dict):
        return  # the validation of the file has reported that
    machines = machine_names(table)
    if not machines:
        yield from _launchers(raw.get("environments"), (), place)
        if isinstance(about, dict) and "place" in about:
            yield Mistake("nodes.place", "the study has no machines", "add a table [machines.NAME] with its `ssh`")
        return
    yield from _same(table)
    yield from _ways(table)
    for name in sorted({name for name in machines if machines.count(name) > 1}):
        yield Mistake(f"machines.{name}", "a node of Slurm has the same name", "rename one of the tables")
    image = raw.get("image")
    if isinstance(image, dict) and "workload" in image:
        what = "a study with [machines] cannot have an image of its own"
        yield Mistake("image.workload", what, "leave it out, or run the study without [machines] on each machine")
    yield from _shared(table)
    names = [f"{machine}-{environment}" for machine in machines for environment in environments]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Mistake("machines", f'two pairs of machine and environment would be called "{name}"', "rename one")
    yield from _launchers(raw.get("environments"), list(table.values()), place)
    if isinstance(place, dict):
        yield from _table_mistakes(place, machines, nodes)
    elif place == SPREAD and len(machines) < len(nodes):
        there = f"{len(machines)} {plural(len(machines), 'machine')}"
        yield Mistake(
            "nodes.place",
            f'"spread" needs a machine for each of {len(nodes)} nodes, not {there}',
            "use fewer workers or more machines, or a table: node = machine",
        )


def _ways(table: Mapping[str, Any]) -> Iterable[Mistake]:
    """Machines that are reached in no way, or in two, and what does not go with a way."""
    for name, one in table.items():
        if not isinstance(one, dict):
            continue
        if "slurm" not in one and "ssh" not in one:
            yield Mistake(f"machines.{name}.ssh", "is missing", "or `slurm`, for nodes of an allocation")
        if "slurm" in one and "ssh" in one:
            yield Mistake(f"machines.{name}", "has both `ssh` and `slurm`", "leave one of them out")
        if "slurm" in one and "address" in one:
            yield Mistake(
                f"machines.{name}.address", "nodes of Slurm have no address before they are given", "leave it out"
            )
        options = one["slurm"].get("options", ()) if isinstance(one.get("slurm"), dict) else ()
        for option in options if isinstance(options, list) else ():
            given = str(option).partition("=")[0]
            if given not in SLURM_OPTIONS:
                path = f"machines.{name}.slurm.options"
                yield unknown_choice(path, given, SLURM_OPTIONS, "option of salloc that vtax passes on,")


def _launchers(environments: Any, tables: Sequence[Any], place: Any) -> Iterable[Mistake]:
    """Environments whose ranks srun cannot start: it starts them on the nodes of one allocation, where they join nodes
    of the host."""
    for name, one in environments.items() if isinstance(environments, dict) else ():
        if not isinstance(one, dict) or one.get("launcher") != "srun":
            continue
        allocated = len(tables) == 1 and isinstance(tables[0], dict) and "slurm" in tables[0]
        model = option_models().get(str(one.get("provider")))
        if model is None or "launcher" not in model.model_fields:
            what, remedy = f"srun starts ranks of the host, not of {one.get('provider')!r}", "leave it out"
        elif not allocated:
            what = "srun starts ranks on the nodes of one allocation of Slurm"
            remedy = "leave it out, or have one table [machines.NAME] with `slurm` and no other"
        elif place == TOGETHER:
            what = 'srun starts ranks across nodes of Slurm, and place = "together" has whole clusters on each'
            remedy = 'set place = "spread" in [nodes], or leave it out'
        elif one.get("network") != "host":
            what = "srun starts ranks on the machines' own network alone"
            remedy = 'set network = "host", or leave it out'
        else:
            continue
        yield Mistake(f"environments.{name}.launcher", what, remedy)


def _same(table: Mapping[str, Any]) -> Iterable[Mistake]:
    """Machines with the same destination: results of one machine would count as those of several."""
    first: dict[object, str] = {}
    for name, one in table.items():
        to = one.get("ssh") if isinstance(one, dict) else None
        if isinstance(to, str) and first.setdefault(to, name) != name:
            yield Mistake(f"machines.{name}.ssh", f'machine "{first[to]}" has the same address', "remove one of them")


def _shared(table: Mapping[str, Any]) -> Iterable[Mistake]:
    """A directory that some machines share and others do not: nodes on these would not see it."""
    lacking = [name for name, one in table.items() if isinstance(one, dict) and not one.get("shared")]
    if lacking and len(lacking) < len(table):
        what = f"no directory for {listed(lacking)}, but for others"
        yield Mistake("machines", what, "name the shared directory of every machine, or of none")


def _table_mistakes(place: Mapping[str, Any], machines: Sequence[str], nodes: Sequence[str]) -> Iterable[Mistake]:
    for node, machine in place.items():
        if node not in nodes:
            yield unknown_choice(f"nodes.place.{node}", node, nodes, "node")
        if machine not in machines:
            yield unknown_choice(f"nodes.place.{node}", machine, machines, "machine")
    if missing := [node for node in nodes if node not in place]:
        yield Mistake("nodes.place", f"no machine for {listed(missing)}", "name the machine of every node")
    if unused := [machine for machine in machines if machine not in place.values()]:
        yield Mistake("nodes.place", f"no node is on {listed(unused)}", "place a node there, or remove the machine")
