"""vtax clean: remove what crashed runs left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vtax.providers.base import Leftover


NAMED = 3  # leftovers that are listed by name


def clean(
    check: Annotated[bool, typer.Option("--check", help="Only list; exit code 5 when there is something.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also remove what running campaigns and clusters that are up use.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    images: Annotated[
        bool, typer.Option("--images", help="Also remove root file systems and own images, also from registries.")
    ] = False,
    machines: Annotated[
        Path | None, typer.Option(help="Do that on the machines of this study instead of here.")
    ] = None,
) -> None:
    """Remove what vtax runs left behind: containers, networks, volumes, control groups, network namespaces,
    processes, files, mounts and exports by NFS, unfinished root file systems.

    Everything is found by its label. Campaign directories stay, and so do, unless --all is given, running campaigns and
    clusters that are up. Root file systems stay for the next run, unless --images is given. What was made with another
    state directory (XDG_STATE_HOME) is listed but stays: another user may be using it. With --machines, it is done on
    each machine of a study; exit code 3 when one of them cannot be reached.

    \b
    Example:  vtax clean --check
    Example:  vtax clean --machines study.toml
    Example:  vtax clean --machines study.toml --images
    """
    if machines is not None:
        _machines(machines, check=check, everything=everything, images=images, json=json)
        return
    from dataclasses import asdict

    from vtax.cli.console import paths, print_json, say, table, warn
    from vtax.running import kept, leftovers

    places = paths()
    labelled = leftovers.labelled(places)
    found = leftovers.leftovers(places, everything=everything, among=labelled)
    stored = kept.here(places) if images else []
    listed = [*found, *stored]
    if json:
        print_json([asdict(item) for item in listed])
    elif listed:
        rows = [(item.provider, item.kind, item.name, item.campaign, item.origin or "unknown") for item in found]
        rows += [(item.provider, item.kind, item.name, "", "") for item in stored]
        say(table(rows, ("PROVIDER", "KIND", "NAME", "LABEL", "CAMPAIGN")))
    else:
        say("nothing is left behind")
    for line in _others(labelled):
        warn(line)
    if check:
        raise typer.Exit(5 if listed else 0)
    used = leftovers.clean(found, places, everything=everything)
    if stored:
        kept.remove(stored, places, everything=everything)
    if listed and not json:
        say(f"{len(listed) - len(used)} removed")
    if used:
        warn(f"left alone: in use since they were listed: {', '.join(item.name for item in used)}")


def _machines(study: Path, *, check: bool, everything: bool, images: bool, json: bool) -> None:
    """Clean up on each machine of a study."""
    from vtax.cli.console import paths, print_json, say, table, warn
    from vtax.planning.study import load, with_machines
    from vtax.running.machine_states import clean_machines

    states = clean_machines(with_machines(load(study)), paths(), check=check, everything=everything, images=images)
    if json:
        print_json([one.model_dump(mode="json") for one in states])
    else:
        rows = [(one.name, *item) for one in states for item in one.found]
        say(
            table(rows, ("MACHINE", "PROVIDER", "KIND", "NAME", "LABEL", "CAMPAIGN"))
            if rows
            else "nothing is left behind"
        )
        for one in states:
            if one.removed:
                say(f"{one.name}: {one.removed} removed")
    for one in states:
        if one.reason:
            warn(f"error: {one.reason}")
        if one.kept:
            warn(f"{one.name}: left alone: in use since they were listed: {', '.join(one.kept)}")
    if any(one.reason for one in states):
        raise typer.Exit(3)
    if check:
        raise typer.Exit(5 if any(one.found for one in states) else 0)


def _others(labelled: Iterable[Leftover]) -> list[str]:
    """What other vtax instances own: one line for each run-time directory, with how to remove it."""
    from pathlib import Path

    from vtax.providers.base import UNKNOWN

    found: dict[str, list[str]] = {}
    for item in labelled:
        if item.elsewhere:
            found.setdefault(item.elsewhere, []).append(f"{item.provider} {item.kind} {item.name}")
    lines = []
    for place, names in sorted(found.items()):
        listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        top = Path(place)
        if place == UNKNOWN:
            how = "its owner is unknown; remove it by hand when no vtax instance uses it"
        elif (top.parent.name, top.name) == ("vtax", "run"):
            how = f"to remove it: XDG_STATE_HOME={top.parents[1]} vtax clean"
        else:
            how = f"it is removed by the program that made it in {place}"
        lines.append(f"left alone: belongs to another state directory: {listed}; {how}")
    return lines
