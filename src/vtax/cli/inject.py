"""vtax selftest inject: does the instrument find a known difference, and no other?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.selftest.inject import Injected

BINDS = 0.5  # least share of the periods in which an effective quota stops a busy node


def inject(
    provider: Annotated[str, typer.Option(help="A provider that limits CPU time [the first that works].")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The campaign's directory [campaigns/inject-TIME].")
    ] = None,
    percent: Annotated[
        float, typer.Option(min=1, max=95, help="How much less CPU time the slowed environment has.")
    ] = 10,
    seconds: Annotated[int, typer.Option(min=1, help="Length of one measurement.")] = 1,
    iterations: Annotated[int, typer.Option(min=1, help="Measurements in a cell: one or an even number.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Determines the order of everything.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Slow real containers by a known amount: this must be found, and a repeated baseline must not differ.

    A quota gives one environment less CPU time; one repeats the baseline; the third is the baseline. A quota only has
    an effect while no other program uses the CPU, so leave the machine alone meanwhile. Exit code 5 when the handicap
    is not found or the repeated baseline differs.

    \b
    Example:  vtax selftest inject
    """
    from vtax.cli.console import paths, print_json, say, warn
    from vtax.cli.progress import progress
    from vtax.errors import GateFailed
    from vtax.planning.preparation import prepare
    from vtax.selftest import inject as selftest
    from vtax.units import format_seconds

    engine = selftest.engine_of(provider, paths())
    text, study = selftest.study_of(engine, seconds, iterations, seed, percent / 100)
    round_s = prepare(study, paths()).plan.estimate_s / study.rounds
    warn(
        f"three environments on {engine}: about {format_seconds(round_s * study.looks[0])} if clear after "
        f"{study.looks[0]} rounds, {format_seconds(round_s * study.rounds)} at most"
    )
    directory = output or Path("campaigns") / f"inject-{time.strftime('%Y%m%d-%H%M%S')}"
    with progress() as listener:
        found = selftest.inject(text, study, directory, paths(), listener)
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        say(*lines_of(found))
    if not found.passed:
        what = "identical clusters differ" if found.detected else "the handicap was not found"
        raise GateFailed(f"the self-test failed: {what}", detail=_why(found), remedy=f"examine {directory}")


def _why(found: Injected) -> str:
    """Why a handicap was not found, where that was observed."""
    if found.detected or found.throttled is None or found.throttled > BINDS:
        return ""
    return (
        f"the quota stopped the slowed environment in {100 * found.throttled:.0f} % of its periods only: "
        "other programs had the CPU, so there was hardly a handicap; leave the machine alone and try again"
    )


def lines_of(found: Injected) -> list[str]:
    """The result as text."""
    return [
        f"{100 * (1 - found.expected_ratio):.0f} % less CPU time: {found.slowed.sentence} ({found.slowed.n} rounds): "
        f"{'found' if found.detected else 'NOT FOUND'}",
        f"the same again: {found.control.sentence} ({found.control.n} rounds): "
        f"{'no difference, as expected' if found.quiet else 'DIFFERS'}",
        f"campaign {found.directory}",
    ]
