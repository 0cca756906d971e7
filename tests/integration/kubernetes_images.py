"""Images for a Kubernetes of tests, written as `docker save` does: there is no registry to take any from."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PAUSE = "vtaxlab/pause:1"
BUSYBOX = "vtaxlab/busybox:1"
COMMANDS = ("cat", "httpd", "id", "ip", "ls", "nc", "ping", "sh", "sleep", "wget")


def pause(program: Path, target: Path) -> Path:
    """The image of a pod's first container."""
    return _image(target, PAUSE, {"pause": program}, {}, ("/pause",))


def busybox(program: Path, target: Path) -> Path:
    """A few commands, and it sleeps by itself."""
    links = {f"bin/{name}": "/bin/busybox" for name in COMMANDS}
    return _image(target, BUSYBOX, {"bin/busybox": program}, links, ("/bin/sleep", "100000"))


def _image(
    target: Path, name: str, files: Mapping[str, Path], links: Mapping[str, str], command: Sequence[str]
) -> Path:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for directory in ("bin", "etc", "proc", "sys", "dev", "tmp"):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755
            tar.addfile(entry)
        for inside, path in files.items():
            entry = tarfile.TarInfo(inside)
            entry.size, entry.mode = path.stat().st_size, 0o755
            with path.open("rb") as file:
                tar.addfile(entry, file)
        for inside, leads_to in links.items():
            entry = tarfile.TarInfo(inside)
            entry.type, entry.linkname = tarfile.SYMTYPE, leads_to
            tar.addfile(entry)
    content = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }
    described = json.dumps(config).encode()
    named = f"{hashlib.sha256(described).hexdigest()}.json"
    manifest = json.dumps([{"Config": named, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(target, "w") as tar:
        for inside, made in ((named, described), ("layer.tar", content), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(inside)
            entry.size = len(made)
            tar.addfile(entry, io.BytesIO(made))
    return target
