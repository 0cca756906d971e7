"""vtax image: the root file systems that environments start from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Build, describe, list and remove root file systems.", no_args_is_help=True, rich_markup_mode=None
)


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
    from vtax.planning.preparation import image_of
    from vtax.planning.study import load

    spec = load(study).image if study else ImageSpec()
    with progress() as listener:
        image = image_of(spec, paths(), listener)
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


@app.command()
def sbom(
    study: Annotated[Path | None, typer.Argument(help="The study whose [image] it is [the default image].")] = None,
    format: Annotated[str, typer.Option("--format", "-f", help="json or xml.")] = "json",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write [standard output].")] = None,
) -> None:
    """Write the software bill of materials of a root file system in the cache, in CycloneDX.

    It names every Debian package, vtax's own programs and the source that some of them are compiled from.

    \b
    Example:  vtax image sbom quick -o rootfs.cdx.json
    """
    from vtax.cli.console import paths
    from vtax.errors import StoreError, UsageError
    from vtax.image import build, recipe
    from vtax.image.sbom import FORMATS
    from vtax.image.sbom import sbom as text_of
    from vtax.model.study import ImageSpec
    from vtax.planning.study import load

    if format not in FORMATS:
        raise UsageError(f"there is no format {format!r}", remedy=f"choose one of {', '.join(FORMATS)}")
    spec = load(study).image if study else ImageSpec()
    made = recipe.recipe(spec, build.find_machine_mirror())
    image = build.cached(paths().images, made)
    if image is None:
        words = f" {study}" if study else ""
        raise UsageError(
            f"the root file system {made.key} is not built, so its packages are unknown",
            remedy=f"run `vtax image build{words}` first",
        )
    text = text_of(image, made, format)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{output} cannot be written: {error.strerror}", remedy="choose another place") from error
