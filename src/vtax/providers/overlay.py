"""A study's own image on the nodes of this machine: an overlay for each, mounted here and found by its label alone.

In a node's directory, `lower` leads to the unpacked image, `layer` has what the node writes into it, and `workload` is
what the node sees as WORKLOAD. The mount table names `vtax-LABEL.PROVIDER` as the source of such a mount. What a node
has of its own (/proc, devices, its disk) is mounted inside by the provider, in the node's mount namespace.
"""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vtax.errors import ProvisionError, UsageError
from vtax.facts.node import mounted, mounts
from vtax.model.cluster import Workload
from vtax.model.trial import CommandResult
from vtax.providers.base import SCRATCH, WORKLOAD, Leftover, Site, elsewhere
from vtax.transport import process

ROOT, FILES = "root", ("config", "entry", "workload.json")  # of an unpacked image
HOSTS = "/etc/hosts"
OWN = ("/proc", "/sys", "/dev", SCRATCH)  # that a node has instead of the image's
# What kernels have different defaults for is said: a virtual machine has another one.
LAYERS = "lowerdir=lower,upperdir=layer/upper,workdir=layer/work"  # below the directory of a node
MOUNT_OPTIONS = f"nodev,{LAYERS},index=off,metacopy=off,redirect_dir=nofollow"
COMMAND_S = 20.0
TABLE = Path("/proc/self/mountinfo")
MOUNT = re.compile(r"^[0-9]+ [0-9]+ [0-9:]+ \S+ (\S+) .*? - (?:overlay|tmpfs) vtax-([^ .]+)\.([a-z]+) ", re.MULTILINE)
OCTAL = re.compile(r"\\([0-7]{3})")
PLANNED = Workload(  # stands for the image in the commands of a plan
    source="docker://image", digest="0" * 64, directory="IMAGE", architecture="", libc="", size_bytes=0
)


class Mount(NamedTuple):
    """A mount that belongs to a cluster."""

    place: Path
    label: str
    provider: str


def command(place: Path, label: str, provider: str) -> tuple[str, ...]:
    """What mounts the image for the node with this directory. Its words are relative: the options of an overlay have
    characters that paths may have too."""
    words = ("mount", "-t", "overlay", "-o", MOUNT_OPTIONS, _source(label, provider), f"workload/{ROOT}")
    return ("env", f"--chdir={place}", *words)


def make(place: Path, label: str, provider: str, image: Workload, shared_path: str) -> None:
    """Mount the image for the node with this directory. Raises UsageError or ProvisionError; `remove` then removes what
    was made."""
    prepare(place, image, shared_path)
    seen, layer = place / "workload", place / "layer"
    first = _run(command(place, label, provider))
    if first.exit_code != 0:  # not every file system can hold what an overlay writes; another overlay cannot
        _run(("mount", "-t", "tmpfs", "-o", "mode=0700", _source(label, provider), str(layer)))
        _layers(layer, image)
        if _run(command(place, label, provider)).exit_code != 0:
            raise ProvisionError(
                f"the image cannot be mounted for {place.name}",
                detail=first.stderr.strip(),
                remedy="vtax needs the kernel's overlay file system (modprobe overlay) and the capability SYS_ADMIN",
            )
    for name in (*OWN, shared_path, str(Path(HOSTS).parent)):
        Path(seen / ROOT, name.lstrip("/")).mkdir(exist_ok=True)
    Path(seen / ROOT, HOSTS.lstrip("/")).touch()


def prepare(place: Path, image: Workload, shared_path: str) -> None:
    """Everything for the node with this directory but the mount. Raises UsageError."""
    refuse_unfit(image, shared_path)
    seen, layer = place / "workload", place / "layer"
    (seen / ROOT).mkdir(parents=True)
    layer.mkdir()
    (place / "lower").symlink_to(image.root)
    for name in FILES:
        shutil.copyfile(Path(image.directory, name), seen / name)
        (seen / name).chmod(0o444)
    _layers(layer, image)


def refuse_unfit(image: Workload, shared_path: str) -> None:
    """Raise UsageError for an image in which a mount of the node would end up somewhere else, or nowhere."""
    wanted = dict.fromkeys((*OWN, shared_path, str(Path(HOSTS).parent)), stat.S_ISDIR) | {HOSTS: stat.S_ISREG}
    for name, right in wanted.items():
        try:
            mode = Path(image.root, name.lstrip("/")).lstat().st_mode
        except FileNotFoundError:
            continue
        if not right(mode):
            kind = "file" if name == HOSTS else "directory"
            raise UsageError(
                f"{name} in the image {image.source} is not a {kind}",
                detail=f"it is {stat.filemode(mode)}",
                remedy=f"every node has its own {name} there: make it a {kind} in the image, or remove it",
            )


def facts(site: Site, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What nodes with such mounts cannot observe themselves: the type of the file system that holds what they write
    into the image."""
    if site.image.workload is None:
        return {}
    table = mounts(TABLE.read_text())
    return {name: {"workload_layer": mounted(str(site.directory / name / "layer"), table)} for name in names}


def found() -> Iterator[Mount]:
    """Every mount of every cluster on this machine, in the order in which they were made."""
    for point, label, provider in MOUNT.findall(TABLE.read_text()):
        yield Mount(Path(OCTAL.sub(lambda code: chr(int(code[1], 8)), point)), label, provider)


def remove(runtime: Path, label: str) -> None:
    """Unmount the images of a cluster with this run-time directory; fine when there is none."""
    for one in reversed([one for one in found() if one.label == label]):
        if elsewhere(runtime, label, one.place):
            continue
        result = _run(("umount", "--lazy", "--", str(one.place)))
        if result.exit_code != 0 and one in found():  # not when another process unmounted it meanwhile
            raise process.failed(result, "as root: run `vtax clean`")


def leftovers(provider: str, runtime: Path) -> list[Leftover]:
    """The mounts that a provider's clusters left."""
    return [
        Leftover(provider, "mount", str(one.place), one.label, elsewhere(runtime, one.label, one.place))
        for one in found()
        if one.provider == provider
    ]


def bind_inside(process_id: int, shared_path: str) -> tuple[str, ...]:
    """What mounts inside the image, in the mount namespace of a node's process, what the node has of its own. The
    programs are the node's, which has run nothing else yet."""
    script = f'for place; do mount --rbind "$place" "{WORKLOAD}/{ROOT}$place"; done'
    words = ("sh", "-ec", script, "sh", *OWN, shared_path, HOSTS)
    return ("nsenter", f"--target={process_id}", "--mount", "--", *words)


def _layers(layer: Path, image: Workload) -> None:
    """The directories of what a node writes; the upper one is the image's root directory as the node sees it."""
    like = image.root.stat()
    (layer / "work").mkdir()
    upper = layer / "upper"
    upper.mkdir()
    shutil.chown(upper, like.st_uid, like.st_gid)
    upper.chmod(stat.S_IMODE(like.st_mode))


def _source(label: str, provider: str) -> str:
    return f"vtax-{label}.{provider}"


def _run(words: tuple[str, ...]) -> CommandResult:
    return process.run(words, timeout_s=COMMAND_S, env=process.system_environment())
