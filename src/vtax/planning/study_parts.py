"""The environments and the benchmark entries of a study, each read by the model of its provider or its tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from vtax.errors import Mistake
from vtax.model.names import STUDY_NAME
from vtax.model.nodes import Scope
from vtax.model.study import BenchmarkSpec, EnvironmentSpec
from vtax.planning.mistakes import unknown_choice, validated
from vtax.planning.selections import KEYS, keys_of, selections
from vtax.planning.study_tables import BenchmarkTable
from vtax.planning.sweeps import Point
from vtax.providers import built_in, candidates, option_models
from vtax.tools import benchmarks, metrics_of


def environments(
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


def entries(
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
                exploratory=tuple(table.exploratory) if isinstance(table.exploratory, list) else table.exploratory,
                sweep_of=sweep_of,
                point=point,
                workload=table.workload,
                params=params.model_dump(mode="json"),
            )
            mistakes += _unknown_metrics(path, spec)
            if (own_mistakes := getattr(benchmark, "mistakes", None)) is not None:
                found: Iterable[Mistake] = own_mistakes(params, spec, workload=workload)
                mistakes += [replace(one, path=f"{path}.{one.path}") for one in found]
            yield spec


def _unknown_metrics(path: str, spec: BenchmarkSpec) -> Iterable[Mistake]:
    """Metrics that the entry would have as exploratory, and has not as primary."""
    primary = [metric.name for metric in metrics_of(spec.name, spec.params) if metric.primary]
    for metric in spec.exploratory if isinstance(spec.exploratory, tuple) else ():
        if metric not in primary:
            yield unknown_choice(f"{path}.exploratory", metric, primary, "primary metric")


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
