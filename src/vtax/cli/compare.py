"""vtax compare: two campaigns against each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vtax.cli.gating import FailOn, Junit

if TYPE_CHECKING:
    from vtax.analysis.campaigns.records import CampaignComparison, SetupDifference


def compare(
    a: Annotated[Path, typer.Argument(metavar="DIR_A", help="The campaign before.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="DIR_B", help="The campaign after.", show_default=False)],
    environment: Annotated[str, typer.Option(help="Only this environment [all that both have].")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    fail_on: FailOn = None,
    junit: Junit = None,
) -> None:
    """Compare two campaigns: another kernel, another machine. First lists what differs between them. Runs nothing.

    Their rounds are not paired, so a difference is stated with its interval and never attributed. Entries with
    different work are not compared. Gates judge B against A. Exit code 5 when one failed.

    \b
    Example:  vtax compare campaigns/before campaigns/after --environment container
    Example:  vtax compare campaigns/main campaigns/branch --fail-on "any primary slower than 5%"
    """
    from vtax import pipeline
    from vtax.analysis.gates import blockers_of_changes, subjects_of_changes
    from vtax.cli.console import paths, print_json, say
    from vtax.cli.gating import check_gates, report_gates

    check_gates(fail_on or (), junit, pipeline.study_of(a), pipeline.study_of(b), baseline=True)
    made = pipeline.compare(a, b, environment, paths().cache)
    if json:
        print_json(made.model_dump(mode="json"))
    else:
        say(*lines_of(made))
    report_gates(
        f"{made.b.campaign} against {made.a.campaign}",
        fail_on or (),
        subjects_of_changes(made),
        blockers_of_changes(made),
        junit,
    )


def lines_of(made: CampaignComparison) -> Iterator[str]:
    """The comparison as text: what differs, what is unknown, the primary metrics."""
    for name, side in (("A", made.a), ("B", made.b)):
        rounds = f"{side.rounds_complete} round" + ("s" if side.rounds_complete != 1 else "")
        yield f"{name}  {side.directory}: {side.campaign}, {side.created}, {rounds} complete"
    yield ""
    yield f"what differs between them ({len(made.unlike)})" if made.unlike else "nothing that was recorded differs"
    yield from map(_difference_text, made.unlike)
    yield ""
    yield from made.caution
    if made.pairing_gain is not None:
        yield f"Inside these campaigns pairing makes intervals {made.pairing_gain:.1f} times narrower (the median)."
    yield ""
    for change in made.changes:
        if change.primary:
            where = " ".join(f"{key}={value}" for key, value in sorted(change.labels.items()))
            counts = f"{change.n_a} and {change.n_b} rounds"
            yield f"{change.environment}: {change.label} {change.metric} ({where}; {counts}): {change.sentence}"
            if change.tax_sentence:
                yield f"    {change.tax_sentence}"


def _difference_text(item: SetupDifference) -> str:
    where = f" in {item.environment}" if item.environment else ""
    return f"  {item.severity}: {item.what}{where}: A {item.a}, B {item.b}"
