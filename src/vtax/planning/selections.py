"""What of a study an environment runs: chosen entries, the first rounds only, and less where it would be emulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from vtax.errors import Mistake
from vtax.model.study import BenchmarkSpec, EnvironmentSpec, Selection, Study
from vtax.planning.mistakes import unknown_choice, validated
from vtax.planning.study_tables import MOST_ROUNDS, EmulatedTable, EnvironmentTable, SelectionTable
from vtax.providers import option_models
from vtax.providers.base import Options, Provider
from vtax.wording import listed, plural

KEYS = tuple(EnvironmentTable.model_fields)  # of every environment, besides the options of its provider


def keys_of(model: type[Options]) -> tuple[str, ...]:
    """Those of an environment with these options."""
    return tuple(key for key in KEYS if key != "emulated" or model.emulation)


def selections(table: Mapping[str, Any], path: str, mistakes: list[Mistake]) -> dict[str, Selection | None]:
    """The `selection` of an environment's table, and what replaces it where it would be `emulated`."""
    given = validated(EnvironmentTable, {key: table[key] for key in KEYS if key in table}, path, mistakes)
    if given is None:
        return {}
    return {"selection": _selection(given), "emulated": None if given.emulated is None else _selection(given.emulated)}


def _selection(table: SelectionTable) -> Selection:
    most = table.iterations if isinstance(table, EmulatedTable) else None
    return Selection(only=tuple(table.only or ()), skip=tuple(table.skip), rounds=table.rounds, iterations=most)


def emulates(spec: EnvironmentSpec, provider: Provider) -> bool:
    """Whether the nodes of an environment are emulated in software on this machine."""
    return provider.emulates(provider.options.model_validate(dict(spec.options)))


def selected(spec: EnvironmentSpec, provider: Provider) -> EnvironmentSpec:
    """The environment with what it runs on this machine, where its nodes may be emulated."""
    if spec.emulated is None or not emulates(spec, provider):
        return spec
    return spec.model_copy(update={"selection": spec.emulated})


def unselected(study: Study, spec: EnvironmentSpec, provider: Provider) -> list[str]:
    """What an environment does not run because the study says so, as a sentence."""
    chosen, rounds = spec.selection, spec.selection.rounds_of(study.rounds)
    if rounds == study.rounds and chosen.model_copy(update={"rounds": None}) == Selection():
        return []
    entries = (
        f"only {listed(chosen.only)}" if chosen.only else f"all but {listed(chosen.skip)}" if chosen.skip else "all"
    )
    often = f", in {rounds} of {study.rounds} rounds" if rounds < study.rounds else ""
    if chosen.iterations is not None:
        often += f", {chosen.iterations} {plural(chosen.iterations, 'iteration')} of each at most"
    emulated = chosen == spec.emulated and emulates(spec, provider)
    here = "is emulated in software here: the study then has it run" if emulated else "runs"
    return [f"{spec.name} {here} {entries}{often}"]


def selection_mistakes(
    raw: Mapping[str, Any], environments: Sequence[EnvironmentSpec], entries: Sequence[BenchmarkSpec]
) -> Iterable[Mistake]:
    """Labels that do not exist, contradictions, environments that are left with nothing."""
    labels = [entry.label for entry in entries if entry.alone]
    rounds = _rounds(raw)
    for spec in environments:
        path, table = f"environments.{spec.name}", raw["environments"][spec.name]
        yield from _table_mistakes(path, table, labels, rounds)
        if (emulated := table.get("emulated")) is not None:
            yield from _emulated_mistakes(path, spec)
            if isinstance(emulated, dict):
                yield from _table_mistakes(f"{path}.emulated", emulated, labels, rounds)
        if spec.name == raw.get("baseline"):
            hint = "leave it out: what is not measured in the baseline has nothing to be compared with"
            for key in {"rounds", "emulated"} & set(table):
                yield Mistake(f"{path}.{key}", "the baseline takes part in every round", hint)


def _rounds(raw: Mapping[str, Any]) -> int | None:
    """Those of the study; None where the file is wrong about them, which is reported elsewhere."""
    looks = raw.get("looks")
    rounds = looks[-1] if isinstance(looks, list) and looks else raw.get("rounds", 6)
    return rounds if _is_count(rounds) else None


def _is_count(value: Any) -> TypeGuard[int]:
    """Whether it is a possible number of rounds; other mistakes about it are reported where the file is validated."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_ROUNDS


def _table_mistakes(
    path: str, table: Mapping[str, Any], labels: Sequence[str], rounds: int | None
) -> Iterable[Mistake]:
    for key in ("only", "skip"):
        named = table.get(key)
        for label in named if isinstance(named, list) else ():
            if isinstance(label, str) and label not in labels:
                yield unknown_choice(f"{path}.{key}", label, labels, "entry with the label")
    if table.get("only") == []:
        yield Mistake(f"{path}.only", "the list is empty", "name the entries to run, or leave `only` out")
    if "only" in table and "skip" in table:
        yield Mistake(f"{path}.skip", "it cannot be combined with `only`", "leave one of them out")
    elif labels and isinstance(table.get("skip"), list) and set(labels) <= set(map(str, table["skip"])):
        yield Mistake(f"{path}.skip", "nothing is left to run", "leave the environment out, or skip less")
    own = table.get("rounds")
    if _is_count(own) and rounds is not None and own > rounds:
        yield Mistake(f"{path}.rounds", f"{own} is more than the {rounds} rounds of the study", f"{rounds} at most")


def _emulated_mistakes(path: str, spec: EnvironmentSpec) -> Iterable[Mistake]:
    models = option_models()
    if spec.provider in models and not models[spec.provider].emulation:
        can = ", ".join(sorted(name for name, model in models.items() if model.emulation))
        yield Mistake(f"{path}.emulated", f'provider "{spec.provider}" emulates nothing', f"only for {can}")
