"""The layers of an image, as skopeo copied them: examined before anything is unpacked.

umoci resolves every path inside the image; here, an image with paths that lead out of it is refused as a whole.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
import tarfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vtax.errors import UsageError
from vtax.units import format_bytes
from vtax.wording import printable

READ_BYTES = 16 * 2**20  # at once: headers of a hostile archive may claim any size
IMAGE_BYTES = 64 * 2**30  # of everything that the layers unpack to
ENTRIES = 2_000_000
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ATTRIBUTE = "SCHILY.xattr."


class Escape(Exception):
    """A path in a layer that leads out of the image, or that only the kernel may write."""


@dataclass(frozen=True)
class Layout:
    """A private OCI layout with one image: its layers' files from the lowest up, and the digests of their content."""

    directory: Path
    layers: tuple[Path, ...]
    contents: tuple[str, ...]


def read(directory: Path) -> Layout:
    """What skopeo copied. Layers that are not compressed are named so, which skopeo 1.9 forgets and umoci needs."""
    index, manifest = _manifest(directory)
    entry = index["manifests"][0]
    content = json.loads(_blob(directory, manifest["config"]["digest"]).read_bytes())
    layers = tuple(_blob(directory, layer["digest"]) for layer in manifest["layers"])
    for layer, file in zip(manifest["layers"], layers, strict=True):
        layer["mediaType"] = f"{LAYER}+gzip" if _starts(file, GZIP) else LAYER
    text = json.dumps(manifest).encode()
    entry |= {"digest": f"sha256:{hashlib.sha256(text).hexdigest()}", "size": len(text)}
    _blob(directory, entry["digest"]).write_bytes(text)
    (directory / "index.json").write_text(json.dumps(index))
    return Layout(directory, layers, tuple(content["rootfs"]["diff_ids"]))


def has_zstd(directory: Path) -> bool:
    """Whether a layer is compressed with zstd, which umoci 0.4 cannot unpack."""
    _, manifest = _manifest(directory)
    return any(_starts(_blob(directory, layer["digest"]), ZSTD) for layer in manifest["layers"])


def _manifest(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The index of a layout and the manifest of its only image."""
    index = json.loads((directory / "index.json").read_bytes())
    return index, json.loads(_blob(directory, index["manifests"][0]["digest"]).read_bytes())


def _blob(directory: Path, digest: str) -> Path:
    return directory / "blobs" / "sha256" / digest.removeprefix("sha256:")


def _starts(layer: Path, mark: bytes) -> bool:
    with layer.open("rb") as stream:
        return stream.read(len(mark)) == mark


def examine(layout: Layout, source: str) -> int:
    """How many bytes the files of all layers have. Raises UsageError for a layer that is damaged or too large, or that
    has a path out of the image."""
    size = count = 0
    for number, layer in enumerate(layout.layers, start=1):
        where = f"{source}: layer {number} of {len(layout.layers)}"
        try:
            for member in _members(layer):
                refuse_escape(member)
                size += member.size if member.isreg() else 0
                count += 1
                if size > IMAGE_BYTES or count > ENTRIES:
                    raise Escape(
                        f"more than {format_bytes(IMAGE_BYTES)} or {ENTRIES} files, the most that are unpacked"
                    )
        except Escape as error:
            raise UsageError(f"{where} has {error}", remedy="use an image that you trust, or make it again") from error
        except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
            raise UsageError(
                f"{where} is damaged: {printable(str(error))}", remedy="make or copy the image again"
            ) from error
    return size


def _members(layer: Path) -> Iterable[tarfile.TarInfo]:
    with layer.open("rb") as stream:
        content = gzip.GzipFile(fileobj=stream) if _starts(layer, GZIP) else stream
        with tarfile.open(fileobj=_Bounded(content), mode="r:") as archive:  # type: ignore[call-overload]
            for member in archive:
                yield member
                archive.members = []  # the list of a large layer is of no use here


class _Bounded:
    """A file of which only so much is read at once."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= READ_BYTES:
            raise ValueError("a header is larger than any that a layer needs")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


def refuse_escape(member: tarfile.TarInfo) -> None:
    """Raise Escape for a member whose name, or whose target as a hard link, is above the image's root, and for
    attributes with which it would configure an overlay."""
    if climbs(member.name):
        raise Escape(f"a path out of the image: {printable(member.name)!r}")
    if member.islnk() and climbs(member.linkname):
        raise Escape(f"a hard link out of the image: {printable(member.name)!r} to {printable(member.linkname)!r}")
    for name in member.pax_headers:
        if name.startswith(f"{ATTRIBUTE}trusted."):
            raise Escape(f"the attribute {printable(name.removeprefix(ATTRIBUTE))} on {printable(member.name)!r}")


def climbs(path: str, start: str = "") -> bool:
    """Whether a path, from the directory `start` of an image, leads above its root, where absolute ones start."""
    depth = 0 if path.startswith("/") else len(_parts(start))
    for part in path.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def _parts(path: str) -> Sequence[str]:
    return [part for part in posixpath.normpath(path).split("/") if part not in ("", ".")]
