"""Whether a cached root file system is as it was built, without reading its files.

Nothing that runs in the tree may write to it (providers/host/entering.py, vtax-enter.c). This is for what may: other
programs of its owner. The kernel notes when a file was last changed in any way, and no program sets that time, so a
list of names, kinds, modes, owners, sizes and these times has another hash after a change of a single byte, made in a
fifth of a second.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from vtax.errors import ImageError
from vtax.model.cluster import Image
from vtax.transport import process

FILE = "tree.sha256"  # next to the tree
LIST_S = 300.0
ABOUT = r"%y %#m %U %G %s %T@ %C@ %l"  # kind, mode, owner, group, size, time of content, time of anything, target
ENTRY = rf"%p\t{ABOUT}\0"
DIRECTORY = "d"


def note(place: Path) -> None:
    """Write down what is in a new image's directory: its tree, and the archive."""
    (place / FILE).write_text(found(place))


def verify(image: Image) -> None:
    """Check that an image is as it was built. Raises ImageError."""
    place = Path(image.directory).parent
    remedy = f"`vtax image remove {image.recipe}`, then `vtax image build`"
    noted = place / FILE
    if not noted.exists():
        raise ImageError(
            f"it is not known what {image.directory} contained when it was built",
            detail=f"there is no {noted}: an earlier version of vtax built it",
            remedy=remedy,
        )
    if found(place) != noted.read_text():
        raise ImageError(
            f"{image.directory} has been changed since it was built",
            detail="something other than vtax added, removed or wrote to a file; copying a cache has the same effect",
            remedy=remedy,
        )


def found(place: Path) -> str:
    """The hash of what is there now. Raises CommandError."""
    command = (*process.as_root_here(), "find", "rootfs", "rootfs.tar", "-printf", ENTRY)
    return digest(process.run(command, timeout_s=LIST_S, directory=place, check=True).stdout)


def digest(listing: str) -> str:
    """The hash of a list, whatever its order. Directories count only by mode and owner, and only those in which there
    is a file: clusters add empty ones, to mount something there."""
    files: list[str] = []
    directories: dict[str, str] = {}
    for entry in listing.split("\0")[:-1]:
        name, _, about = entry.rpartition("\t")
        if about.startswith(DIRECTORY):
            directories[name] = " ".join(about.split(" ")[:4])
        else:
            files.append(entry)
    above = {str(parent) for entry in files for parent in Path(entry.rpartition("\t")[0]).parents}
    files += [f"{name}\t{about}" for name, about in directories.items() if name in above]
    return hashlib.sha256("\0".join(sorted(files)).encode()).hexdigest()
