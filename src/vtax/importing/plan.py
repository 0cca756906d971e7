"""The plan of an imported campaign: its runs described as if they had been planned. Pure.

It names environments, work and runs, so that analysis, audit and report read it like any other. What a log does not say
(CPUs, memory, disks, commands of a study) is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vtax import __version__
from vtax.model.cluster import CellRecord, NodeFacts
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, Target
from vtax.model.plan import Cell, Origin, Plan, PlannedTrial, Work
from vtax.model.study import BenchmarkSpec, EnvironmentSpec, ImageSpec, Study
from vtax.model.trial import Status, TrialRecord
from vtax.planning.plan import digest
from vtax.tools import versions as versions_of_tools

PROVIDER = "imported"
NODE = "logs"  # the node to which an environment's facts are assigned: most logs do not name theirs
FACTS = {  # of a log -> of a node
    "kernel": "kernel",
    "libc": "libc",
    "cpus": "cpus",
    "memory_bytes": "memory_total_bytes",
    "machine": "machine",
    "compiler": "compiler",
}


def plan_of(
    name: str, trials: Iterable[TrialRecord], baseline: str, problems: tuple[Problem, ...]
) -> tuple[Plan, tuple[CellRecord, ...]]:
    """The plan that these trials carry out, and the record of every cell: what their logs record about it."""
    every = sorted(trials, key=lambda trial: (trial.round, trial.environment, trial.id))
    environments = tuple(EnvironmentSpec(name=n, provider=PROVIDER) for n in _environments(every, baseline))
    plan = Plan(
        origin=Origin.IMPORTED,
        vtax_version=__version__,
        study=_study(name, every, baseline, environments),
        capacity=HostCapacity(cpu_ids=(), memory_bytes=0),
        shape=ClusterShape(nodes=()),
        environments=environments,
        work=tuple(_work(every)),
        cells=tuple(_cells(every)),
        problems=problems,
        estimate_s=0.0,
    )
    members: dict[str, list[TrialRecord]] = {}
    for trial in every:
        members.setdefault(trial.cell, []).append(trial)
    records = tuple(_record(cell, members[cell.id]) for cell in plan.cells)
    return plan.model_copy(update={"sha256": digest(plan)}), records


def _environments(trials: list[TrialRecord], baseline: str) -> list[str]:
    """The baseline first."""
    return [baseline, *sorted({trial.environment for trial in trials} - {baseline})]


def _study(name: str, trials: list[TrialRecord], baseline: str, environments: tuple[EnvironmentSpec, ...]) -> Study:
    entries = {trial.label: trial for trial in trials}
    return Study(
        name=name,
        seed=0,
        rounds=max(trial.round for trial in trials),
        baseline=baseline,
        margin=0.02,
        settle_s=0.0,
        environments=environments,
        workers=0,
        cpus=None,
        memory_bytes=None,
        disk_bytes=None,
        shared_path="/shared",
        image=ImageSpec(),
        benchmarks=tuple(
            BenchmarkSpec(name=trial.benchmark, label=label, scopes=(trial.scope,), params=trial.params)
            for label, trial in sorted(entries.items())
        ),
    )


def _work(trials: list[TrialRecord]) -> Iterable[Work]:
    first = {(trial.environment, trial.work, trial.label): trial for trial in reversed(trials)}
    for (environment, work, label), trial in sorted(first.items()):
        yield Work(
            id=work,
            environment=environment,
            benchmark=trial.benchmark,
            label=label,
            target=Target(scope=trial.scope, nodes=(), directory=""),
            params=trial.params,
            steps=(),
            estimate_s=trial.elapsed_s,
        )


def _cells(trials: list[TrialRecord]) -> Iterable[Cell]:
    found: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        found.setdefault(trial.cell, []).append(trial)
    for cell, members in found.items():
        yield Cell(
            id=cell,
            round=members[0].round,
            environment=members[0].environment,
            trials=tuple(PlannedTrial(id=t.id, work=t.work, iteration=t.iteration, warmup=t.warmup) for t in members),
        )


def _record(cell: Cell, mine: list[TrialRecord]) -> CellRecord:
    facts = facts_of(mine)
    return CellRecord(
        cell=cell.id,
        environment=cell.environment,
        round=cell.round,
        instance=1,
        status=Status.OK,
        started=min(trial.started for trial in mine),
        provision_s=0.0,
        facts=(NodeFacts(node=NODE, values=facts),) if facts else (),
    )


def facts_of(trials: Iterable[TrialRecord]) -> dict[str, Any]:
    """The facts of nodes and programs in the logs of one environment; contradictory ones are left out."""
    seen: dict[str, list[Any]] = {}
    versions: dict[str, list[Any]] = {}
    packages = versions_of_tools()
    for trial in trials:
        said: Mapping[str, Any] = trial.imported.facts if trial.imported else {}
        for key, name in FACTS.items():
            if key in said:
                seen.setdefault(name, []).append(said[key])
        for key, name in packages.items():
            if key in said:
                versions.setdefault(name, []).append(said[key])
        place = said.get("filesystem")
        if isinstance(place, dict) and str(place.get("path", "")).startswith("/shared"):
            seen.setdefault("shared_filesystem", []).append(place["type"])
    facts = {name: values[0] for name, values in seen.items() if all(value == values[0] for value in values)}
    agreed = {name: values[0] for name, values in versions.items() if all(value == values[0] for value in values)}
    return {**facts, **({"versions": agreed} if agreed else {})}
