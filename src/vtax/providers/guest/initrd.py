"""The initial RAM disk of kernels that need modules to mount their root file system: one small cpio archive.

It holds the modules that lead to the root file system, unpacked and in the order of their dependencies, and
`vtax-boot`, which loads them. Debian's small kernel has NVMe and ext4 inside, so that an NVMe disk needs none.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from vtax.errors import EnvironmentMissing
from vtax.model.cluster import Image

NVME = ("nvme", "ext4")
SATA = ("ahci", "sd_mod", "ext4")
BY_NAME = ("crc32c_generic",)  # the kernel's cryptography looks it up for ext4: no dependency says so
BOOT = "usr/local/bin/vtax-boot"
MAGIC = b"070701"
UNPACKED: Mapping[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress, ".ko": bytes}
FILE, DIRECTORY = 0o100000, 0o040000


@dataclass(frozen=True)
class Modules:
    """What `depmod` wrote about a kernel's modules."""

    dependencies: str  # modules.dep
    built_in: str  # modules.builtin

    @classmethod
    def read(cls, directory: Path) -> Modules:
        return cls((directory / "modules.dep").read_text(), (directory / "modules.builtin").read_text())

    def inside(self, name: str) -> bool:
        """Whether the kernel has it without loading anything."""
        return name in {called(path) for path in self.built_in.split()}

    def has(self, name: str) -> bool:
        """Whether the kernel has it at all."""
        return self.inside(name) or name in self._lines()

    def order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Files of these modules and of all that they depend on, each after what it depends on."""
        lines, ordered = self._lines(), dict[str, None]()

        def add(name: str) -> None:
            path, needs = lines[name]
            if path not in ordered:
                for other in needs:
                    add(called(other))
                ordered[path] = None

        for name in names:
            if name in lines:
                add(name)
        return tuple(ordered)

    def _lines(self) -> dict[str, tuple[str, list[str]]]:
        found = (line.partition(":") for line in self.dependencies.splitlines())
        return {called(path): (path, needs.split()) for path, _, needs in found}


def called(path: str) -> str:
    """A module's name by its file: "nvme_core" of kernel/drivers/nvme/host/nvme-core.ko.xz."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


def modules_of(image: Image) -> Modules:
    """The modules of the image's kernel."""
    return Modules.read(_directory(image))


def _directory(image: Image) -> Path:
    release = Path(image.kernel).name.removeprefix("vmlinuz-")
    return Path(image.directory) / "usr/lib/modules" / release


def build(image: Image, needed: Sequence[str]) -> bytes | None:
    """The RAM disk that leads to a root file system over modules `needed`; None when all are inside the kernel.
    Raises EnvironmentMissing when the kernel cannot reach its root file system at all."""
    known = modules_of(image)
    lost = [name for name in needed if not known.has(name)]
    if lost:
        raise EnvironmentMissing(
            f"the kernel of the root file system has no {', '.join(lost)}",
            remedy="let vtax choose the kernel package: `vtax image remove`, then `vtax image build`",
        )
    if all(known.inside(name) for name in needed):
        return None
    directory = _directory(image)
    paths = known.order((*BY_NAME, *needed))
    names = [f"{number:02d}-{called(path)}.ko" for number, path in enumerate(paths)]
    listed = "".join(f"/{name}\n" for name in names)
    return archive(
        [
            ("dev", DIRECTORY | 0o755, b""),
            ("init", FILE | 0o755, (Path(image.directory) / BOOT).read_bytes()),
            ("modules", FILE | 0o644, listed.encode()),
            *((name, FILE | 0o644, unpacked(directory / path)) for name, path in zip(names, paths, strict=True)),
        ]
    )


def unpacked(path: Path) -> bytes:
    """A module as the kernel loads it. Raises EnvironmentMissing for an unknown compression."""
    if path.suffix not in UNPACKED:
        raise EnvironmentMissing(f"{path} has an unknown compression", remedy="use suite trixie")
    return UNPACKED[path.suffix](path.read_bytes())


def archive(files: Sequence[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive ("newc", as Linux reads it) of name, mode and content; the same files give the same bytes."""
    entries = [entry(number, name, mode, content) for number, (name, mode, content) in enumerate(files, start=1)]
    return b"".join((*entries, entry(0, "TRAILER!!!", 0, b"")))


def entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    """One file: 13 numbers of eight hexadecimal digits, its name, its content, each padded to four bytes."""
    links = 2 if mode & DIRECTORY and not mode & FILE else 1
    fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = MAGIC + b"".join(b"%08X" % value for value in fields) + name.encode() + b"\0"
    return padded(head) + padded(content)


def padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
