"""The study: a TOML file, checked as a whole before anything else happens.

`parse` reports every mistake at once, each with its path, what is allowed and the nearest right spelling.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vtax.analysis.records import VERDICT_FROM
from vtax.errors import Mistake, StudyError, UsageError
from vtax.model.nodes import MOST_WORKERS
from vtax.model.study import (
    BenchmarkSpec,
    EnvironmentSpec,
    ImageSpec,
    MachineSpec,
    Study,
    WorkloadSpec,
)
from vtax.planning import study_parts
from vtax.planning.machine_mistakes import machine_mistakes
from vtax.planning.machine_tables import machines_of
from vtax.planning.mistakes import unsupported_values, validated
from vtax.planning.presets import study_text
from vtax.planning.selections import selection_mistakes
from vtax.planning.study_files import with_files
from vtax.planning.study_mistakes import CONTROL, study_mistakes
from vtax.planning.study_tables import StudyFile
from vtax.planning.sweeps import points, with_points
from vtax.planning.workloads import expanded
from vtax.providers import built_in, option_models
from vtax.providers.base import Options

VALUES = 10_000  # in a study; a long one has some hundred
DOTS = 100  # in a line: keys with many parts take the square of their number to read


def load(path: Path) -> Study:
    """The study in a file, or the preset of that name. Raises UsageError when it cannot be read, StudyError with all
    its mistakes."""
    try:
        text = study_text(path).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the study {path} is not UTF-8 text: {error}", remedy="save it as UTF-8") from error
    return of_text(text, str(path), path.parent)


def with_machines(study: Study) -> Study:
    """A study that has machines. Raises UsageError for one that is for this machine."""
    if not study.machines and not existing_nodes(study) and not in_clusters(study):
        raise UsageError(
            f"the study {study.name} has no machines: it is for this one",
            remedy="leave --machines out, or add a table [machines.NAME] with its `ssh` or `slurm` to the study",
        )
    return study


def in_clusters(study: Study) -> bool:
    """Whether vtax makes something for this study in a cluster of Kubernetes."""
    making = {name for name, one in built_in().items() if one.capabilities.elsewhere}
    machines = (*study.machines.values(), *existing_nodes(study).values())
    return any(spec.provider in making for spec in study.environments) or any(one.kubernetes for one in machines)


def existing_nodes(study: Study) -> dict[str, MachineSpec]:
    """The machines that are nodes of an environment, under names of their own."""
    models = {name: model for name, model in option_models().items() if model.machines is not Options.machines}
    return {
        f"{spec.name}-{node}": machine
        for spec in study.environments
        if spec.provider in models
        for node, machine in models[spec.provider].model_validate(dict(spec.options)).machines.items()
    }


def of_text(text: str, source: str, directory: Path) -> Study:
    """The study in `text`, whose files and own image are looked for from `directory`. Raises StudyError."""
    return with_files(based(parse(text, source), directory), directory, source)


def based(study: Study, directory: Path) -> Study:
    """The study with a directory that the relative path of its own image starts at."""
    workload = study.image.workload
    if workload is None:
        return study
    workload = workload.model_copy(update={"base": str(directory.absolute())})
    return study.model_copy(update={"image": study.image.model_copy(update={"workload": workload})})


def parse(text: str, source: str) -> Study:
    """The study in `text`. Raises StudyError with every mistake at once."""
    _refuse_dots(text, source)
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and arrays nested as deeply
        raise StudyError(source, [Mistake("(file)", f"not valid TOML: {error}")]) from error
    return check(raw, source)


def check(raw: Mapping[str, Any], source: str) -> Study:
    """The study in a table that was read from TOML. Raises StudyError with every mistake at once."""
    if _values(raw) > VALUES:
        raise StudyError(
            source, [Mistake("(file)", f"it has more than {VALUES} values", "split it into several studies")]
        )
    mistakes = list(unsupported_values(raw, ""))
    if mistakes:
        raise StudyError(source, mistakes)
    table = validated(StudyFile, raw, "", mistakes)
    swept = points(expanded(raw.get("benchmarks"), mistakes), mistakes)
    raw = with_points(raw, swept)
    nodes = _node_names(raw)
    kernel, machines = table.image.kernel if table else "", bool(table and table.machines)
    environments = tuple(study_parts.environments(raw.get("environments"), kernel, nodes, mistakes, machines=machines))
    workload = table is not None and table.image.workload is not None
    entries = tuple(study_parts.entries(swept, nodes, mistakes, workload=workload))
    named = raw.get("environments")
    names = list(named) if isinstance(named, dict) else []
    mistakes += study_mistakes(raw, names, entries, nodes)
    mistakes += selection_mistakes(raw, environments, entries)
    mistakes += machine_mistakes(raw, names, nodes)
    if mistakes or table is None:
        raise StudyError(source, sorted(set(mistakes), key=lambda mistake: mistake.path))
    return _study(table, environments, entries)


def _refuse_dots(text: str, source: str) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > DOTS:
            why = f"line {number} has more than {DOTS} dots"
            raise StudyError(source, [Mistake("(file)", why, "write it as several lines")])


def _values(raw: object) -> int:
    """How many values there are, as far as it matters."""
    left, count = [raw], 0
    while left and count <= VALUES:
        one = left.pop()
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left += inside
        count += 1
    return count


def _study(table: StudyFile, environments: tuple[EnvironmentSpec, ...], entries: tuple[BenchmarkSpec, ...]) -> Study:
    def fixed(value: int | str) -> int | None:
        return None if isinstance(value, str) else value

    overrides = {
        node: {
            key: value
            for key, value in (("cpus", one.cpus), ("memory_bytes", one.memory), ("disk_bytes", one.disk))
            if value is not None
        }
        for node, one in sorted(table.nodes.overrides.items())
    }
    looks = every_round(table.rounds) if table.anytime else tuple(table.looks) or (table.rounds,)
    study = Study(
        name=table.name,
        seed=table.seed,
        rounds=looks[-1],
        looks=looks,
        anytime=table.anytime,
        budget_s=table.budget,
        order_adjust=table.order_adjust,
        interleave=table.interleave,
        baseline=table.baseline,
        margin=table.margin,
        settle_s=table.settle,
        environments=environments,
        workers=table.nodes.workers,
        cpus=fixed(table.nodes.cpus),
        memory_bytes=fixed(table.nodes.memory),
        disk_bytes=fixed(table.nodes.disk),
        share_cpus=table.nodes.share_cpus,
        overrides=overrides,
        shared_path=table.shared.path,
        nfs=table.shared.nfs,
        image=ImageSpec(
            suite=table.image.suite,
            mirror=table.image.mirror,
            snapshot=table.image.snapshot,
            components=tuple(table.image.components),
            extra_packages=tuple(sorted(table.image.extra_packages)),
            kernel=table.image.kernel,
            workload=WorkloadSpec(source=table.image.workload.source) if table.image.workload else None,
        ),
        benchmarks=entries,
        ladder=tuple(table.ladder),
        machines=machines_of(table.machines),
        place=table.nodes.place,
        scores=tuple(score.spec for score in table.scores),
    )
    return with_control(study) if table.control else study


def every_round(rounds: int) -> tuple[int, ...]:
    """The interim analyses of a study whose intervals are valid after every round."""
    return tuple(range(VERDICT_FROM, rounds + 1))


def at_any_time(study: Study, rounds: int | None = None) -> Study:
    """The study with an analysis after every round from the sixth on, and intervals that allow it; at most `rounds`.

    Raises UsageError where that leaves no analysis before the end.
    """
    most = study.rounds if rounds is None else rounds
    if most <= VERDICT_FROM:
        raise UsageError(
            f"--anytime analyses after every round from {VERDICT_FROM} on, but only {most} rounds are planned",
            remedy=f"plan more than {VERDICT_FROM}: `rounds = 60` in the study, or --rounds 60; it may end earlier",
        )
    return study.model_copy(update={"rounds": most, "looks": every_round(most), "anytime": True})


def with_control(study: Study) -> Study:
    """The study with an environment that repeats the baseline in every round. Raises UsageError for a used name."""
    if study.control:
        return study
    if any(spec.name == CONTROL for spec in study.environments):
        raise UsageError(
            f'an environment is called "{CONTROL}"', remedy="rename it: that name is reserved for the control arm"
        )
    repeated = next(spec for spec in study.environments if spec.name == study.baseline)
    arm = repeated.model_copy(update={"name": CONTROL, "control_of": study.baseline})
    return study.model_copy(update={"control": True, "environments": (*study.environments, arm)})


def _node_names(raw: Mapping[str, Any]) -> list[str]:
    table = raw.get("nodes")
    workers = table.get("workers", 2) if isinstance(table, dict) else 2
    count = workers if isinstance(workers, int) and 1 <= workers <= MOST_WORKERS else 2
    return ["master", *(f"worker{number}" for number in range(1, count + 1))]
