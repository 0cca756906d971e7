"""vtax selftest: whether this installation can be trusted."""

from __future__ import annotations

from typing import Annotated

import typer

from vtax.cli.inject import inject

app = typer.Typer(
    help="Check whether this installation can be trusted: known truths go through the code that judges real campaigns.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("inject")(inject)


@app.command("stats")
def stats(
    replicates: Annotated[
        int, typer.Option(min=200, help="Simulated campaigns of each kind; fewer are faster and less precise.")
    ] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Determines every simulated campaign.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print every check as JSON.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Print every check, not only the worst of each kind.")] = False,
) -> None:
    """Simulate campaigns with a known truth, judge them, and compare the error rates with the goals G0 to G12.

    Takes some minutes with the default of 20,000 campaigns; `--replicates 500` takes well under two. Exit code 5 when a
    goal is missed.

    \b
    Example:  vtax selftest stats --replicates 1000
    """
    from dataclasses import asdict

    from vtax.cli.console import print_json, say, table, warn
    from vtax.errors import GateFailed
    from vtax.selftest.goals import run
    from vtax.selftest.table import HEADER, rows

    checks = run(replicates, seed, lambda goal: warn(f"{goal} ..."))
    if json:
        found = [{**asdict(check), "met": check.met} for check in checks]
        print_json({"replicates": replicates, "seed": seed, "checks": found})
    else:
        say(table(rows(checks, every=every), HEADER))
    missed = [check for check in checks if not check.met]
    if missed:
        raise GateFailed(
            f"{len(missed)} of {len(checks)} checks missed their goal",
            detail="\n".join(f"{check.goal} {check.what}: {check.measured:.3g} {check.unit}" for check in missed),
            remedy="do not trust results of this installation until this is explained; try another --seed, "
            "because one check in a thousand fails by chance",
        )
