"""The study: a TOML file, checked as a whole before anything else happens.

`parse` reports every mistake at once, each with its path, what is allowed and the nearest right spelling.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from vtax.analysis.records import VERDICT_FROM
from vtax.errors import Mistake, StudyError, UsageError
from vtax.model.names import STUDY_NAME
from vtax.model.nodes import MOST_WORKERS, Scope
from vtax.model.study import (
    BenchmarkSpec,
    EnvironmentSpec,
    ImageSpec,
    MachineSpec,
    Study,
    WorkloadSpec,
)
from vtax.planning.machine_mistakes import machine_mistakes
from vtax.planning.machine_tables import machines_of
from vtax.planning.mistakes import unknown_choice, unsupported_values, validated
from vtax.planning.presets import study_text
from vtax.planning.selections import KEYS, keys_of, selection_mistakes, selections
from vtax.planning.study_files import with_files
from vtax.planning.study_tables import BenchmarkTable, StudyFile
from vtax.planning.sweeps import Point, points, with_points
from vtax.planning.weights import score_mistakes
from vtax.planning.workloads import expanded
from vtax.providers import built_in, candidates, option_models
from vtax.providers.base import Options
from vtax.tools import benchmarks

VALUES = 10_000  # in a study; a long one has some hundred
DOTS = 100  # in a line: keys with many parts take the square of their number to read
CONTROL = "control"  # the environment that repeats the baseline


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
    environments = tuple(_environments(raw.get("environments"), kernel, nodes, mistakes, machines=machines))
    workload = table is not None and table.image.workload is not None
    entries = tuple(_benchmarks(swept, nodes, mistakes, workload=workload))
    named = raw.get("environments")
    names = list(named) if isinstance(named, dict) else []
    mistakes += _cross_checks(raw, names, entries, nodes)
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


def _environments(
    raw: Any, kernel: str, nodes: Sequence[str], mistakes: list[Mistake], *, machines: bool
) -> Iterable[EnvironmentSpec]:
    """The environments of a study with these `nodes`; `machines` says whether it has [machines]."""
    models = option_models()
    for name, table in raw.items() if isinstance(raw, dict) else ():
        path = f"environments.{name}"
        if not isinstance(table, dict) or re.fullmatch(STUDY_NAME, name) is None:
            continue  # the validation of the file has reported that
        provider = table.get("provider")
        if not isinstance(provider, str) or provider not in models:
            mistakes.append(unknown_choice(f"{path}.provider", provider, models, "provider"))
            yield EnvironmentSpec(name=name, provider="")
            continue
        model = models[provider]
        options = {key: value for key, value in table.items() if key not in ("provider", *KEYS)}
        valid = validated(model, options, path, mistakes, (*keys_of(model), *model.model_fields))
        if valid and (key := valid.missing_driver(kernel)):
            lack = f'the "{kernel}" kernel has no driver for "{getattr(valid, key)}"'
            mistakes.append(Mistake(f"{path}.{key}", lack, 'set kernel = "generic" in [image]'))
        if valid and (wrong := valid.wrong_nodes(nodes)):
            mistakes.append(Mistake(f"{path}.nodes", wrong, "name each node once: nodes = {NODE = DESTINATION, ...}"))
        if machines and not built_in().keys() >= set(candidates(provider)):
            plug_in = f'"{provider}" is a plug-in, and vtax sends only itself to machines'
            mistakes.append(Mistake(f"{path}.provider", plug_in, "use a provider of vtax's own"))
        if valid and valid.machines and machines:
            both = "its nodes are machines already, and the study has others in [machines]"
            mistakes.append(Mistake(f"{path}.provider", both, "leave [machines] or this environment out"))
        own = valid.model_dump(mode="json") if valid else {}
        one_directory = valid.one_directory if valid else True
        chosen = selections(table, path, mistakes)
        yield EnvironmentSpec(name=name, provider=provider, options=own, one_directory=one_directory, **chosen)


def _benchmarks(
    several: Sequence[Point], nodes: Sequence[str], mistakes: list[Mistake], *, workload: bool
) -> Iterable[BenchmarkSpec]:
    """The entries; `workload` says whether the study has an image of its own."""
    known = benchmarks()
    common = set(BenchmarkTable.model_fields)
    for path, entry, label, sweep_of, point in several:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in known:
            mistakes.append(unknown_choice(f"{path}.name", name, known, "benchmark"))
            continue
        benchmark = known[name]
        own = {key: value for key, value in entry.items() if key not in common}
        allowed = (*common, *benchmark.params.model_fields)
        table = validated(BenchmarkTable, {k: v for k, v in entry.items() if k in common}, path, mistakes)
        params = validated(benchmark.params, own, path, mistakes, allowed)
        for scope in (table.scopes or ()) if table else ():
            if scope not in benchmark.scopes:
                mistakes.append(
                    unknown_choice(f"{path}.scopes", scope.value, [s.value for s in benchmark.scopes], "scope")
                )
        for node in table.nodes if table else ():
            if node not in nodes:
                mistakes.append(unknown_choice(f"{path}.nodes", node, nodes, "node"))
        if table and params:
            mistakes += _never_run(path, tuple(table.scopes or benchmark.default_scopes), table.nodes)
            if table.one_way and Scope.PAIRS not in (table.scopes or benchmark.default_scopes):
                mistakes.append(Mistake(f"{path}.one_way", 'only scope "pairs" has two directions', "leave it out"))
            if table.all_pairs and Scope.PAIRS not in (table.scopes or benchmark.default_scopes):
                mistakes.append(Mistake(f"{path}.all_pairs", 'only scope "pairs" has pairs of nodes', "leave it out"))
            if Scope.PROVISIONING in (table.scopes or benchmark.default_scopes):
                mistakes += _comes_with_clusters(path, table)
            spec = BenchmarkSpec(
                name=name,
                label=label or table.label or name,
                scopes=tuple(dict.fromkeys(table.scopes or benchmark.default_scopes)),
                nodes=tuple(table.nodes),
                warmup=table.warmup,
                iterations=table.iterations,
                load=table.load,
                alone=table.alone,
                one_way=table.one_way,
                all_pairs=table.all_pairs,
                exploratory=table.exploratory,
                sweep_of=sweep_of,
                point=point,
                workload=table.workload,
                params=params.model_dump(mode="json"),
            )
            if (own_mistakes := getattr(benchmark, "mistakes", None)) is not None:
                found: Iterable[Mistake] = own_mistakes(params, spec, workload=workload)
                mistakes += [replace(one, path=f"{path}.{one.path}") for one in found]
            yield spec


def _never_run(path: str, scopes: Sequence[Scope], chosen: Sequence[str]) -> Iterable[Mistake]:
    """Scopes in which the chosen nodes leave nothing to run."""
    if Scope.PAIRS in scopes and len(set(chosen)) == 1:
        yield Mistake(f"{path}.nodes", 'scope "pairs" needs two nodes', "name a second one, or leave `nodes` out")
    if Scope.SHARED in scopes and set(chosen) == {"master"}:
        yield Mistake(f"{path}.nodes", 'scope "shared" runs on workers only', "name a worker, or leave `nodes` out")


def _comes_with_clusters(path: str, table: BenchmarkTable) -> Iterable[Mistake]:
    """Keys that have no meaning for what is noted once of every cluster, without a run."""
    for key in ("nodes", "warmup", "iterations", "load", "alone"):
        if getattr(table, key) != type(table).model_fields[key].get_default(call_default_factory=True):
            yield Mistake(f"{path}.{key}", "it is noted of every cluster once, and runs nothing", "leave this key out")


def _cross_checks(
    raw: Mapping[str, Any], environments: Sequence[str], entries: Sequence[BenchmarkSpec], nodes: Sequence[str]
) -> Iterable[Mistake]:
    baseline = raw.get("baseline")
    if isinstance(baseline, str) and baseline not in environments:
        yield unknown_choice("baseline", baseline, environments, "environment")
    yield from _ladder_mistakes(raw.get("ladder"), environments)
    if raw.get("control") is True and CONTROL in environments:
        hint = "rename it: that name is reserved for the control arm"
        yield Mistake(f"environments.{CONTROL}", "an environment cannot have this name when `control` is true", hint)
    yield from _look_checks(raw)
    yield from _uneven(raw, environments, entries)
    yield from score_mistakes(raw.get("scores"), entries)
    table = raw.get("nodes")
    overrides = table.get("overrides") if isinstance(table, dict) else None
    for node in overrides if isinstance(overrides, dict) else ():
        if node not in nodes:
            yield unknown_choice(f"nodes.overrides.{node}", node, nodes, "node")
    seen: set[str] = set()
    for entry in entries:
        if entry.label in seen:
            yield Mistake("benchmarks", f'two entries have the label "{entry.label}"', "give one of them another label")
        seen.add(entry.label)
    loads = {entry.label for entry in entries if not entry.load}
    for entry in entries:
        if entry.load and entry.load not in loads:
            yield unknown_choice(f"benchmarks.{entry.label}.load", entry.load, sorted(loads), "entry without a load")
        if not entry.alone and entry.label not in {other.load for other in entries}:
            yield Mistake(
                f"benchmarks.{entry.label}.alone", "no entry uses it as its load", "name it as the `load` of an entry"
            )


def _ladder_mistakes(raw: Any, environments: Sequence[str]) -> Iterable[Mistake]:
    steps = [step for step in raw if isinstance(step, str)] if isinstance(raw, list) else []
    for step in steps:
        if step not in environments:
            yield unknown_choice("ladder", step, environments, "environment")
    if len(steps) == 1:
        yield Mistake("ladder", "a single step compares nothing", "name two or more environments, or leave it out")
    for step in {step for step in steps if steps.count(step) > 1}:
        yield Mistake("ladder", f'"{step}" is listed twice', "list each environment only once")


def _look_checks(raw: Mapping[str, Any]) -> Iterable[Mistake]:
    looks, rounds = raw.get("looks"), raw.get("rounds", VERDICT_FROM)
    if raw.get("anytime") is True and looks:
        yield Mistake(
            "anytime",
            "it already analyses after every round; it cannot be combined with `looks`",
            "leave one of them out",
        )
    elif raw.get("anytime") is True and isinstance(rounds, int) and rounds <= VERDICT_FROM:
        hint = "such as `rounds = 60`: the maximum, since the campaign may end earlier"
        yield Mistake("rounds", f"{rounds} rounds leave no interim analysis before the end", hint)
    if not isinstance(looks, list) or not all(isinstance(look, int) and look is not True for look in looks):
        return  # the validation of the file has reported that
    if not looks:
        yield Mistake("looks", "the list is empty", "leave `looks` out for a fixed number of `rounds`")
        return
    if any(later <= earlier for earlier, later in pairwise(looks)):
        yield Mistake(
            "looks", f"{looks} does not increase", "list rounds after which to analyse, such as [6, 10, 16, 24]"
        )
    elif looks[0] < VERDICT_FROM:
        hint = f"start at {VERDICT_FROM} or later: fewer rounds cannot support a verdict"
        yield Mistake("looks", f"the first analysis is after {looks[0]} rounds", hint)
    if "rounds" in raw and raw["rounds"] != looks[-1]:
        hint = "leave `rounds` out, because the last of `looks` ends the campaign; or leave `looks` out"
        yield Mistake("rounds", f"{raw['rounds']} is not the last of `looks`", hint)


def _uneven(raw: Mapping[str, Any], environments: Sequence[str], entries: Sequence[BenchmarkSpec]) -> Iterable[Mistake]:
    """Iterations that cannot alternate in mirrored order: A B, B A."""
    alone = len(environments) < 2 and raw.get("control") is not True
    if alone or raw.get("interleave", "trial") != "trial":
        return
    for entry in entries:
        if entry.alone and entry.iterations > 1 and entry.iterations % 2:
            why = f"{entry.iterations} is odd: interleaved iterations run in mirrored order, in pairs"
            hint = f'such as {entry.iterations + 1}, or 1; or set interleave = "cell"'
            yield Mistake(f"benchmarks.{entry.label}.iterations", why, hint)


def _node_names(raw: Mapping[str, Any]) -> list[str]:
    table = raw.get("nodes")
    workers = table.get("workers", 2) if isinstance(table, dict) else 2
    count = workers if isinstance(workers, int) and 1 <= workers <= MOST_WORKERS else 2
    return ["master", *(f"worker{number}" for number in range(1, count + 1))]
