"""vtax image: the root file systems that environments start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Build, list and remove root file systems.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def build(
    study: Annotated[Path | None, typer.Argument(help="The study whose [image] to build [the default image].")] = None,
) -> None:
    """Build the root file system, unless it is in the cache.

    \b
    Example:  vtax image build
    """
    from vtax.cli.console import paths, say
    from vtax.cli.progress import progress
    from vtax.model.study import ImageSpec
    from vtax.planning.preparation import base_image, image_of
    from vtax.planning.study import load

    loaded = load(study) if study else None
    with progress() as listener:
        image = image_of(loaded, paths(), listener) if loaded else base_image(ImageSpec(), paths(), listener)
    say(f"{image.recipe}  sha256 {image.digest}  {image.directory}")


@app.command("list")
def list_(json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False) -> None:
    """List the root file systems in the cache.

    \b
    Example:  vtax image list
    """
    from vtax.cli.console import paths, print_json, say, table
    from vtax.image.build import images
    from vtax.units import format_bytes

    found = images(paths().images)
    if json:
        print_json([image.model_dump(mode="json") for image in found])
        return
    rows = [
        (image.recipe, image.digest[:12], format_bytes(Path(image.archive).stat().st_size), image.directory)
        for image in found
    ]
    say(table(rows, ("KEY", "SHA256", "SIZE", "DIRECTORY")))


@app.command()
def remove(keys: Annotated[list[str], typer.Argument(help="Keys, as `vtax image list` shows them.")]) -> None:
    """Remove root file systems from the cache, and from the providers' own stores.

    \b
    Example:  vtax image remove 1f0c8ffb51a4a2ae
    """
    from vtax.cli.console import paths, say
    from vtax.pipeline import remove_image

    for key in keys:
        remove_image(key, paths())
        say(f"{key} removed")
