"""The root file system as an archive of images, as `docker save` writes it, for what imports no bare tar."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

from vtax.model.cluster import Image
from vtax.paths import replacing

NAME = "vtax-rootfs"
LATEST = f"{NAME}:latest"  # of whatever was imported last: for a pod that only enters its machine
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LABEL = "vtax.image"


def tags(image: Image) -> tuple[str, str]:
    """The names that it has in the archive, the one by its digest first."""
    return f"{NAME}:{image.digest[:12]}", LATEST


def write_archive(image: Image, place: Path) -> None:
    """Write it: the root file system is its only layer, so the same image gives the same bytes. Raises OSError."""
    machine = platform.machine()
    config = json.dumps(
        {
            "architecture": ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": {"Cmd": ["/usr/local/bin/node-init"], "Labels": {LABEL: image.digest[:12]}},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{image.digest}"]},
            "history": [{"created_by": "vtax"}],
        },
        sort_keys=True,
    ).encode()
    name, layer = f"{hashlib.sha256(config).hexdigest()}.json", f"{image.digest}/layer.tar"
    manifest = json.dumps([{"Config": name, "RepoTags": list(tags(image)), "Layers": [layer]}]).encode()
    with replacing(place) as fresh, tarfile.open(fresh, "w") as tar, Path(image.archive).open("rb") as root:
        for path, content in ((name, config), ("manifest.json", manifest)):
            tar.addfile(_entry(path, len(content)), io.BytesIO(content))
        tar.addfile(_entry(layer, Path(image.archive).stat().st_size), root)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry
