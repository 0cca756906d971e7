"""A root file system on its way to another machine: compressed once, sent once, verified by its digest there.

The tree is made there from the archive, as where it was built; what only virtual machines need comes apart.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vtax.errors import ImageError
from vtax.image import build, integrity
from vtax.image.build import locked, sha256
from vtax.image.recipe import KERNEL_PLACES
from vtax.model.cluster import Image
from vtax.paths import replacing
from vtax.transport import process

PACK_S = 1800.0
INCOMING = "incoming"  # a directory of the cache
ARCHIVE, REST = "rootfs.tar.gz", "rest.tar.gz"  # the archive, and kernel, modules and `vtax-enter`


def packed(image: Image) -> dict[str, Path]:
    """Name -> file of what is sent; made when the cache lacks it. Raises CommandError."""
    place = Path(image.archive).parent
    archive, rest = place / ARCHIVE, place / REST
    with locked(place.with_name(f"{place.name}.lock")):
        if not archive.exists():
            with _making(archive) as fresh:
                process.run(("gzip", "-1nc", image.archive), timeout_s=PACK_S, stdout=fresh, check=True)
        if not rest.exists():
            tree = Path(image.directory).name
            names = [f"{tree}{name}" for name in KERNEL_PLACES if (place / f"{tree}{name}").exists()]
            with _making(rest) as fresh:
                command = ("tar", "-C", str(place), "--numeric-owner", "-czf", str(fresh), "vtax-enter", *names)
                process.run((*process.as_root_here(), *command), timeout_s=PACK_S, check=True)
    return {ARCHIVE: archive, REST: rest}


@contextmanager
def _making(path: Path) -> Iterator[Path]:
    """A temporary path for the file, with the lock by which `vtax clean` knows that it is not abandoned."""
    with locked(path.with_name(f"{path.name}.lock")), replacing(path) as fresh:
        yield fresh


def there(cache: Path, recipe: str, digest: str) -> bool:
    """Whether this machine has it, unchanged."""
    found = build.read(cache, recipe)
    if found is None or found.digest != digest:
        return False
    integrity.verify(found)
    return True


def local(cache: Path, recipe: str) -> Image:
    """The image on this machine. Raises ImageError."""
    found = build.read(cache, recipe)
    if found is None:
        raise ImageError(
            "the root file system is not on this machine", remedy="run the campaign again: it is sent then"
        )
    return found


def install(cache: Path, image: Image) -> None:
    """Make the image of what was sent next to where it goes. Raises ImageError when that is not the same bytes."""
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o700)
    sent = {name: incoming(cache, image.digest, name) for name in (ARCHIVE, REST)}
    with locked(cache / f"{image.recipe}.lock"):
        if build.read(cache, image.recipe) is not None:
            build.delete(cache / image.recipe)
        work = Path(tempfile.mkdtemp(prefix=f"{build.INSTALLING}{image.recipe}-", dir=cache))
        try:
            _unpacked(work, sent, image)
            _written(work, cache / image.recipe, image)
        except BaseException:
            build.delete(work)
            raise
    for path in sent.values():
        with suppress(OSError):
            path.unlink()


def incoming(cache: Path, digest: str, name: str) -> Path:
    """Where a part of the image with this digest is put."""
    return cache / INCOMING / f"{digest[:16]}-{name}"


def arrived(cache: Path) -> tuple[Path, ...]:
    """Parts of images that were sent here and that no image was made of."""
    return tuple(path for path in sorted((cache / INCOMING).glob("*")) if path.is_file())


def _unpacked(work: Path, sent: dict[str, Path], image: Image) -> None:
    archive, tree, root = work / "rootfs.tar", work / "rootfs", process.as_root_here()
    process.run(("gzip", "-dc", str(sent[ARCHIVE])), timeout_s=PACK_S, stdout=archive, check=True)
    if (found := sha256(archive)) != image.digest:
        sent[ARCHIVE].unlink()
        raise ImageError(
            "the root file system did not arrive as it was sent",
            detail=f"sha256: {found}; expected: {image.digest}",
            remedy="try again: it is sent anew",
        )
    tree.mkdir()
    unpack = ("tar", "-C", str(tree), "--exclude=./dev/*", "--numeric-owner", "-xpf", str(archive))
    process.run((*root, *unpack), timeout_s=PACK_S, check=True)
    for place in KERNEL_PLACES:
        process.run((*root, "rm", "-rf", "--", f"{tree}{place}"), timeout_s=PACK_S, check=True)
    rest = ("tar", "-C", str(work), "--numeric-owner", "-xpzf", str(sent[REST]))
    process.run((*root, *rest), timeout_s=PACK_S, check=True)
    if (found := sha256(work / "vtax-enter")) != image.enter_digest:
        raise ImageError("vtax-enter did not arrive as it was sent", detail=f"sha256: {found}", remedy="try again")
    (work / "vtax-enter").chmod(0o700)


def _written(work: Path, final: Path, image: Image) -> None:
    """The manifest, with the paths of this machine, and then the name."""
    kernel = Path(image.kernel).relative_to(image.directory) if image.kernel else None
    here = {
        "directory": str(final / "rootfs"),
        "archive": str(final / "rootfs.tar"),
        "kernel": str(final / "rootfs" / kernel) if kernel else "",
    }
    integrity.note(work)
    (work / "image.json").write_text(image.model_copy(update=here).model_dump_json(indent=1))
    shutil.rmtree(final, ignore_errors=True)
    work.rename(final)
