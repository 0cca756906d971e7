"""vtax selftest inject: does the instrument find what is there, and nothing else?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.inject import Injected


def inject(
    provider: Annotated[str, typer.Option(help="docker or podman [the first that works].")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The campaign's directory [campaigns/inject-TIME].")
    ] = None,
    seconds: Annotated[int, typer.Option(min=1, help="Length of one measurement.")] = 2,
    iterations: Annotated[int, typer.Option(min=1, help="Measurements in a cell.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Decides the order of everything.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Slow real containers by a known amount and see that it is found; repeat the baseline and see that nothing is.

    One environment has 5 % less CPU time by a quota, one repeats the baseline; the third is the baseline. A quota is
    felt only where the CPU is otherwise free, so let the machine rest meanwhile. Exit code 5 when the handicap is not
    found or the repeated baseline differs.

    Example:  vtax selftest inject
    """
    from vtax import inject as selftest
    from vtax.cli.console import paths, print_json, say, warn
    from vtax.cli.progress import progress
    from vtax.errors import GateFailed
    from vtax.pipeline import prepare
    from vtax.units import format_seconds

    engine = selftest.engine_of(provider, paths())
    text, study = selftest.study_of(engine, seconds, iterations, seed)
    round_s = prepare(study, paths()).plan.estimate_s / study.rounds
    warn(
        f"three environments on {engine}: about {format_seconds(round_s * study.looks[0])} if it is clear after "
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
        raise GateFailed(
            "the self-test failed: "
            + ("identical clusters differ" if found.detected else "the handicap was not found"),
            remedy="was the machine busy? A quota of 95 % is felt only where the CPU is otherwise free; "
            f"the campaign is kept in {directory}",
        )


def lines_of(found: Injected) -> list[str]:
    """The result for a person."""
    return [
        f"{100 * (1 - found.expected_ratio):.0f} % less CPU time: {found.slowed.sentence} ({found.slowed.n} rounds): "
        f"{'found' if found.detected else 'NOT FOUND'}",
        f"the same again: {found.control.sentence} ({found.control.n} rounds): "
        f"{'no difference, as it must be' if found.quiet else 'DIFFERS'}",
        f"campaign {found.directory}",
    ]
