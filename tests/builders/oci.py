"""Small images as Docker and others write them: made by hand, also wrong ones."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vtax.image.workload.configuration import MACHINES

HERE = MACHINES[platform.machine()]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def file(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a layer: a regular file, unless `type` says something else."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o644
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return file(name, type=tarfile.SYMTYPE, linkname=target)


def hard_link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return file(name, type=tarfile.LNKTYPE, linkname=target)


def directory(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    return file(name, type=tarfile.DIRTYPE, mode=mode)


def layer(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A layer: a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def packed(content: bytes) -> bytes:
    """The same bytes for the same content."""
    return gzip.compress(content, 1, mtime=0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def configuration(layers: Sequence[bytes], architecture: str = HERE, **run: Any) -> bytes:
    """The configuration of an image of these layers; `run` is its `config`: Env, Entrypoint, Cmd, User, WorkingDir."""
    return json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(one)}" for one in layers]},
        }
    ).encode()


def docker_archive(path: Path, images: Mapping[str, tuple[bytes, Sequence[bytes]]]) -> Path:
    """What `docker save` writes: name -> configuration and layers."""
    manifest, written = [], set()
    with tarfile.open(path, "w") as archive:

        def add(name: str, content: bytes) -> str:
            if name not in written:
                member, data = file(name, content)
                archive.addfile(member, io.BytesIO(data))
            written.add(name)
            return name

        for name, (config, layers) in images.items():
            manifest.append(
                {
                    "Config": add(f"{sha256(config)}.json", config),
                    "RepoTags": [name],
                    "Layers": [add(f"{sha256(one)}/layer.tar", one) for one in layers],
                }
            )
        add("manifest.json", json.dumps(manifest).encode())
    return path


class Layout:
    """An OCI layout that grows in a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "blobs/sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self.entries: list[dict[str, Any]] = []
        self._write()

    def _write(self) -> None:
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": self.entries}))

    def blob(self, content: bytes, kind: str) -> dict[str, Any]:
        (self.path / "blobs/sha256" / sha256(content)).write_bytes(content)
        return {"mediaType": kind, "digest": f"sha256:{sha256(content)}", "size": len(content)}

    def image(self, config: bytes, layers: Sequence[bytes], *, pack: bool = True) -> dict[str, Any]:
        """The descriptor of an image, not yet named."""
        stored = [self.blob(packed(one), f"{LAYER}+gzip") if pack else self.blob(one, LAYER) for one in layers]
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": self.blob(config, CONFIG), "layers": stored}
        return self.blob(json.dumps(manifest).encode(), MANIFEST)

    def index(self, images: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """The descriptor of an image for several machines: architecture -> image."""
        entries = [{**one, "platform": {"os": "linux", "architecture": name}} for name, one in images.items()]
        content = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        return self.blob(content, INDEX)

    def add(self, descriptor: dict[str, Any], tag: str = "", **more: Any) -> None:
        named = {"annotations": {"org.opencontainers.image.ref.name": tag}} if tag else {}
        self.entries.append({**descriptor, **named, **more})
        self._write()
