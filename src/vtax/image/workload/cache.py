"""Own images in the cache: unpacked once, listed, removed.

Layout: `workloads/<digest>/` with `root/` (the tree), `config`, `entry` and `workload.json`. Work
happens in a temporary directory that is renamed when complete. All of it is private: trees have setuid programs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from vtax.errors import ImageError, NotMatched, UsageError
from vtax.events import Listener, StageFinished, StageProgress, StageStarted
from vtax.image.build import delete, locked
from vtax.image.workload import layers, tree
from vtax.image.workload.configuration import Configuration, options, terminated
from vtax.image.workload.source import Identity, demand, identify, is_pinned, is_remote, said
from vtax.model.cluster import Workload
from vtax.model.study import WorkloadSpec
from vtax.model.trial import CommandResult
from vtax.transport import process
from vtax.units import format_bytes
from vtax.wording import printable

STAGE = "own image"
ESTIMATE_S = 25.0
TIMEOUT_S = 3600.0
SPARE_BYTES = 64 * 2**20
MANIFEST = "workload.json"
FULL = "no space left on device"


def workloads(cache: Path) -> tuple[Workload, ...]:
    """Every own image in the cache."""
    return tuple(_read(path) for path in sorted(cache.glob(f"*/{MANIFEST}")))


def cached(cache: Path, spec: WorkloadSpec) -> Workload | None:
    """The image of a study, when it is known which one it is and it is in the cache."""
    if spec.digest:
        place = cache / spec.digest / MANIFEST
        return _read(place).model_copy(update={"source": spec.source}) if place.exists() else None
    if is_pinned(spec.source):
        return next((one for one in workloads(cache) if one.source == spec.source), None)
    return None


def _read(place: Path) -> Workload:
    try:
        return Workload.model_validate_json(place.read_bytes())
    except ValueError as error:
        raise ImageError(
            f"{place} is damaged", detail=str(error), remedy=f"remove the directory {place.parent}, then try again"
        ) from error


def looked_up(cache: Path, spec: WorkloadSpec) -> WorkloadSpec:
    """The image of a study with its digest where files say it; no registry is asked. Raises UsageError for a file that
    is not an image for this machine."""
    if spec.digest:
        return spec
    if is_remote(spec.source):
        known = cached(cache, spec)
        return spec.model_copy(update={"digest": known.digest}) if known else spec
    return spec.model_copy(update={"digest": identify(spec).digest})


def frozen(cache: Path, spec: WorkloadSpec) -> WorkloadSpec:
    """The image of a study, named for ever: a registry is asked what a tag means now."""
    spec = looked_up(cache, spec)
    if spec.digest:
        return spec
    found = identify(spec)
    return spec.model_copy(update={"source": found.source, "digest": found.digest})


def ensure(cache: Path, spec: WorkloadSpec, listener: Listener) -> Workload:
    """The image of a study, unpacked when the cache lacks it. Raises UsageError for what is wrong with the image,
    ImageError for what is wrong with this machine."""
    spec = frozen(cache, spec)
    if known := cached(cache, spec):
        return known
    demand("skopeo", "umoci")
    found = identify(spec)
    if found.digest != spec.digest:
        raise NotMatched(
            f"{spec.source} is not the image that was planned",
            detail=f"planned sha256 {spec.digest}, now {found.digest}",
            remedy="start a new campaign: numbers of two images do not compare",
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
        cache.chmod(0o700)
        with locked(cache / f"{found.digest}.lock"):
            for stale in cache.glob(f".unpacking-{found.digest}-*"):  # of a process that was killed
                delete(stale)
            return cached(cache, spec) or _unpack(cache, found, listener)
    except OSError as error:
        raise ImageError(
            f"{cache} cannot be written: {error.strerror or error}",
            remedy="free some space, or set XDG_CACHE_HOME to a larger file system",
        ) from error


def remove(cache: Path, digest: str) -> None:
    """Delete an own image from the cache, and the disk that virtual machines have it on."""
    (cache / digest / MANIFEST).unlink()
    delete(cache / digest)
    for place in (cache / f"{digest}.lock", *cache.glob(f"{digest}.disk*")):
        place.unlink(missing_ok=True)


def _unpack(cache: Path, found: Identity, listener: Listener) -> Workload:
    clock = time.monotonic()
    listener(StageStarted(STAGE, ESTIMATE_S))
    configuration = found.configuration
    work = Path(tempfile.mkdtemp(prefix=f".unpacking-{found.digest}-", dir=cache))
    try:
        listener(StageProgress(STAGE, f"copying {printable(found.source)}"))
        layout = _copied(work, found)
        size = layers.examine(layout, found.source)
        _demand_space(cache, size + size // 20)
        listener(StageProgress(STAGE, f"unpacking {len(layout.layers)} layers, {format_bytes(size)}"))
        _umoci(work, found.source)
        shutil.rmtree(work / "oci")
        listing = tree.list_tree(work / "root")
        tree.refuse_links_out(listing, found.source)
        _add_directories(work, listing, configuration, found.source)
        workload = Workload(
            source=found.source,
            digest=found.digest,
            directory=str(cache / found.digest),
            architecture=configuration.architecture,
            libc=tree.libc_of(listing, _reader(work), configuration.architecture, found.source),
            size_bytes=tree.size_of(listing),
            entry=configuration.entry,
            variables=tuple(one.partition("=")[0] for one in configuration.environment),
            user=configuration.user,
            working_directory=configuration.working_directory,
            layers=len(layout.layers),
            unpacked_by=_programs(),
        )
        (work / "config").write_bytes(terminated(options(configuration)))
        (work / "entry").write_bytes(terminated(configuration.entry))
        (work / MANIFEST).write_text(workload.model_dump_json(indent=1))
        work.rename(cache / found.digest)
    except BaseException:
        delete(work)
        raise
    listener(StageFinished(STAGE, time.monotonic() - clock))
    return workload


def _copied(work: Path, found: Identity) -> layers.Layout:
    """The image alone in an OCI layout of vtax's own. Its layers are those that the configuration names."""
    _demand_space(work, _packed_bytes(found))
    _skopeo(work, found, "--dest-oci-accept-uncompressed-layers")  # to compress them takes longer than all the rest
    if layers.has_zstd(work / "oci"):
        shutil.rmtree(work / "oci")
        _skopeo(work, found, "--dest-compress-format=gzip")
    layout = layers.read(work / "oci")
    if layout.contents != found.configuration.layers:
        raise UsageError(f"{found.source} changed while it was read", remedy="try again when nothing writes it")
    return layout


def _skopeo(work: Path, found: Identity, how: str) -> None:
    temporary = work / "tmp"
    temporary.mkdir()
    argv = ("skopeo", "copy", "--quiet", how, found.argument, "oci:oci:image")
    result = process.run(argv, timeout_s=TIMEOUT_S, directory=work, env={**os.environ, "TMPDIR": str(temporary)})
    _refuse_failed(result, f"{found.source} cannot be copied", "make or copy the image again; was it complete?")
    shutil.rmtree(temporary)


def _packed_bytes(found: Identity) -> int:
    """The size of an image before it is copied; 0 where that is not known."""
    if is_remote(found.argument):
        return 0
    path = Path(found.argument.split(":")[1])
    return path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in path.glob("blobs/sha256/*"))


def _demand_space(place: Path, needed: int) -> None:
    free = shutil.disk_usage(place).free
    if free < needed + SPARE_BYTES:
        raise ImageError(
            f"{place.parent} has {format_bytes(free)} free; the image needs {format_bytes(needed + SPARE_BYTES)}",
            remedy="free some space, or set XDG_CACHE_HOME to a larger file system",
        )


def _umoci(work: Path, name: str) -> None:
    """The tree of the image's layers, with owners, hard links, capabilities and set-uid bits; whiteouts are applied."""
    argv = ("sh", "-c", 'umask 022; exec "$@"', "umoci", "umoci", "raw", "unpack", "--image", "oci:image", "root")
    result = process.run(
        (*process.as_root_here(), *argv), timeout_s=TIMEOUT_S, directory=work, env=process.system_environment()
    )
    _refuse_failed(result, f"{name} cannot be unpacked", "make or copy the image again; was it complete?")


def _refuse_failed(result: CommandResult, message: str, remedy: str) -> None:
    if result.exit_code == 0 and not result.timed_out:
        return
    text = printable(said(result.stderr)) or f"exit code {result.exit_code}"
    if result.timed_out:
        raise ImageError(message, detail=f"it took longer than {TIMEOUT_S:g} s")
    if FULL in result.stderr:
        raise ImageError(message, detail=text, remedy="free some space, or set XDG_CACHE_HOME to a larger file system")
    raise UsageError(message, detail=text, remedy=remedy)


def _add_directories(work: Path, listing: tree.Tree, configuration: Configuration, name: str) -> None:
    """The directories that nodes mount something on, and the working directory, where the image lacks them."""
    root = work / "root"
    process.run(
        (*process.as_root_here(), "mkdir", "-p", *(str(root / place) for place in tree.MOUNT_POINTS)),
        timeout_s=30,
        check=True,
    )
    wanted = tree.directory_for(listing, configuration.working_directory)
    if wanted is None:
        raise UsageError(
            f"{name}: its working directory {printable(configuration.working_directory)} is not a directory",
            remedy="correct the image's WORKDIR",
        )
    if wanted and wanted not in listing:
        made = ("install", "-d", "-m", "755", str(root / wanted))
        process.run((*process.as_root_here(), *made), timeout_s=30, check=True)


def _reader(work: Path) -> tree.Read:
    """Reads a file of the tree; of one that only subordinate ids may read, with their rights."""

    def read(path: str) -> bytes:
        try:
            return (work / "root" / path).read_bytes()
        except PermissionError:
            copy = work / "copy"
            process.run(
                (*process.as_root_here(), "cat", str(work / "root" / path)), timeout_s=30, stdout=copy, check=True
            )
            content = copy.read_bytes()
            copy.unlink()
            return content

    return read


def _programs() -> str:
    """What unpacked an image, with versions."""
    found = []
    for name in ("skopeo", "umoci"):
        said_version = process.run((name, "--version"), timeout_s=10).stdout.split()
        found.append(f"{name} {said_version[-1]}" if said_version else name)
    return ", ".join(found)
