"""Build, find, list and remove cached root file systems.

Layout of the cache: `images/<key>/` with `rootfs/` (the unpacked tree, kernel included), `rootfs.tar` (without kernel),
`vtax-enter`, `tree.sha256` and `image.json`; providers of virtual machines put their disks next to them. A build
happens in a temporary directory that is renamed when complete, so a half-built image is never seen. All of it is
private.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vtax import files
from vtax.errors import EnvironmentMissing, ImageError, UsageError
from vtax.events import Listener, StageFinished, StageProgress, StageStarted
from vtax.image import integrity, snapshot
from vtax.image.recipe import KERNEL_PLACES, Recipe, command, guest_files, machine_mirror
from vtax.model.cluster import Image
from vtax.model.study import moment
from vtax.paths import TEMPORARY, abandoned
from vtax.transport import process

STAGE = "root file system"
ESTIMATE_S = 90.0
TIMEOUT_S = 3600.0
POLL_S = 0.2
NEEDED_BYTES = 5 * 2**30
NOBODY = 65534
END_S = 10.0
ISOLATED = ("unshare", "--mount")  # so that what mmdebstrap mounts as root goes with it, however it ends
MARK = "VTAX_BUILD"  # in the environment of all that a build starts: the name of its directory
BUILDING = ".building-"  # begins the name of that directory, then the key of the recipe
KEY_LENGTH = 16
TEMPORARY_FILES = "tmp"  # in that directory
INSTALLING = ".installing-"  # the same for packages that are added to it
WORK = re.compile(rf"\.(?:building|installing)-([0-9a-f]{{{KEY_LENGTH}}})-\w+", re.ASCII)


def find_machine_mirror() -> str:
    """The mirror of this machine's own apt, "" when it has none that serves Debian."""
    release = Path("/etc/os-release")
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    texts = [
        place.read_text(errors="replace")
        for place in places
        if place.suffix in (".list", ".sources") and place.exists()
    ]
    return machine_mirror(release.read_text() if release.exists() else "", texts)


def cached(cache: Path, made: Recipe) -> Image | None:
    """The image of a recipe, when it is in the cache."""
    return read(cache, made.key)


def read(cache: Path, key: str) -> Image | None:
    """The image with this key, when it is in the cache."""
    manifest = cache / key / "image.json"
    return _read(manifest) if manifest.exists() else None


def images(cache: Path) -> tuple[Image, ...]:
    """Every image in the cache."""
    return tuple(_read(path) for path in sorted(cache.glob("*/image.json")))


def _read(manifest: Path) -> Image:
    try:
        return Image.model_validate_json(manifest.read_bytes())
    except ValueError as error:
        raise ImageError(
            f"{manifest} is damaged",
            detail=str(error),
            remedy=f"remove the directory {manifest.parent}, then try again",
        ) from error


def ensure(cache: Path, made: Recipe, listener: Listener) -> Image:
    """The image of a recipe, built when the cache lacks it. Raises ImageError with the end of the log, or when what
    the cache has was changed."""
    make_private(cache)
    with locked(cache / f"{made.key}.lock"):
        found = cached(cache, made)
        if found is None:
            discard_unfinished(cache, made.key)
            return _build(cache, made, listener)
        integrity.verify(found)
        return found


def make_private(cache: Path) -> None:
    """Make the cache where it is missing; trees in it have setuid programs of the day of their build."""
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o700)


def unfinished(cache: Path) -> tuple[Path, ...]:
    """What was being made in the cache by processes that were killed: root file systems, and files next to them."""
    found = [*_unfinished(cache), *(path for place in sorted(cache.glob("*/")) for path, _ in abandoned(place))]
    return tuple(place for place in found if not files.is_locked(_lock_of(place)))


def discard(place: Path) -> None:
    """Remove what a killed process left, unless another one has begun to make the same meanwhile."""
    with files.locked(_lock_of(place)) as mine:
        if mine and place.is_dir():
            _discard(place)
        elif mine:
            place.unlink(missing_ok=True)


def discard_unfinished(cache: Path, key: str) -> None:
    """Remove what killed processes left of the root file system with this key, whose lock the caller holds."""
    for place in _unfinished(cache, key):
        _discard(place)


def _unfinished(cache: Path, key: str = "*") -> list[Path]:
    several = (place for kind in (BUILDING, INSTALLING) for place in cache.glob(f"{kind}{key}-*"))
    return sorted(place for place in several if WORK.fullmatch(place.name))


def _lock_of(place: Path) -> Path:
    """The lock that is held while `place` is made."""
    if found := TEMPORARY.fullmatch(place.name):
        return place.with_name(f"{found[1]}.lock")
    made = WORK.fullmatch(place.name)
    return place.with_name(f"{made[1] if made else place.name}.lock")


def _discard(place: Path) -> None:
    """End what a killed build left running, and remove its directory."""
    for number, grace_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):  # mmdebstrap ends its own on SIGTERM
        for pid in working_on(place):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + grace_s
        while working_on(place) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    _unmount(place)
    delete(place)


def _unmount(place: Path) -> None:
    """What a build without a mount namespace of its own left mounted: deleting must not reach into it."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((one for one in points if one.startswith(f"{place}/")), reverse=True):
        process.run(("umount", "--lazy", "--", point), timeout_s=END_S, check=True)


def working_on(place: Path) -> list[int]:
    """This user's processes that a build in `place` has started."""
    mark, found = f"{MARK}={place.name}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            given = entry / "environ"
            if given.stat().st_uid == os.geteuid() and mark in given.read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def remove(cache: Path, key: str) -> None:
    """Delete an image from the cache. Raises UsageError when there is none of that key."""
    place = cache / key
    if not (place / "image.json").exists():
        raise UsageError(f"there is no image {key!r} in the cache", remedy="run `vtax image list` to see all")
    with locked(cache / f"{key}.lock"):  # which stays: a build may wait for it
        (place / "image.json").unlink(missing_ok=True)
        delete(place)


def delete(place: Path) -> None:
    """Delete a tree that may contain files of the user's subordinate ids."""
    if os.geteuid() == 0 or not place.exists():
        shutil.rmtree(place, ignore_errors=False) if place.exists() else None
        return
    process.run((*process.as_root_here(), "rm", "-rf", "--", str(place)), timeout_s=300, check=True)


def missing() -> str:
    """Why this user cannot build or unpack an image here; "" when nothing is missing."""
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed"
    if os.geteuid() == 0:
        return ""
    probe = process.run((*process.as_root_here(), "true"), timeout_s=10)
    return "" if probe.exit_code == 0 else f"user namespaces do not work for this user: {probe.stderr.strip()}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While this lasts, no other process makes what the lock is of; it is waited for."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(cache: Path, made: Recipe, listener: Listener) -> Image:
    _demand(cache, made)
    clock = time.monotonic()
    listener(StageStarted(STAGE, ESTIMATE_S))
    work = Path(tempfile.mkdtemp(prefix=f"{BUILDING}{made.key}-", dir=cache))
    try:
        _bootstrap(work, made, listener)
        listener(StageProgress(STAGE, "unpacking"))
        tree = work / "rootfs"
        tree.mkdir()
        unpack = ("tar", "-C", str(tree), "--exclude=./dev/*", "--numeric-owner", "-xpf", str(work / "rootfs.tar"))
        process.run((*process.as_root_here(), *unpack), timeout_s=TIMEOUT_S, env=marked(os.environ, work), check=True)
        kernel = _add_kernel(work, tree)
        enter = shutil.copyfile(tree / "usr/local/bin/vtax-enter", work / "vtax-enter")
        enter.chmod(0o700)
        image = Image(
            recipe=made.key,
            digest=sha256(work / "rootfs.tar"),
            directory=str(cache / made.key / "rootfs"),
            archive=str(cache / made.key / "rootfs.tar"),
            versions=versions(tree / "usr/local/lib/vtax/packages"),
            kernel=str(cache / made.key / "rootfs" / kernel) if kernel else "",
            enter_digest=sha256(enter),
        )
        shutil.rmtree(work / "guest")
        (work / "recipe.json").write_text(json.dumps(made.recorded, indent=1, sort_keys=True))
        integrity.note(work)
        (work / "image.json").write_text(image.model_dump_json(indent=1))
        work.rename(cache / made.key)
    except BaseException:
        delete(work)
        raise
    listener(StageFinished(STAGE, time.monotonic() - clock))
    return image


def marked(environment: Mapping[str, str], work: Path) -> dict[str, str]:
    """The environment of what is started for `work`, by which `working_on` finds it if this process is killed."""
    return {**environment, MARK: work.name}


def mode() -> str:
    """How mmdebstrap gets root's view of a file system here."""
    return "root" if os.geteuid() == 0 else "unshare"


def isolated(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A call of mmdebstrap, in a mount namespace where root may make one: a container may not allow that."""
    alone = os.geteuid() == 0 and process.run((*ISOLATED, "true"), timeout_s=10).exit_code == 0
    return (*ISOLATED, *argv) if alone else argv


def environment(work: Path, made: Recipe) -> dict[str, str]:
    """The environment of mmdebstrap, with a directory in `work` for its temporary files where it can be used."""
    temporary = work / TEMPORARY_FILES
    temporary.mkdir()
    own = {**os.environ, "TMPDIR": str(temporary)} if os.geteuid() == 0 else os.environ
    return marked(snapshot.environment(made.snapshot, own), work)


def _demand(cache: Path, made: Recipe) -> None:
    if made.snapshot and moment(made.snapshot).timestamp() > time.time():
        raise UsageError(
            f"the snapshot {made.snapshot} is in the future, so what is in it is not known yet",
            remedy="choose a day up to today as `snapshot` in [image]",
        )
    reason = missing()
    if reason:
        raise EnvironmentMissing(
            f"the root file system cannot be built: {reason}",
            remedy="as root: apt-get install mmdebstrap uidmap; run `vtax doctor` to see what else is missing",
        )
    free = shutil.disk_usage(cache).free
    if free < NEEDED_BYTES:
        raise ImageError(
            f"{cache} has {free / 2**30:.1f} GiB free; the build needs {NEEDED_BYTES / 2**30:.0f}",
            remedy="free some space, or set XDG_CACHE_HOME to a larger file system",
        )


def _bootstrap(work: Path, made: Recipe, listener: Listener) -> None:
    """mmdebstrap into `rootfs.tar`, its steps passed on as events."""
    guest = work / "guest"
    guest.mkdir()
    guest.chmod(0o755)
    for name, content in guest_files().items():
        (guest / name).write_bytes(content)
        (guest / name).chmod(0o644)  # they are in the archive, and this user's umask should not be
    log = work / "log"
    (work / "kernel").mkdir()
    argv = isolated(command(made, str(guest), str(work / "kernel"), mode()))
    running = process.start(argv, stdout=work / "rootfs.tar", stderr=log, env=environment(work, made))
    reported = 0
    try:
        while running.process.poll() is None and time.monotonic() - running.clock < TIMEOUT_S:
            reported = _report(log, reported, listener)
            time.sleep(POLL_S)
    finally:
        result = running.stop()
    if result.exit_code != 0 or (work / "rootfs.tar").stat().st_size == 0:
        tail = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-15:]
        raise ImageError(
            f"the root file system could not be built: mmdebstrap ended with exit code {result.exit_code}",
            detail="\n".join(tail),
            remedy="is the mirror reachable, and are suite and snapshot what it has? [image] in the study sets them",
        )
    log.unlink()
    delete(work / TEMPORARY_FILES)


def _report(log: Path, reported: int, listener: Listener) -> int:
    lines = log.read_text(errors="replace").splitlines()
    for line in lines[reported:]:
        if line.startswith(("I: ", "vtax: ")) and "hook" not in line:
            listener(StageProgress(STAGE, line.partition(": ")[2]))
    return len(lines)


def _add_kernel(work: Path, tree: Path) -> str:
    """Put kernel and modules, which the archive lacks because containers have no use for them, into the tree, for
    virtual machines. Returns the path of the kernel in the tree, "" when there is none."""
    apart = work / "kernel"
    for place in KERNEL_PLACES:
        found = apart / Path(place).name
        if found.exists():
            move = ("mv", "-T", str(found), f"{tree}{place}")
            process.run((*process.as_root_here(), "rm", "-rf", f"{tree}{place}"), timeout_s=TIMEOUT_S, check=True)
            process.run((*process.as_root_here(), *move), timeout_s=TIMEOUT_S, check=True)
    delete(apart)
    kernels = sorted((tree / "boot").glob("vmlinuz-*"))
    return str(kernels[-1].relative_to(tree)) if kernels else ""


def sha256(path: Path) -> str:
    """The digest of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def versions(listing: Path) -> dict[str, str]:
    """Package -> version, as the root file system lists them."""
    return dict(line.split(" ", 1) for line in listing.read_text().splitlines())


def blas_core(image: Image) -> str:
    """The kernel that OpenBLAS chooses on this CPU, as the image's own OpenBLAS reports it to a user without rights;
    "" when it cannot run."""
    enter = ("chroot", f"--userspec={NOBODY}:{NOBODY}", f"--groups={NOBODY}", image.directory)
    command = (*process.as_root_here(), *enter, "/usr/local/bin/vtax-blas")
    clean = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    result = process.run(command, timeout_s=10, env=clean)
    return result.stdout.splitlines()[0] if result.exit_code == 0 and result.stdout else ""
