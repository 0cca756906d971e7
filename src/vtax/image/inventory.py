"""What is in a root file system, read from its unpacked tree: packages, licences, vtax's own programs, their source."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from vtax.errors import ImageError

STATUS = "var/lib/dpkg/status"
PROGRAMS = "usr/local/bin"  # Debian leaves it to others
LISTING = "usr/local/lib/vtax/packages"  # what the build writes last
SOURCES = "usr/local/lib/vtax/sources"  # of each file that programs were compiled from: sha256, name, the programs
SOURCE = re.compile(r"^([0-9a-f]{64})  ([A-Za-z0-9][\w.+~-]{0,100})  ([\w -]{1,200})$", re.MULTILINE)
FIELD = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}:")
MOST_BYTES = 2**24  # of a file of copyrights
SHORT_NAME = re.compile(r"[!-~][ -~]{0,99}")


@dataclass(frozen=True)
class Package:
    """An installed Debian package; `licences` are short names in its copyright file, if that is machine-readable."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    maintainer: str
    licences: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A file with its sha256; `source` is what it was compiled from, "" for vtax's own."""

    name: str
    sha256: str
    source: str = ""


@dataclass(frozen=True)
class Inventory:
    distribution: str  # ID of /etc/os-release
    codename: str
    written: datetime  # when the build listed its packages; with a snapshot that is the snapshot's moment
    packages: tuple[Package, ...]
    programs: tuple[File, ...]
    sources: tuple[File, ...]


def inventory(tree: Path) -> Inventory:
    """What is in the tree. Raises ImageError when it lacks what every root file system of vtax has."""
    try:
        release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', (tree / "etc/os-release").read_text(), re.MULTILINE))
        return Inventory(
            distribution=release["ID"],
            codename=release["VERSION_CODENAME"],
            written=datetime.fromtimestamp(int((tree / LISTING).stat().st_mtime), UTC),
            packages=_packages(tree),
            programs=_programs(tree),
            sources=tuple(File(name, sha256) for sha256, name, _ in _sources(tree)),
        )
    except (OSError, KeyError) as error:
        raise ImageError(
            f"{tree} is not a root file system that this version of vtax built",
            detail=f"it lacks {error}",
            remedy="remove it with `vtax image remove`, then build it again with `vtax image build`",
        ) from error


def _packages(tree: Path) -> tuple[Package, ...]:
    found = []
    for fields in paragraphs((tree / STATUS).read_text(encoding="utf-8", errors="replace")):
        if fields.get("Status", "").split()[-1:] != ["installed"]:
            continue
        name, version = fields["Package"], fields["Version"]
        source = re.fullmatch(r"(\S+)(?: \((\S+)\))?", fields.get("Source", name))
        found.append(
            Package(
                name=name,
                version=version,
                architecture=fields["Architecture"],
                source=source[1] if source else name,
                source_version=(source[2] if source else "") or version,
                maintainer=fields.get("Maintainer", "").partition("<")[0].strip(),
                licences=_licences(tree, name),
            )
        )
    if not found:
        raise KeyError(f"a package in {STATUS}")
    return tuple(sorted(found, key=lambda one: (one.name, one.architecture)))


def _licences(tree: Path, package: str) -> tuple[str, ...]:
    """Short names of the licences of a package's files; none where its file is prose, or is a link to nowhere."""
    path = (tree / "usr/share/doc" / package / "copyright").resolve()
    if not path.is_relative_to(tree.resolve()) or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return ()
    parts = list(paragraphs(path.read_text(encoding="utf-8", errors="replace")))
    if not parts or "copyright-format" not in parts[0].get("Format", ""):
        return ()
    names = {" ".join(part.get("License", "").split()) for part in parts if "Files" in part or "Format" in part}
    return tuple(sorted(name for name in names if SHORT_NAME.fullmatch(name)))


def paragraphs(text: str) -> Iterator[Mapping[str, str]]:
    """The paragraphs of a Debian control file: each field's first line."""
    for block in re.split(r"\n[ \t]*\n", text):
        fields = dict(line.partition(":")[::2] for line in block.splitlines() if FIELD.match(line))
        if fields:
            yield {name: value.strip() for name, value in fields.items()}


def _programs(tree: Path) -> tuple[File, ...]:
    compiled = {program: name for _, name, programs in _sources(tree) for program in programs.split()}
    found = []
    for path in sorted((tree / PROGRAMS).iterdir()):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            found.append(File(path.name, digest, compiled.get(path.name, "")))
    return tuple(found)


def _sources(tree: Path) -> list[tuple[str, str, str]]:
    found = SOURCE.findall((tree / SOURCES).read_text())
    if not found:
        raise KeyError(f"a source in {SOURCES}")
    return found
