"""vtax serve: a campaign's report in a browser, while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1 [any free one].")] = 0,
) -> None:
    """Serve the report on loopback, behind a token, and render it again while the campaign runs. Ctrl-C ends it.

    \b
    Example:  vtax serve campaigns/standard-20260101-120000
    """
    from vtax import pipeline
    from vtax.cli.console import paths, say
    from vtax.publishing.server import Server

    with Server(directory, lambda campaign: pipeline.report(campaign, paths().cache), port) as server:
        say(server.address)
        server.serve_forever()
