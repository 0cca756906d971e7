"""A root file system with more packages, made from a cached one by apt in a chroot: seconds instead of a new build.

It lies next to the others in the cache, under a key of its base's recipe and the packages, and has the same files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from vtax.errors import ImageError, UsageError
from vtax.events import Listener, StageFinished, StageProgress, StageStarted
from vtax.image import build, integrity
from vtax.image.recipe import KERNEL_PLACES, Recipe, simulation
from vtax.model.cluster import Image
from vtax.transport import process
from vtax.units import format_bytes
from vtax.wording import listed

STAGE, ASKING = "packages", "names of packages"
ESTIMATE_S, ASKING_S = 60.0, 8.0
TIMEOUT_S = 3600.0
NEEDED_BYTES = 4 * 2**30
SCRIPT = "install-packages"
UNKNOWN = re.compile(  # how apt names a package that it cannot install
    r"^E: (?:Unable to locate package|Couldn't find any package by \w{1,6}|Package '?)\s*'?([a-z0-9][a-z0-9.+-]*)",
    re.MULTILINE,
)
UNMET = re.compile(r"^ ([a-z0-9][a-z0-9.+-]*) : (Depends|Conflicts|Breaks|PreDepends): (.{1,200})$", re.MULTILINE)


def key(made: Recipe, packages: Sequence[str]) -> str:
    """The key of a root file system with these packages; without any that of its base."""
    if not packages:
        return made.key
    content = json.dumps({"base": made.key, "packages": sorted(set(packages))}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def additional(made: Recipe, packages: Sequence[str]) -> tuple[str, ...]:
    """What the base does not install itself."""
    return tuple(sorted({*packages} - {*made.packages}))


def cached(cache: Path, made: Recipe, packages: Sequence[str]) -> Image | None:
    """The image of a recipe with these packages, when it is in the cache."""
    return build.read(cache, key(made, additional(made, packages)))


def ensure(cache: Path, made: Recipe, packages: Sequence[str], listener: Listener) -> Image:
    """The image of a recipe with these packages, made when the cache lacks it, from its base, built likewise.

    Raises UsageError that names a package that does not exist, ImageError with the end of what apt printed, or when
    what the cache has was changed.
    """
    wanted = additional(made, packages)
    if not wanted:
        return build.ensure(cache, made, listener)
    name = key(made, wanted)
    if known := build.read(cache, name):
        integrity.verify(known)
        return known
    base = build.ensure(cache, made, listener)
    with build.locked(cache / f"{name}.lock"):
        build.discard_unfinished(cache, name)
        return build.read(cache, name) or _install(cache, name, base, wanted, listener)


def check(cache: Path, made: Recipe, packages: Sequence[str], listener: Listener) -> None:
    """Ask the mirror about a recipe and more packages, before anything is built or copied.

    Raises UsageError that names a package that does not exist, ImageError with the end of what apt printed.
    """
    build.make_private(cache)
    name = key(made, additional(made, packages))
    clock = time.monotonic()
    listener(StageStarted(ASKING, ASKING_S))
    with build.locked(cache / f"{name}.lock"):
        build.discard_unfinished(cache, name)
        work = Path(tempfile.mkdtemp(prefix=f"{build.INSTALLING}{name}-", dir=cache))
        try:
            argv = build.isolated(simulation(made, packages, build.mode()))
            result = process.run(argv, timeout_s=TIMEOUT_S, env=build.environment(work, made))
        finally:
            build.delete(work)
    if result.exit_code != 0 or result.timed_out:
        raise refused(packages, f"{result.stdout}\n{result.stderr}")
    listener(StageFinished(ASKING, time.monotonic() - clock))


def _install(cache: Path, name: str, base: Image, packages: tuple[str, ...], listener: Listener) -> Image:
    free = shutil.disk_usage(cache).free
    if free < NEEDED_BYTES:
        raise ImageError(
            f"{cache} has {format_bytes(free)} free; installing packages needs {format_bytes(NEEDED_BYTES)}",
            remedy="free some space, or set XDG_CACHE_HOME to a larger file system",
        )
    clock = time.monotonic()
    listener(StageStarted(STAGE, ESTIMATE_S))
    work = Path(tempfile.mkdtemp(prefix=f"{build.INSTALLING}{name}-", dir=cache))
    try:
        tree = work / "rootfs"
        listener(StageProgress(STAGE, "copying the root file system"))
        _as_root("cp", "-a", "--reflink=auto", base.directory, str(tree))
        listener(StageProgress(STAGE, f"installing {', '.join(packages)}"))
        _apt(work, tree, packages)
        listener(StageProgress(STAGE, "writing the archive"))
        _as_root(*archive_command(tree, work / "rootfs.tar"))
        enter = shutil.copyfile(base.enter, work / "vtax-enter")
        enter.chmod(0o700)
        image = Image(
            recipe=name,
            digest=build.sha256(work / "rootfs.tar"),
            directory=str(cache / name / "rootfs"),
            archive=str(cache / name / "rootfs.tar"),
            versions=build.versions(tree / "usr/local/lib/vtax/packages"),
            kernel=str(cache / name / "rootfs" / Path(base.kernel).relative_to(base.directory)) if base.kernel else "",
            enter_digest=base.enter_digest,
            base=base.recipe,
            packages=packages,
        )
        integrity.note(work)
        (work / "image.json").write_text(image.model_dump_json(indent=1))
        work.rename(cache / name)
    except BaseException:
        build.delete(work)
        raise
    listener(StageFinished(STAGE, time.monotonic() - clock))
    return image


def archive_command(tree: Path, archive: Path) -> tuple[str, ...]:
    """The tar call that writes a tree as containers get it: without the kernel, which only virtual machines use."""
    return (
        *("tar", "-C", str(tree), "--numeric-owner", "--xattrs", "--xattrs-include=*", "--sort=name"),
        *(f"--exclude=.{place}" for place in KERNEL_PLACES),
        *("-cf", str(archive), "."),
    )


def _as_root(*argv: str) -> None:
    process.run((*process.as_root_here(), *argv), timeout_s=TIMEOUT_S, check=True)


def _apt(work: Path, tree: Path, packages: Sequence[str]) -> None:
    """Install packages in the tree, in namespaces of its own, so that nothing of it keeps running or mounted."""
    script = work / SCRIPT
    script.write_bytes((files("vtax.image") / SCRIPT).read_bytes())
    isolated = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
    argv = (*process.as_root_here(), *isolated, "sh", str(script), str(tree), *packages)
    environment = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    environment |= {"PATH": process.search_path(), "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    result = process.run(argv, timeout_s=TIMEOUT_S, env=build.marked(environment, work))
    if result.exit_code != 0 or result.timed_out:
        raise refused(packages, f"{result.stdout}\n{result.stderr}")
    script.unlink()


def refused(packages: Sequence[str], printed: str) -> UsageError | ImageError:
    """The error for packages that apt did not install, from what it printed."""
    unknown = [name for name in dict.fromkeys(UNKNOWN.findall(printed)) if name in packages]
    if unknown:
        them = f"the package {unknown[0]}" if len(unknown) == 1 else f"the packages {listed(unknown)}"
        return UsageError(
            f"{them} {'does' if len(unknown) == 1 else 'do'} not exist in the study's Debian suite and components",
            remedy="`packages` takes names as in `apt-get install`; [image] sets suite and components",
        )
    if unmet := UNMET.findall(printed):
        return UsageError(
            f"the packages {listed(packages)} cannot be installed together",
            detail="\n".join(f"{name} {how.lower()} {what}" for name, how, what in unmet[:8]),
            remedy="leave one of them out, or set another suite in [image]",
        )
    tail = [line for line in printed.splitlines() if line.strip()][-12:]
    return ImageError(
        f"the packages {listed(packages)} could not be installed",
        detail="\n".join(tail),
        remedy="is the mirror reachable? `vtax plan` shows it; [image] in the study sets it",
    )
