"""vtax run: a whole campaign, from the study to the report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vtax.cli.gating import FailOn, Junit

if TYPE_CHECKING:
    from collections.abc import Callable

    from vtax.errors import TrialsFailed
    from vtax.events import Listener
    from vtax.model.study import Study
    from vtax.planning.overrides import Overrides

Rounds = Annotated[int | None, typer.Option(min=1, help="Run exactly this many rounds, without interim analyses.")]
Budget = Annotated[
    str, typer.Option(help='Start no round that would end later than this, such as "2h" [the study\'s].')
]
Anytime = Annotated[
    bool,
    typer.Option("--anytime", help="Analyse after every round from the sixth on, with wider intervals that allow it."),
]

STUDY_HELP = "The study: a file, or a preset (quick, glance, standard, strict, ladder, kernel ...)."
StudyFile = Annotated[Path | None, typer.Argument(help=STUDY_HELP, show_default=False)]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The campaign's directory [campaigns/NAME-TIME].")]
Available = Annotated[
    bool, typer.Option("--available", help="Leave out environments that are not available here, and report that.")
]
Resume = Annotated[Path | None, typer.Option(help="Continue an interrupted campaign from the first missing trial.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Resume a campaign of another user or version of vtax, or one that was made elsewhere: its plan is code.",
    ),
]


def run(
    study: StudyFile = None,
    output: Output = None,
    rounds: Rounds = None,
    budget: Budget = "",
    anytime: Anytime = False,
    available: Available = False,
    resume: Resume = None,
    trust: Trust = False,
    fail_on: FailOn = None,
    junit: Junit = None,
) -> None:
    """Run a study: every environment once in every round, each time on a fresh cluster; then write the report.

    It ends at the first planned interim analysis at which every primary metric has a verdict, or after the last round.
    Ctrl-C cleans up and keeps what is done (exit code 130). Exit code 4 when trials failed: they are in the report.
    Exit code 5 when a gate failed.

    \b
    Example:  vtax run quick
    Example:  vtax run standard.toml --budget 2h
    Example:  vtax run standard.toml --anytime
    Example:  vtax run ci.toml --fail-on "any primary slower than 5%" --junit vtax.xml
    """
    from vtax import pipeline
    from vtax.analysis.gates import subjects_of
    from vtax.cli.answer import FEW, answer_text
    from vtax.cli.console import paths, say, warn
    from vtax.cli.gating import check_gates, report_gates
    from vtax.planning.overrides import Overrides
    from vtax.planning.study import load

    _refuse_together(study, resume, rounds, anytime, trust)
    overrides = Overrides(rounds, budget_of(budget), anytime)
    loaded = load(study) if study is not None else pipeline.study_of(resume) if resume is not None else None
    check_gates(fail_on or (), junit, loaded)
    name = f"{loaded.name}-{time.strftime('%Y%m%d-%H%M%S')}" if loaded is not None else ""
    directory = resume or output or Path("campaigns") / name
    failed = _run(study, loaded, directory, available, overrides, trust)
    index = pipeline.report(directory, paths().cache)
    say(*answer_text(pipeline.answer(directory), limits=FEW), "")
    if failed:
        warn(f"warning: {failed}")
    say(f"report: {index.resolve()}")
    if fail_on or junit:
        analysis = pipeline.analysed(directory)
        report_gates(analysis.campaign, fail_on or (), subjects_of(analysis), analysis.findings, junit)
    if failed:
        raise typer.Exit(failed.exit_code)


def _refuse_together(study: Path | None, resume: Path | None, rounds: int | None, anytime: bool, trust: bool) -> None:
    """Raise UsageError for options that say nothing together."""
    from vtax.errors import UsageError

    if (study is None) == (resume is None):
        raise UsageError("give either a study or --resume DIR", remedy="for example `vtax run quick`")
    if resume is not None and rounds is not None:
        raise UsageError(
            "the plan of a campaign is frozen: --rounds is only for a new campaign", remedy="leave --rounds out"
        )
    if resume is not None and anytime:
        raise UsageError(
            "the plan of a campaign is frozen: --anytime is only for a new campaign", remedy="leave --anytime out"
        )
    if resume is None and trust:
        raise UsageError("--trust is about a campaign that is resumed", remedy="leave --trust out")


def _run(
    study: Path | None, loaded: Study | None, directory: Path, available: bool, overrides: Overrides, trust: bool
) -> TrialsFailed | None:
    """Start the campaign of a study in `directory`, or without a study continue it. Returns what failed, if any."""
    from vtax import pipeline
    from vtax.cli.console import paths
    from vtax.planning.presets import study_text

    def go(listener: Listener) -> None:
        if study is None or loaded is None:
            pipeline.resume(directory, paths(), listener, overrides.budget_s, trust=trust)
        else:
            pipeline.start(study_text(study), loaded, directory, paths(), listener, available, overrides)

    return watched(directory, go)


def watched(directory: Path, go: Callable[[Listener], None]) -> TrialsFailed | None:
    """Run the campaign in `directory` with a progress line, and say how an interrupted one is continued. Returns what
    failed, if any."""
    from vtax.cli.console import warn
    from vtax.cli.progress import progress
    from vtax.errors import TrialsFailed

    with progress() as listener:
        try:
            go(listener)
        except TrialsFailed as error:
            return error
        except KeyboardInterrupt:
            if (directory / "plan.json").exists():
                warn(f"continue with: vtax run --resume {directory}")
            raise
    return None


def budget_of(text: str) -> float | None:
    """Seconds; None without a budget. Raises UsageError for what is not a time."""
    from vtax.errors import UsageError
    from vtax.units import parse_seconds

    try:
        seconds = parse_seconds(text) if text else None
    except ValueError as error:
        raise UsageError(f"--budget: {error}", remedy='for example --budget "90 min"') from error
    if seconds is not None and seconds <= 0:
        raise UsageError("--budget must be more than 0", remedy='for example --budget "90 min"')
    return seconds
