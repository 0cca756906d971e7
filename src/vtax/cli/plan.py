"""vtax plan: what a study would do here. Starts nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vtax.cli.own_code import own_commands
from vtax.cli.run import STUDY_HELP, Anytime, Budget, Rounds, budget_of
from vtax.cli.sample import HELP

if TYPE_CHECKING:
    from vtax.model.study import Study
    from vtax.planning.overrides import Overrides
    from vtax.planning.preparation import Prepared

Json = Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")]


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
        bool,
        typer.Option(
            help="Exit with code 2 or 3 when `vtax run` would refuse the study here; asks its Debian for new packages."
        ),
    ] = False,
    sample: Annotated[list[str] | None, typer.Option("--sample", metavar="[LABEL[/OUTPUT]=]FILE", help=HELP)] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="CAMPAIGN", help="The study of this campaign, or of this file of `vtax seal`."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", "--into", metavar="DIR", help="With --from: write the study and its files there."
        ),
    ] = None,
) -> None:
    """Show what a study compares here, how long it takes, what decides and what is left out. Starts nothing.

    --commands shows the frozen work, the order of all runs and the exact commands. A study may ask for more than this
    machine has: then the plan says so, and `vtax run` and --check refuse it.

    --from plans what somebody else measured for this machine, and lists what cannot be the same here. A study is code:
    look at its commands before you run it.

    \b
    Example:  vtax plan quick
    Example:  vtax plan --from theirs.vtax.zip -o theirs
    Example:  vtax plan standard --rounds 10 --commands
    Example:  vtax plan mine.toml --sample pgbench=output.txt
    """
    from vtax.cli.console import paths
    from vtax.cli.progress import progress
    from vtax.planning.overrides import Overrides
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
    with progress() as listener:
        prepared = prepare(overrides.of(load(wanted)), paths(), only_available=available, listener=listener)
    _show(prepared, str(wanted), json=json, commands=commands)
    _notes(prepared, all_of_them=json or commands, check=check)


def _given(study: Path | None, into: Path | None) -> Path:
    from vtax.errors import UsageError

    if study is None:
        raise UsageError("there is no study to plan", remedy="give a study's file, a preset, or --from CAMPAIGN")
    if into is not None:
        raise UsageError("--output writes the study of --from", remedy="add --from CAMPAIGN, or leave it out")
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
    from vtax.cli.plan_listing import lines_of
    from vtax.cli.plan_summary import summary
    from vtax.planning.preparation import own_image, to_make

    made = prepared.plan
    if json:
        print_json(made.model_dump(mode="json"))
    elif commands:
        say(*lines_of(prepared, own_image(made.study, paths())))
    else:
        own, lacking = own_image(made.study, paths()), to_make(made.study, paths())
        say(*summary(prepared, lacking, own), *own_commands(made), "")
        what = f"`vtax run {study}` does it" if study else "-o DIR writes the study, for `vtax run DIR/study.toml`"
        say(f"{what}; --commands shows every command in order")


def _notes(prepared: Prepared, *, all_of_them: bool, check: bool) -> None:
    """What does not work here. With `check`, exits with code 2 or 3 when `vtax run` would refuse the study."""
    from vtax.cli.console import paths, warn
    from vtax.events import ignore
    from vtax.model.finding import Severity
    from vtax.planning.preparation import refuse_impossible, refuse_unknown_packages

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
        refuse_unknown_packages(made.study, paths(), ignore)


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
