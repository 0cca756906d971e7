"""vtax plan: what a study would do here. Starts nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vtax.cli.own_code import one_line, own_commands
from vtax.cli.run import STUDY_HELP, Anytime, Budget, Rounds, budget_of
from vtax.cli.sample import HELP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vtax.model.cluster import Workload
    from vtax.model.nodes import NodeShape
    from vtax.model.plan import Plan
    from vtax.model.study import EnvironmentSpec, Study, WorkloadSpec
    from vtax.pipeline import Overrides
    from vtax.planning.preparation import Prepared
    from vtax.providers.base import Commands

Json = Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")]
WIDTH, COLUMN = 100, 13  # of the summary, and of the words to the left of it


def plan(
    study: Annotated[Path | None, typer.Argument(help=STUDY_HELP, show_default=False)] = None,
    json: Json = False,
    commands: Annotated[
        bool, typer.Option("--commands", help="Show order, parameters and exact commands too.")
    ] = False,
    rounds: Rounds = None,
    budget: Budget = "",
    anytime: Anytime = False,
    available: Annotated[bool, typer.Option(help="Leave out environments that do not work here.")] = False,
    check: Annotated[
        bool, typer.Option(help="Exit with code 2 or 3 when `vtax run` would refuse the study here.")
    ] = False,
    sample: Annotated[list[str] | None, typer.Option("--sample", metavar="[LABEL[/OUTPUT]=]FILE", help=HELP)] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="CAMPAIGN", help="The study of this campaign, or of this file of `vtax seal`."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --from: write the study and its files there.")
    ] = None,
) -> None:
    """Show what a study compares here, how long it takes, what decides and what is left out. Starts nothing.

    --commands shows the frozen work, the order of all runs and the exact commands. A study may ask for more than this
    machine has: then the plan says so, and `vtax run` and --check refuse it.

    --from plans what somebody else measured for this machine, and lists what cannot be the same here. A study is code:
    look at its commands before you run it.

    \b
    Example:  vtax plan quick
    Example:  vtax plan --from theirs.vtax.zip --into theirs
    Example:  vtax plan standard --rounds 10 --commands
    Example:  vtax plan mine.toml --sample pgbench=output.txt
    """
    from vtax.cli.console import paths
    from vtax.pipeline import Overrides
    from vtax.planning.preparation import prepare
    from vtax.planning.study import load

    overrides = Overrides(rounds, budget_of(budget), anytime)
    if from_ is not None:
        _refuse_both(study, sample)
        _from(from_, into, overrides, json=json, commands=commands, available=available, check=check)
        return
    wanted = _given(study, into)
    if sample:
        _try(load(wanted), sample, json=json)
        return
    prepared = prepare(overrides.of(load(wanted)), paths(), only_available=available)
    _show(prepared, str(wanted), json=json, commands=commands)
    _notes(prepared, all_of_them=json or commands, check=check)


def _given(study: Path | None, into: Path | None) -> Path:
    from vtax.errors import UsageError

    if study is None:
        raise UsageError("there is no study to plan", remedy="give a study's file, a preset, or --from CAMPAIGN")
    if into is not None:
        raise UsageError("--into writes the study of --from", remedy="add --from CAMPAIGN, or leave it out")
    return study


def _refuse_both(study: Path | None, sample: list[str] | None) -> None:
    from vtax.errors import UsageError

    if study is not None or sample:
        raise UsageError("--from CAMPAIGN takes neither a study nor --sample", remedy="leave one of them out")


def _from(
    path: Path, into: Path | None, overrides: Overrides, *, json: bool, commands: bool, available: bool, check: bool
) -> None:
    """Plan the study of a campaign for this machine; say what cannot be the same."""
    from vtax import pipeline
    from vtax.cli.console import paths, print_json, say

    prepared, unlike = pipeline.plan_again(path, paths(), overrides, available=available, into=into)
    if json:
        found = [one.model_dump(mode="json") for one in unlike]
        print_json({"plan": prepared.plan.model_dump(mode="json"), "differences": found})
    else:
        where = str(into / "study.toml") if into else ""
        _show(prepared, where, json=False, commands=commands)
        say("", f"what cannot be the same here ({len(unlike)})" if unlike else "nothing that was recorded differs here")
        say(*(f"  {one.severity}: {one.what}: there {one.a}, here {one.b}" for one in unlike))
    _notes(prepared, all_of_them=json or commands, check=check)


def _show(prepared: Prepared, study: str, *, json: bool, commands: bool) -> None:
    """Print a plan. `study` is what `vtax run` is given; "" where it is not written anywhere yet."""
    from vtax.cli.console import paths, print_json, say
    from vtax.planning.preparation import own_image, to_make

    made = prepared.plan
    if json:
        print_json(made.model_dump(mode="json"))
    elif commands:
        say(*lines_of(prepared, own_image(made.study, paths())))
    else:
        own, lacking = own_image(made.study, paths()), to_make(made.study, paths())
        say(*summary(prepared, lacking, own), *own_commands(made), "")
        what = f"`vtax run {study}` does it" if study else "--into DIR writes the study, for `vtax run DIR/study.toml`"
        say(f"{what}; --commands shows every command in order")


def _notes(prepared: Prepared, *, all_of_them: bool, check: bool) -> None:
    """What does not work here. With `check`, exits with code 2 or 3 when `vtax run` would refuse the study."""
    from vtax.cli.console import warn
    from vtax.model.finding import Severity
    from vtax.planning.preparation import refuse_impossible

    made = prepared.plan
    for sentence in prepared.warnings() if all_of_them else ():
        warn(f"note: {sentence}")
    for name in prepared.providers:
        for problem in prepared.blockers(name):
            warn(f"note: {name} is not available here now: {problem.message}; {problem.remedy}")
    too_large = [problem.message for problem in made.problems if problem.severity is Severity.BLOCKER]
    for message in too_large:
        warn(f"note: `vtax run` would refuse this study on this machine: {message}")
    if check:
        refuse_impossible(prepared)


def _try(study: Study, samples: list[str], *, json: bool) -> None:
    """Print what the study's own metrics find in samples. Exits with code 2 where one finds nothing."""
    from vtax.cli.console import print_json, say
    from vtax.cli.sample import as_json, fits, lines_of, try_samples

    entries = try_samples(study, samples)
    if json:
        print_json(as_json(entries))
    else:
        say(*lines_of(entries))
    if not fits(entries):
        raise typer.Exit(2)


def summary(prepared: Prepared, lacking: Mapping[str, float], own: Workload | None = None) -> list[str]:
    """The plan in ten seconds: what is compared, how long it takes, what decides, what is left out. `lacking`: what has
    to be made first, with its seconds; `own`: the user's own image where it is in the cache."""
    return [line for word, text in _summary(prepared, lacking, own) for line in _filled(word, text)]


def _filled(word: str, text: str) -> list[str]:
    """A paragraph next to its word."""
    import textwrap

    first, rest = word.ljust(COLUMN), " " * COLUMN
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _summary(prepared: Prepared, lacking: Mapping[str, float], own: Workload | None) -> Iterator[tuple[str, str]]:
    from vtax.model.finding import Severity
    from vtax.model.study import ImageSpec
    from vtax.units import format_seconds
    from vtax.wording import listed

    plan, study = prepared.plan, prepared.plan.study
    others = [spec.name for spec in plan.environments if spec.name != study.baseline]
    against = f"{_names(plan, others)} against {study.baseline}" if others else f"nothing: {study.baseline} alone"
    yield "compares", f"{against}; equivalent is within {100 * study.margin:g} %"
    trials = sum(len(cell.trials) for cell in plan.cells)
    order = "alternating, trial by trial" if plan.interleave == "trial" else "one cluster after the other"
    yield "rounds", f"{study.rounds}, {trials} trials, {order}"
    more = f", and about {format_seconds(sum(lacking.values()))} once to {listed(list(lacking))}" if lacking else ""
    yield "time", f"about {format_seconds(plan.estimate_s)}{_earliest(plan)}{more}"
    yield "nodes", _nodes(plan.shape.nodes)
    if study.packages or study.image.model_copy(update={"workload": None}) != ImageSpec():
        yield "packages", "; ".join(_packages(study))  # what decides whose programs run here as root
    if study.image.workload:
        yield "image", "; ".join(_own_image(study.image.workload, own))
    runs = {work.label for work in plan.work}
    for word, exploratory in (("decides", False), ("exploratory", True)):
        labels = [spec.label for spec in study.benchmarks if spec.label in runs and spec.exploratory is exploratory]
        if labels:
            yield word, ", ".join(labels)
    for place, sentence in enumerate(plan.left_out):
        yield "left out" if place == 0 else "", sentence
    known = (*plan.problems, *(problem for name in prepared.providers for problem in prepared.problems[name]))
    limits = [*(problem.message for problem in known if problem.severity is Severity.WARNING), *_undecidable(plan)]
    for place, sentence in enumerate(limits):
        yield "limits" if place == 0 else "", sentence


def _undecidable(plan: Plan) -> Iterator[str]:
    """Environments that can have no verdict, although nothing is wrong with them here."""
    from vtax.analysis.records import VERDICT_FROM
    from vtax.wording import plural

    has = {
        spec.name: {(one.label, one.target.label) for one in plan.work if one.environment == spec.name}
        for spec in plan.environments
    }
    for spec in plan.environments:
        rounds = plan.rounds_of(spec.name)
        others = set().union(*(places for name, places in has.items() if name != spec.name))
        if spec.name == plan.study.baseline or spec.selection == spec.emulated:
            continue
        if not has[spec.name] & others:
            yield f"{spec.name} runs nothing that another environment runs too: none of it is compared"
        elif rounds < VERDICT_FROM:
            yield f"{spec.name} takes part in {rounds} {plural(rounds, 'round')}: a verdict needs {VERDICT_FROM}"


def _names(plan: Plan, names: Iterable[str]) -> str:
    from vtax.wording import listed

    control = plan.study.control_name
    return listed([f"{name} (the baseline again)" if name == control else name for name in names])


def _nodes(nodes: Sequence[NodeShape]) -> str:
    """Every node, or of many those that have the same size."""
    from vtax.model.nodes import EVERY_PAIR
    from vtax.units import format_bytes
    from vtax.wording import listed, plural, shortened

    if len(nodes) <= EVERY_PAIR:
        return listed([_node(node) for node in nodes])
    same: dict[tuple[int, int], list[NodeShape]] = {}
    for node in nodes:
        same.setdefault((node.cpus, node.memory_bytes), []).append(node)
    used = len({cpu for node in nodes for cpu in node.cpu_ids})
    groups = (
        f"{shortened([node.name for node in several])} ({cpus} {plural(cpus, 'CPU')} and {format_bytes(memory)} each)"
        for (cpus, memory), several in same.items()
    )
    return f"{len(nodes)} on {used} {plural(used, 'CPU')}: {'; '.join(groups)}"


def _node(node: NodeShape) -> str:
    from vtax.units import format_bytes
    from vtax.wording import plural

    cpus = ",".join(map(str, node.cpu_ids))
    return f"{node.name} ({plural(len(node.cpu_ids), 'CPU')} {cpus}, {format_bytes(node.memory_bytes)})"


def _earliest(plan: Plan) -> str:
    """When an interim analysis may end the campaign, or its budget does."""
    from vtax.units import format_seconds

    study, first = plan.study, plan.study.looks[0]
    parts = []
    if first < study.rounds:
        early = format_seconds(plan.estimate_until(first))
        parts.append(f"; about {early} if all verdicts are clear after round {first}")
    if study.budget_s is not None:
        parts.append(f"; the budget of {format_seconds(study.budget_s)} is enough for {_within_budget(plan)} rounds")
    return "".join(parts)


def _within_budget(plan: Plan) -> int:
    """How many rounds the budget of a study is enough for."""
    budget_s, rounds = plan.study.budget_s or 0.0, range(1, plan.study.rounds + 1)
    return sum(plan.estimate_until(number) <= budget_s for number in rounds)


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
        "",
        "nodes",
    ]
    for node in plan.shape.nodes:
        lines.append(
            f"  {node.name}: CPUs {','.join(map(str, node.cpu_ids))}, memory {format_bytes(node.memory_bytes)}, "
            f"disk {format_bytes(node.disk_bytes)}"
        )
    lines += ["", "root file system", *(f"  {line}" for line in _packages(plan.study))]
    if plan.study.image.workload:
        lines += ["", "own image", *(f"  {line}" for line in _own_image(plan.study.image.workload, own))]
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


def _own_image(spec: WorkloadSpec, own: Workload | None) -> list[str]:
    """Which image the study's commands run in, and what is known about it."""
    from vtax.units import format_bytes
    from vtax.wording import printable

    if own is None:
        digest = f"sha256 {spec.digest}" if spec.digest else "found out when a campaign starts"
        return [printable(spec.source), digest, "not unpacked yet"]
    return [
        printable(spec.source),
        f"sha256 {own.digest}",
        f"{own.architecture}, {own.libc}, {format_bytes(own.size_bytes)}",
        f"runs {printable(shlex.join(own.entry))}" if own.entry else "no entry point",
        f"as {printable(own.user or 'root')} in {printable(own.working_directory)}",
    ]


def _packages(study: Study) -> list[str]:
    """What the root file system is made of, and where that comes from."""
    image = study.image
    usual = "Debian's archive of snapshots" if image.snapshot else "this machine's own mirror"
    mirror = usual if image.mirror == "auto" else image.mirror
    day = f" of {image.snapshot}" if image.snapshot else ""
    extra = [f"extra packages: {' '.join(image.extra_packages)}"] if image.extra_packages else []
    extra += [f"packages of its entries: {' '.join(study.packages)}"] if study.packages else []
    return [f"Debian {image.suite}{day} ({' '.join(image.components)}) from {mirror}, {image.kernel} kernel", *extra]


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
        lines.append(f"budget {format_seconds(study.budget_s)}: about {_within_budget(plan)} rounds")
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
    from vtax.model.nodes import Phase

    lines = ["", "work"]
    for spec in plan.environments:
        for work in plan.work:
            if work.environment != spec.name:
                continue
            frozen = " ".join(f"{key}={value}" for key, value in work.params.items() if value not in (None, [], {}))
            lines.append(f"  {spec.name}: {work.id} (about {work.estimate_s:g} s): {frozen}")
            for step in work.steps:
                background = " &" if step.background else ""
                phase = "" if step.phase is Phase.RUN else f"{step.phase}: "
                where = f"{phase}{','.join(step.nodes)}:{work.target.directory}"
                lines.append(f"    {where}$ {one_line(step.argv)}{background}")
            for step in work.load.steps if work.load else ():
                where = f"{','.join(step.nodes)}:{work.load.target.directory}" if work.load else ""
                lines.append(f"    load: {where}$ {one_line(step.argv)} &")
    return lines
