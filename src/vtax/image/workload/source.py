"""Where an image comes from, and which image that is: the sha256 of its configuration, read without unpacking."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vtax import files, tars
from vtax.errors import EnvironmentMissing, UsageError
from vtax.image.workload.configuration import MACHINES, Configuration, foreign, parse, refuse_foreign
from vtax.model.study import WorkloadSpec
from vtax.transport import process
from vtax.wording import listed, printable

SMALL_BYTES = 4 * 2**20  # of one manifest or configuration
KEPT_BYTES = 64 * 2**20  # of all of them in an archive
MEMBERS = 10_000  # of an archive
RATIO = 100  # of unpacked to packed bytes
FREE_BYTES = 2**30  # that may be unpacked whatever the ratio
CONTACT_S = 120.0
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
REF_NAME = "org.opencontainers.image.ref.name"
DAMAGED = "make or copy the file again; was it copied completely?"
Read = Callable[[str], bytes]  # a small file of an image by its name


@dataclass(frozen=True)
class Identity:
    """One image that can run here: what skopeo copies it from, and what it says about itself."""

    argument: str
    source: str  # as the plan names it: of a registry with the digest of its manifest
    digest: str
    configuration: Configuration

    @classmethod
    def of(cls, argument: str, source: str, content: bytes) -> Identity:
        """The image with this configuration. Raises UsageError where nothing of it can run on this machine."""
        configuration = parse(content, source)
        refuse_foreign(configuration, platform.machine(), source)
        return cls(argument, source, hashlib.sha256(content).hexdigest(), configuration)


def is_remote(source: str) -> bool:
    return source.startswith("docker://")


def is_pinned(source: str) -> bool:
    """Whether a source of a registry names one image for ever."""
    return "@sha256:" in source


def identify(spec: WorkloadSpec) -> Identity:
    """The image that a source names now. Asks the registry about an image of one, and reads files for all others.

    Raises UsageError for what is missing, damaged, ambiguous or for another machine.
    """
    if is_remote(spec.source):
        return _of_registry(spec.source)
    transport, _, rest = spec.source.partition(":")
    name, _, tag = rest.partition(":")
    path = Path(spec.base, name).absolute()
    if not path.exists():
        raise UsageError(
            f"[image.workload]: {path} does not exist",
            remedy="`docker save -o app.tar NAME` writes an archive; a relative path starts at the study's file",
        )
    argument = f"{transport}:{path}{':' + tag if tag else ''}"
    if ":" in str(path):
        raise UsageError(f"{path} has a colon in its path, which skopeo takes for a tag", remedy="rename or link it")
    try:
        if transport == "docker-archive":
            return Identity.of(argument, spec.source, _docker_configuration(_small_files(path), tag, spec.source))
        read = _directory(path) if transport == "oci" else _member(_small_files(path))
        return Identity.of(argument, spec.source, _oci_configuration(read, tag, spec.source))
    except (
        OSError,
        EOFError,
        tarfile.TarError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise UsageError(
            f"{spec.source} cannot be read as an image: {printable(_why(error))}", remedy=DAMAGED
        ) from error


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no {Path(error.filename).name} in it"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, tarfile.ReadError) and str(error) in ("invalid header", "bad checksum"):
        return "it is not an archive by tar, packed by gzip, bzip2, xz or nothing"
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)


def _small_files(path: Path) -> dict[str, bytes]:
    """What of an archive may be a manifest or a configuration, by name: layers are passed over."""
    if path.is_dir():
        raise ValueError("it is a directory, not an archive")
    found: dict[str, bytes] = {}
    left = KEPT_BYTES
    with files.given(path) as stream:
        packed = tars.unpacking(stream)
        count = _limit(path.stat().st_size) if packed else _no_limit
        with tars.archive(packed or stream, count) as archive:
            for number, member in enumerate(archive):
                if number >= MEMBERS:
                    raise ValueError(f"it has more than {MEMBERS} files")
                inside = archive.extractfile(member) if member.isfile() and member.size <= SMALL_BYTES else None
                content = b"" if inside is None else inside.read()
                if not content.startswith((b"{", b"[")):
                    continue
                found[member.name.removeprefix("./")] = content
                left -= member.size
                if left < 0:
                    raise ValueError("its manifests are larger than any image's")
    return found


def _no_limit(_more: int) -> None:
    """Of an archive that is not compressed: what is passed over costs nothing."""


def _limit(packed_bytes: int) -> tars.Count:
    """What raises ValueError when so large an archive was made to be unpacked, and not to be an image."""
    left = FREE_BYTES + RATIO * packed_bytes

    def count(more: int) -> None:
        nonlocal left
        left -= more
        if left < 0:
            raise ValueError(f"it is more than {RATIO} times as large when unpacked")

    return count


def _member(files: Mapping[str, bytes]) -> Read:
    return files.__getitem__


def _directory(path: Path) -> Read:
    def read(name: str) -> bytes:
        return files.read(path, name, SMALL_BYTES)

    return read


def _docker_configuration(files: Mapping[str, bytes], tag: str, source: str) -> bytes:
    """The configuration of one image of a `docker save`."""
    if "manifest.json" not in files:
        raise ValueError("it has no manifest.json, so it was not written by `docker save`")
    images = _json(files["manifest.json"])
    names = [name for image in images for name in image.get("RepoTags") or ()]
    chosen = [image for image in images if not tag or _full(tag) in map(_full, image.get("RepoTags") or ())]
    image = _only(chosen, tag, names, source)
    return files[image["Config"]]


def _full(name: str) -> str:
    """A name of an image with all that may be left out."""
    name = name.removeprefix("docker.io/").removeprefix("library/")
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _oci_configuration(read: Read, tag: str, source: str) -> bytes:
    """The configuration of one image of an OCI layout, its digests checked on the way."""
    entries = _json(read("index.json"))["manifests"]
    known = [(entry.get("annotations") or {}).get(REF_NAME, "") for entry in entries]
    chosen = [entry for entry, name in zip(entries, known, strict=True) if not tag or name == tag]
    here = [entry for entry in chosen if _fits(entry)]
    if chosen and not here:
        raise foreign(source, _platforms(chosen), platform.machine())
    manifest = _json(_blob(read, _only(here, tag, [name for name in known if name], source)["digest"]))
    return _blob(read, _chosen(manifest, lambda digest: _blob(read, digest), source)["config"]["digest"])


def _chosen(manifest: Any, fetch: Callable[[str], bytes], source: str) -> Any:
    """The manifest of the image for this machine: the given one, or of those that it lists."""
    for _ in range(3):
        if "manifests" not in manifest:
            if "config" not in manifest:
                raise ValueError("its manifest has a form that is no longer used, without a configuration")
            return manifest
        fitting = [entry for entry in manifest["manifests"] if _fits(entry) and entry.get("platform")]
        if not fitting:
            raise foreign(source, _platforms(manifest["manifests"]), platform.machine())
        manifest = _json(fetch(fitting[0]["digest"]))
    raise ValueError("its lists of images refer to other lists")


def _fits(entry: Any) -> bool:
    """Whether an entry of an index may be for this machine: many name no platform."""
    named = entry.get("platform") or {}
    here = MACHINES.get(platform.machine(), platform.machine())
    return not named or (named.get("os"), named.get("architecture")) == ("linux", here)


def _platforms(entries: Sequence[Any]) -> tuple[str, ...]:
    named = [entry.get("platform") or {} for entry in entries]
    texts = [f"{one.get('os')}/{one.get('architecture')}" for one in named]
    return tuple(dict.fromkeys(text for text in texts if text != "unknown/unknown"))


def _only(chosen: Sequence[Any], tag: str, names: Sequence[str], source: str) -> Any:
    if len(chosen) == 1:
        return chosen[0]
    has = listed([printable(name) for name in names]) if names else "images without names"
    if chosen or not tag:
        count = f"{len(chosen)} images" if chosen else "no image"
        raise UsageError(f"{source} contains {count}: {has}", remedy='name one of them: from = "...:NAME:TAG"')
    raise UsageError(f"{source}: there is no image {tag} in it, only {has}", remedy="name one of those")


def _blob(read: Read, digest: str) -> bytes:
    match = DIGEST.fullmatch(digest)
    if match is None:
        raise ValueError(f"{digest!r} is not a digest by sha256")
    content = read(f"blobs/sha256/{match[1]}")
    if hashlib.sha256(content).hexdigest() != match[1]:
        raise ValueError(f"the content of {digest} has another digest")
    return content


def _json(content: bytes) -> Any:
    return json.loads(content)


def _of_registry(source: str) -> Identity:
    """The image of a registry: what a tag means now becomes a digest."""
    raw = _inspect(source)
    pinned = source if is_pinned(source) else f"{_untagged(source)}@sha256:{hashlib.sha256(raw).hexdigest()}"
    if is_pinned(source) and f"@sha256:{hashlib.sha256(raw).hexdigest()}" not in source:
        raise UsageError(f"{source}: the registry's answer has another digest", remedy="is the registry trustworthy?")
    try:
        manifest = _chosen(_json(raw), lambda digest: _inspect(f"{_untagged(source)}@{digest}"), source)
        wanted = manifest["config"]["digest"]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{source}: its manifest is damaged: {printable(_why(error))}", remedy="push it again"
        ) from error
    content = _inspect(pinned, "--config")
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != wanted:
        raise UsageError(
            f"{source}: its configuration has another digest than its manifest says", remedy="push it again"
        )
    return Identity.of(pinned, pinned, content)


def _untagged(source: str) -> str:
    """A source of a registry without its tag or digest."""
    name = source.partition("@")[0]
    start, slash, last = name.rpartition("/")
    return f"{start}{slash}{last.partition(':')[0]}"


def _inspect(source: str, *flags: str) -> bytes:
    """A manifest, or a configuration, from a registry, as it is."""
    demand("skopeo")
    result = process.run(("skopeo", "inspect", "--raw", *flags, source), timeout_s=CONTACT_S)
    if result.timed_out or result.exit_code != 0:
        raise EnvironmentMissing(
            f"{source} cannot be fetched",
            detail=printable(said(result.stderr)) or "the registry did not answer in time",
            remedy="is the name right, is the registry reachable, and are you logged in (`skopeo login`)? "
            "`docker save` and docker-archive: work without a registry",
        )
    return result.stdout.encode()


def said(text: str) -> str:
    """What skopeo or umoci said last, without time and level."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = re.search(r'msg="((?:[^"\\]|\\.){1,2000})"', lines[-1]) if lines else None
    return found[1].replace('\\"', '"') if found else "\n".join(lines[-3:]).replace("⨯", "").strip()


def demand(*programs: str) -> None:
    """Raise EnvironmentMissing for programs that are not installed."""
    missing = [name for name in programs if not process.installed(name)]
    if missing:
        raise EnvironmentMissing(
            f"an own image needs {listed(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            remedy=f"as root: apt-get install {' '.join(missing)}",
        )
