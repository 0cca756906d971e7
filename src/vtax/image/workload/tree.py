"""An unpacked image: what is in it, found by looking. Links are resolved inside the tree, as in a chroot."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import UsageError
from vtax.image.workload.layers import climbs
from vtax.transport import process
from vtax.wording import listed, printable

MOUNT_POINTS = ("dev", "proc", "scratch", "shared", "sys")  # of every node, in every image
MOUNTED = {  # what they have to be, where an image has them: as `find` names it, and in words
    **dict.fromkeys((*MOUNT_POINTS, "etc"), ("d", "a directory")),
    "etc/hosts": ("f", "a file"),
}
LIST_S = 300.0
LINKS = 40  # in one path, as in Linux
GLIBC = re.compile(r"(?:usr/)?lib(?:32|64|x32)?/(?:[^/]{1,60}/)?libc\.so\.6")
MUSL = re.compile(r"(?:usr/)?lib/ld-musl-[a-z0-9_]{1,20}\.so\.1")
GLIBC_VERSION = re.compile(rb"GNU C Library [^\n\0]{0,200}release version (\d{1,3}\.\d{1,4})")
MUSL_VERSION = re.compile(rb"\0(\d{1,2}\.\d{1,3}\.\d{1,3})(?:-[0-9a-z.-]{1,40})?\0")
LIBRARY_BYTES = 32 * 2**20
ELF_MACHINES = {3: "386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64"}


@dataclass(frozen=True)
class Entry:
    """A file of an image: its kind as `find` names it (f, d, l, ...), its size, its inode, what it links to."""

    kind: str
    size: int
    inode: int
    link: str


Tree = Mapping[str, Entry]  # path below the root -> what is there
Read = Callable[[str], bytes]  # the content of a file of the tree


def list_tree(root: Path) -> Tree:
    """Everything in an unpacked image. Files of subordinate ids are listed too."""
    argv = ("find", str(root), "-mindepth", "1", "-printf", r"%y\0%s\0%i\0%P\0%l\0")
    listing = process.run((*process.as_root_here(), *argv), timeout_s=LIST_S, check=True).stdout
    return parse_listing(listing)


def parse_listing(text: str) -> dict[str, Entry]:
    words = text.split("\0")[:-1]
    return {
        words[i + 3]: Entry(words[i], int(words[i + 1]), int(words[i + 2]), words[i + 4])
        for i in range(0, len(words), 5)
    }


def size_of(tree: Tree) -> int:
    """The bytes of all files, several names of one file counted once."""
    return sum({entry.inode: entry.size for entry in tree.values() if entry.kind == "f"}.values())


def refuse_links_out(tree: Tree, source: str) -> None:
    """Raise UsageError for symbolic links that lead above the image's root, and for links or files where nodes mount
    something."""
    for path, entry in tree.items():
        if entry.kind == "l" and climbs(entry.link, path.rpartition("/")[0]):
            raise UsageError(
                f"{source} has a symbolic link out of the image: {printable(path)!r} to {printable(entry.link)!r}",
                remedy="use an image that you trust, or make it again",
            )
    for name, (kind, what) in MOUNTED.items():
        if name in tree and tree[name].kind != kind:
            raise UsageError(
                f"{source}: /{name} is not {what} in the image, and every node mounts something there",
                remedy=f"make it {what}, or leave it out of the image",
            )


def resolve(tree: Tree, path: str) -> str | None:
    """Where a path leads inside the image, links followed; None where there is nothing, or links go in circles."""
    rest = [part for part in path.split("/") if part][::-1]
    here: list[str] = []
    followed = 0
    while rest:
        part = rest.pop()
        if part in (".", ".."):
            here = here[:-1] if part == ".." else here
            continue
        entry = tree.get("/".join((*here, part)))
        if entry is None:
            return None
        if entry.kind != "l":
            here.append(part)
            continue
        followed += 1
        if followed > LINKS:
            return None
        here = [] if entry.link.startswith("/") else here
        rest += [part for part in entry.link.split("/") if part][::-1]
    return "/".join(here)


def directory_for(tree: Tree, path: str) -> str | None:
    """Where a directory of that path is, or has to be made, inside the image; None where something else is there."""
    here = ""
    for part in path.strip("/").split("/"):
        below = f"{here}/{part}".strip("/")
        if below in tree:
            found = resolve(tree, below)
            if found is None or (found and tree[found].kind != "d"):
                return None
            below = found
        here = below
    return here


def libc_of(tree: Tree, read: Read, architecture: str, source: str) -> str:
    """The C libraries of an image with their versions, "none" where it has none: static programs need none.

    Raises UsageError for libraries of another kind of processor than the image claims.
    """
    found = [
        *_versions(tree, read, architecture, source, "glibc", GLIBC, GLIBC_VERSION),
        *_versions(tree, read, architecture, source, "musl", MUSL, MUSL_VERSION),
    ]
    return ", ".join(dict.fromkeys(found)) or "none"


def _versions(
    tree: Tree,
    read: Read,
    architecture: str,
    source: str,
    name: str,
    place: re.Pattern[str],
    version: re.Pattern[bytes],
) -> list[str]:
    paths = [path for path in tree if place.fullmatch(path)]
    files = {target for path in paths if (target := resolve(tree, path)) and tree[target].size <= LIBRARY_BYTES}
    found, machines = [], set()
    for path in sorted(files):
        content = read(path)
        machine = elf_machine(content)
        machines.add(machine)
        if machine == architecture:
            match = version.search(content)
            found.append(f"{name} {match[1].decode()}" if match else name)
    if machines and not found:
        has = listed(sorted(machine or "no processor" for machine in machines))
        raise UsageError(
            f"{source} says that it is for {architecture}, but its C library is for {has}",
            remedy="build the image for this machine, or correct its configuration",
        )
    return found


def elf_machine(content: bytes) -> str:
    """The kind of processor that a program or library is for, as images name it; "" for what is neither."""
    if content[:4] != b"\x7fELF" or len(content) < 20:
        return ""
    number = int.from_bytes(content[18:20], "little" if content[5] == 1 else "big")
    return ELF_MACHINES.get(number, f"processor {number}")
