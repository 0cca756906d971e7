"""vtax image: the root file systems that environments start from, and the users' own images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.model.cluster import Image, Workload

app = typer.Typer(
    help="Build, describe, list and remove root file systems and own images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def build(
    study: Annotated[Path | None, typer.Argument(help="The study whose [image] to build [the default image].")] = None,
) -> None:
    """Build the root file system, with the packages of a study's entries, and unpack its own image; what is in the
    cache is left as it is.

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
    if own := image.workload:
        say(f"{_key(own)}  sha256 {own.digest}  {own.directory}")


@app.command("list")
def list_(json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False) -> None:
    """List the root file systems and own images in the cache.

    \b
    Example:  vtax image list
    """
    from vtax.cli.console import paths, print_json, say, table
    from vtax.image.build import images
    from vtax.image.workload.cache import workloads
    from vtax.units import format_bytes
    from vtax.wording import printable

    found, own = images(paths().images), workloads(paths().workloads)
    if json:
        kinds = [{"kind": "packages" if image.packages else "base", **image.model_dump(mode="json")} for image in found]
        print_json([*kinds, *({"kind": "own image", **one.model_dump(mode="json")} for one in own)])
        return
    rows = [
        (image.recipe, image.digest[:12], format_bytes(Path(image.archive).stat().st_size), _what(image))
        for image in found
    ]
    rows += [
        (_key(one), one.digest[:12], format_bytes(one.size_bytes), f"own image: {printable(one.source)}") for one in own
    ]
    say(table(rows, ("KEY", "SHA256", "SIZE", "WHAT")))


def _what(image: Image) -> str:
    if image.packages:
        return f"{image.base} with {', '.join(image.packages)}"
    return f"root file system in {image.directory}"


def _key(own: Workload) -> str:
    from vtax.running.kept import KEY_DIGITS

    return own.digest[:KEY_DIGITS]


@app.command()
def remove(keys: Annotated[list[str], typer.Argument(help="Keys, as `vtax image list` shows them.")]) -> None:
    """Remove root file systems and own images from the cache, and from the providers' own stores.

    \b
    Example:  vtax image remove 1f0c8ffb51a4a2ae
    """
    from vtax.cli.console import paths, say
    from vtax.running.kept import remove_image

    for key in keys:
        remove_image(key, paths())
        say(f"{key} removed")


@app.command()
def export(
    output: Annotated[Path, typer.Argument(help="File to write.")],
    study: Annotated[Path | None, typer.Option(help="The study whose image it is [the default image].")] = None,
) -> None:
    """Write a root file system as an archive of images, as `docker save` does: for the containerd of machines that pull
    it from no registry. It is built when the cache lacks it.

    \b
    Example:  vtax image export rootfs.tar --study study.toml
    Example:  ctr --namespace k8s.io images import rootfs.tar
    """
    from vtax.cli.console import paths, say
    from vtax.cli.progress import progress
    from vtax.cluster.archive import tags, write_archive
    from vtax.errors import StoreError
    from vtax.model.study import ImageSpec
    from vtax.planning.preparation import base_image, image_of
    from vtax.planning.study import load

    loaded = load(study) if study else None
    with progress() as listener:
        image = image_of(loaded, paths(), listener) if loaded else base_image(ImageSpec(), paths(), listener)
    try:
        write_archive(image, output)
    except OSError as error:
        raise StoreError(f"{output} cannot be written: {error.strerror}", remedy="choose another place") from error
    say(f"{output}: {' and '.join(tags(image))}")


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
