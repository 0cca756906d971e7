"""vtax analyse: recompute from what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def analyse(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print the whole analysis as JSON.")] = False,
) -> None:
    """Recompute levels, comparisons and findings from stored data, and write analysis.json. Runs nothing again.

    Example:  vtax analyse campaigns/quick-20260101-120000
    """
    from vtax import pipeline
    from vtax.cli.console import print_json, say

    made = pipeline.analyse(directory)
    if json:
        print_json(made.model_dump(mode="json"))
        return
    for finding in made.findings:
        say(f"{finding.severity} {finding.id}: {finding.message}")
    say("")
    for comparison in made.comparisons:
        if comparison.primary:
            where = " ".join(f"{key}={value}" for key, value in sorted(comparison.labels.items()))
            name = f"{comparison.label} {comparison.metric} ({where})"
            say(f"{name}: {comparison.environment} against {made.baseline}: {comparison.sentence}")
