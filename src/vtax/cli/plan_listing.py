"""The whole plan as text: the frozen work, the order of all runs, every command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vtax.cli.own_code import one_line
from vtax.cli.plan_summary import machine_text, own_image_texts, packages_texts, within_budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vtax.model.cluster import Workload
    from vtax.model.plan import Plan, Work
    from vtax.model.study import EnvironmentSpec
    from vtax.planning.preparation import Prepared
    from vtax.providers.base import Commands
    from vtax.tools.benchmark import Params


def lines_of(prepared: Prepared, own: Workload | None = None) -> list[str]:
    """The whole plan as text, with every command."""
    from vtax.units import format_bytes, format_seconds

    plan = prepared.plan
    trials = sum(len(cell.trials) for cell in plan.cells)
    lines = [
        f"study {plan.study.name}: {plan.study.rounds} rounds, {len(plan.cells)} cells, {trials} trials, "
        f"about {format_seconds(plan.estimate_s)}; seed {plan.study.seed}",
        *_ending(plan),
        f"plan sha256 {plan.sha256}",
        *(("", "machines") if plan.capacities else ()),
        *(f"  {machine_text(plan, name)}" for name in plan.capacities),
        "",
        "nodes",
    ]
    for node in plan.shape.nodes:
        lines.append(
            f"  {node.name}: CPUs {','.join(map(str, node.cpu_ids))}, memory {format_bytes(node.memory_bytes)}, "
            f"disk {format_bytes(node.disk_bytes)}"
        )
    lines += ["", "root file system", *(f"  {line}" for line in packages_texts(plan.study))]
    if plan.study.image.workload:
        lines += ["", "own image", *(f"  {line}" for line in own_image_texts(plan.study.image.workload, own))]
    lines += ["", "environments"]
    for spec in plan.environments:
        options = " ".join(f"{key}={value}" for key, value in spec.options.items() if value is not None)
        control = f" (control: repeats {spec.control_of})" if spec.control_of else ""
        lines.append(f"  {spec.name}{control}: {spec.provider} {options}".rstrip())
        lines += [f"    $ {shlex.join(command)}" for command in _commands(prepared, spec)]
    lines += _work_lines(plan)
    lines += ["", "order", *_order(plan)]
    if plan.left_out:
        lines += ["", "left out", *(f"  {sentence}" for sentence in plan.left_out)]
    if plan.problems:
        lines += ["", "problems"]
        lines += [f"  {problem.severity}: {problem.message}; {problem.remedy}" for problem in plan.problems]
    return lines


def _commands(prepared: Prepared, spec: EnvironmentSpec) -> Commands:
    """What makes the clusters of an environment. A provider that refuses own images need not know of them."""
    plan, one = prepared.plan, prepared.providers[spec.name]
    image, shared_path = plan.study.image, plan.study.shared_path
    if image.workload is None or one.workload_problems(spec):
        return one.commands(spec, plan.shape, shared_path, image.kernel)
    return one.commands(spec, plan.shape, shared_path, image.kernel, workload=True)


def _ending(plan: Plan) -> list[str]:
    """When the interim analyses are, and when the campaign ends."""
    from vtax.units import format_looks, format_seconds

    study = plan.study
    lines = []
    if study.anytime:
        first = format_seconds(plan.estimate_until(study.looks[0]))
        lines.append(
            f"interim analyses after {format_looks(study.looks)} (about {first} to {format_seconds(plan.estimate_s)}), "
            "with intervals that are valid at all of them; ends at the first at which all primary metrics have a "
            "verdict"
        )
    elif len(study.looks) > 1:
        at = ", ".join(f"{look} (about {format_seconds(plan.estimate_until(look))})" for look in study.looks)
        lines.append(
            f"interim analyses after rounds {at}; ends at the first at which all primary metrics have a verdict"
        )
    if study.budget_s is not None:
        lines.append(f"budget {format_seconds(study.budget_s)}: about {within_budget(plan)} rounds")
    if study.ladder:
        lines.append(f"ladder {', '.join(study.ladder)}")
    return lines


def _order(plan: Plan) -> Iterator[str]:
    """What runs when: a line for each cell, or, where trials alternate, for each work of a round."""
    from itertools import groupby

    from vtax.analysis.order import trials_in_order

    for number, cells in groupby(plan.cells, key=lambda cell: cell.round):
        if plan.interleave == "cell":
            for cell in cells:
                yield f"  round {number}: {cell.environment}: " + " ".join(trial.work for trial in cell.trials)
            continue
        for work, several in groupby(trials_in_order(list(cells)), key=lambda one: one[1].work):
            turns = (f"{cell.environment}{' (warm-up)' if trial.warmup else ''}" for cell, trial in several)
            yield f"  round {number}: {work}: " + " ".join(turns)


def _work_lines(plan: Plan) -> list[str]:
    lines = ["", "work"]
    for spec in plan.environments:
        for work in plan.work:
            if work.environment == spec.name:
                lines += _lines_of_work(work)
    return lines


def _lines_of_work(work: Work) -> Iterator[str]:
    """A work with its parameters, and every command of it."""
    from vtax.model.nodes import Phase
    from vtax.tools import benchmarks

    title = f"  {work.environment}: {work.id} (about {work.estimate_s:g} s)"
    made_by = benchmarks().get(work.benchmark)
    if made_by is not None and getattr(made_by, "own_code", False):
        yield title
        yield from (f"    {line}" for line in _as_in_a_study(made_by.params.model_validate(work.params)))
    else:
        yield f"{title}: {' '.join(f'{key}={value}' for key, value in work.params.items() if value is not None)}"
    for step in work.steps:
        background = " &" if step.background else ""
        phase = "" if step.phase is Phase.RUN else f"{step.phase}: "
        where = f"{phase}{','.join(step.nodes)}:{work.target.directory}"
        yield f"    {where}$ {one_line(step.argv)}{background}"
    for step in work.load.steps if work.load else ():
        where = f"{','.join(step.nodes)}:{work.load.target.directory}" if work.load else ""
        yield f"    load: {where}$ {one_line(step.argv)} &"


def _as_in_a_study(params: Params) -> Iterator[str]:
    """The keys of an entry with a command, as a study has them, without those that are as they are by default. What
    only the plan has is a comment."""
    from vtax.planning.short_study import toml_value

    known = type(params).model_json_schema()["properties"]
    for key, value in params.model_dump(mode="json", exclude_defaults=True, by_alias=True).items():
        yield f"{'' if key in known else '# '}{key} = {toml_value(value)}"
