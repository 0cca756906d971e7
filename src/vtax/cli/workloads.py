"""vtax workloads: the entries that a study may take by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vtax.planning.workloads import Workload


def workloads(
    name: Annotated[str, typer.Argument(help="Print this one as a study has it.", show_default=False)] = "",
    json: Annotated[bool, typer.Option("--json", help="Print all as JSON.")] = False,
) -> None:
    """List the workloads that a study takes by name: `workload = "NAME"` in a [[benchmarks]] table.

    Their packages are installed on top of the cached root file system when a study needs them.

    \b
    Example:  vtax workloads
    Example:  vtax workloads fio-randread-4k
    Example:  vtax init --workload fio-randread-4k && vtax run fio-randread-4k.toml
    """
    from vtax.cli.console import print_json, say, table
    from vtax.planning.workloads import workload
    from vtax.planning.workloads import workloads as all_of_them

    if name:
        one = workload(name)
        if json:
            print_json(content_of(one))
        else:
            print(one.text, end="")
        return
    known = all_of_them().values()
    if json:
        print_json([content_of(one) for one in known])
        return
    rows = [(one.name, one.about, " ".join(one.packages) or "none", f"{one.seconds:g}") for one in known]
    say(table(rows, ("name", "what it measures", "packages", "seconds")))


def content_of(one: Workload) -> dict[str, Any]:
    """A workload as JSON."""
    return {
        "name": one.name,
        "about": one.about,
        "packages": list(one.packages),
        "seconds": one.seconds,
        "entries": [dict(entry) for entry in one.entries],
    }
