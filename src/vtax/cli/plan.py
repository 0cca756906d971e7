"""vtax plan: what a study would do here. Starts nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vtax.cli.run import Anytime, Budget, Rounds, budget_of

if TYPE_CHECKING:
    from vtax.model.plan import Plan
    from vtax.planning.preparation import Prepared

Json = Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")]


def plan(
    study: Annotated[Path, typer.Argument(help="The study file.", show_default=False)],
    json: Json = False,
    rounds: Rounds = None,
    budget: Budget = "",
    anytime: Anytime = False,
    available: Annotated[bool, typer.Option(help="Leave out environments that do not work here.")] = False,
    check: Annotated[
        bool, typer.Option(help="Exit with code 2 or 3 when `vtax run` would refuse the study here.")
    ] = False,
) -> None:
    """Show the frozen work, the order of all runs, the exact commands and the estimated time. Starts nothing.

    A study may ask for more than this machine has: then the plan says so, and `vtax run` and --check refuse it.

    \b
    Example:  vtax plan quick.toml
    Example:  vtax plan standard.toml --rounds 10
    """
    from vtax.cli.console import paths, print_json, say, warn
    from vtax.model.finding import Severity
    from vtax.pipeline import Overrides
    from vtax.planning.preparation import prepare, refuse_impossible
    from vtax.planning.study import load

    overrides = Overrides(rounds, budget_of(budget), anytime)
    prepared = prepare(overrides.of(load(study)), paths(), only_available=available)
    made = prepared.plan
    if json:
        print_json(made.model_dump(mode="json"))
    else:
        say(*lines_of(prepared))
    for sentence in prepared.warnings():
        warn(f"note: {sentence}")
    for name in prepared.providers:
        for problem in prepared.blockers(name):
            warn(f"note: {name} is not available here now: {problem.message}; {problem.remedy}")
    too_large = [problem.message for problem in made.problems if problem.severity is Severity.BLOCKER]
    for message in too_large:
        warn(f"note: `vtax run` would refuse this study on this machine: {message}")
    if check:
        refuse_impossible(prepared)


def lines_of(prepared: Prepared) -> list[str]:
    """The plan as text."""
    from vtax.units import format_bytes, format_seconds

    plan = prepared.plan
    trials = sum(len(cell.trials) for cell in plan.cells)
    lines = [
        f"study {plan.study.name}: {plan.study.rounds} rounds, {len(plan.cells)} cells, {trials} trials, "
        f"about {format_seconds(plan.estimate_s)}; seed {plan.study.seed}",
        *_ending(plan),
        f"plan sha256 {plan.sha256}",
        "",
        "nodes",
    ]
    for node in plan.shape.nodes:
        lines.append(
            f"  {node.name}: CPUs {','.join(map(str, node.cpu_ids))}, memory {format_bytes(node.memory_bytes)}, "
            f"disk {format_bytes(node.disk_bytes)}"
        )
    image = plan.study.image
    lines += [
        "",
        "root file system",
        f"  Debian {image.suite} ({' '.join(image.components)}) from {_mirror(image.mirror)}, {image.kernel} kernel",
        *([f"  extra packages: {' '.join(image.extra_packages)}"] if image.extra_packages else []),
    ]
    lines += ["", "environments"]
    for spec in plan.environments:
        options = " ".join(f"{key}={value}" for key, value in spec.options.items() if value is not None)
        control = f" (control: repeats {spec.control_of})" if spec.control_of else ""
        lines.append(f"  {spec.name}{control}: {spec.provider} {options}".rstrip())
        made = prepared.providers[spec.name].commands(spec, plan.shape, plan.study.shared_path, plan.study.image.kernel)
        lines += [f"    $ {shlex.join(command)}" for command in made]
    lines += _work_lines(plan)
    lines += ["", "order"]
    for cell in plan.cells:
        lines.append(f"  round {cell.round}: {cell.environment}: " + " ".join(trial.work for trial in cell.trials))
    if plan.left_out:
        lines += ["", "left out", *(f"  {sentence}" for sentence in plan.left_out)]
    if plan.problems:
        lines += ["", "problems"]
        lines += [f"  {problem.severity}: {problem.message}; {problem.remedy}" for problem in plan.problems]
    return lines


def _mirror(mirror: str) -> str:
    return "this machine's own mirror" if mirror == "auto" else mirror


def _ending(plan: Plan) -> list[str]:
    """When the interim analyses are, and when the campaign ends."""
    from vtax.units import format_looks, format_seconds

    study, round_s = plan.study, plan.estimate_s / plan.study.rounds
    lines = []
    if study.anytime:
        lines.append(
            f"interim analyses after {format_looks(study.looks)} (about {format_seconds(round_s * study.looks[0])} to "
            f"{format_seconds(round_s * study.rounds)}), with intervals that are valid at all of them; ends at the "
            "first at which all primary metrics have a verdict"
        )
    elif len(study.looks) > 1:
        at = ", ".join(f"{look} (about {format_seconds(round_s * look)})" for look in study.looks)
        lines.append(
            f"interim analyses after rounds {at}; ends at the first at which all primary metrics have a verdict"
        )
    if study.budget_s is not None:
        lines.append(f"budget {format_seconds(study.budget_s)}: about {int(study.budget_s // round_s)} rounds")
    if study.ladder:
        lines.append(f"ladder {', '.join(study.ladder)}")
    return lines


def _work_lines(plan: Plan) -> list[str]:
    lines = ["", "work"]
    for spec in plan.environments:
        for work in plan.work:
            if work.environment != spec.name:
                continue
            frozen = " ".join(f"{key}={value}" for key, value in work.params.items() if value is not None)
            lines.append(f"  {spec.name}: {work.id} (about {work.estimate_s:g} s): {frozen}")
            for step in work.steps:
                background = " &" if step.background else ""
                lines.append(f"    {','.join(step.nodes)}:{work.target.directory}$ {shlex.join(step.argv)}{background}")
            for step in work.load.steps if work.load else ():
                where = f"{','.join(step.nodes)}:{work.load.target.directory}" if work.load else ""
                lines.append(f"    load: {where}$ {shlex.join(step.argv)} &")
    return lines
