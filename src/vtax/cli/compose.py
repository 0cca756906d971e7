"""vtax compose: a container environment as a Compose file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compose(
    study: Annotated[Path, typer.Argument(help="The study file.", show_default=False)],
    environment: Annotated[str, typer.Argument(help="One of its container environments.", show_default=False)],
) -> None:
    """Print the Compose file that is equivalent to an environment, to continue by hand.

    \b
    Example:  vtax compose quick container > compose.yaml
    """
    from vtax.cli.console import paths
    from vtax.pipeline import compose_file
    from vtax.planning.study import load

    print(compose_file(load(study), environment, paths()), end="")
