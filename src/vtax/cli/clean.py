"""vtax clean: remove what crashed runs left behind."""

from __future__ import annotations

from typing import Annotated

import typer


def clean(
    check: Annotated[bool, typer.Option("--check", help="Only look; exit code 5 when something is there.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what running campaigns and clusters that are up use.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what is found as JSON.")] = False,
) -> None:
    """Remove every container, network, volume, control group, process and file of any vtax run, found by its label.

    Campaign directories and cached root file systems stay, and so do, unless --all is given, running campaigns and
    clusters that are up.

    Example:  vtax clean --check
    """
    from dataclasses import asdict

    from vtax import pipeline
    from vtax.cli.console import paths, print_json, say, table

    places = paths()
    found = pipeline.leftovers(places, everything=everything)
    if json:
        print_json([asdict(item) for item in found])
    elif found:
        rows = [(item.provider, item.kind, item.name, item.campaign) for item in found]
        say(table(rows, ("PROVIDER", "KIND", "NAME", "CAMPAIGN")))
    else:
        say("nothing is left behind")
    if check:
        raise typer.Exit(5 if found else 0)
    pipeline.clean(found, places)
    if found and not json:
        say(f"{len(found)} removed")
