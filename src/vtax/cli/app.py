"""The commands by name. Each has its own file and imports what it needs when it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

from vtax import __version__
from vtax.cli import (
    analyse,
    audit,
    clean,
    cluster,
    compare,
    compose,
    doctor,
    export,
    image,
    import_,
    init,
    measure,
    peak,
    plan,
    reference,
    report,
    run,
    schema,
    seal,
    selftest,
    serve,
    tune,
    watch,
    workloads,
)

app = typer.Typer(
    name="vtax",
    help="What does virtualization cost, on this hardware, for this work?\n\n"
    "Matched clusters on the bare host, in containers and VMs; classic benchmarks on each in randomised rounds; "
    "a verdict with an interval, or why there is none.\n\n"
    "\b\nExample:  vtax plan quick && vtax run quick",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vtax {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before any command: only `--version`."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C ends a command with vtax's exit code; by then everything it started has been removed."""

    @functools.wraps(command)
    def run_it(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            from vtax.errors import Interrupted

            raise Interrupted("interrupted; everything that was started has been removed") from None

    return run_it


for command in (
    init.init,
    schema.schema,
    workloads.workloads,
    plan.plan,
    run.run,
    measure.measure,
    analyse.analyse,
    audit.audit,
    compare.compare,
    report.report,
    export.export,
    seal.seal,
    import_.import_,
    watch.watch,
    serve.serve,
    compose.compose,
    cluster.up,
    cluster.status,
    cluster.ssh,
    cluster.exec_,
    cluster.down,
    doctor.doctor,
    peak.peak,
    clean.clean,
):
    app.command(command.__name__.rstrip("_"))(_interruptible(command))
for name, group in (("image", image.app), ("reference", reference.app), ("selftest", selftest.app), ("tune", tune.app)):
    for one in group.registered_commands:
        one.callback = _interruptible(one.callback) if one.callback else None
    app.add_typer(group, name=name)
