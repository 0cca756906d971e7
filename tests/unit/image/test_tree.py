"""What is in an unpacked image: links resolved inside, the C library recognised, links out of it refused."""

from __future__ import annotations

import pytest

from vtax.errors import UsageError
from vtax.image.workload.tree import (
    Entry,
    Tree,
    directory_for,
    elf_machine,
    libc_of,
    parse_listing,
    refuse_links_out,
    resolve,
    size_of,
)


def tree(**links: str) -> dict[str, Entry]:
    """Directories and files of an image; links by name with _ for /."""
    found = {name: Entry("d", 4096, number, "") for number, name in enumerate(("usr", "usr/lib", "etc", "data"))}
    found["etc/passwd"] = Entry("f", 100, 50, "")
    found["etc/copy"] = Entry("f", 100, 50, "")
    found["etc/hosts"] = Entry("f", 7, 51, "")
    return found | {name.replace("_", "/"): Entry("l", 1, 99, target) for name, target in links.items()}


def test_a_listing_of_find() -> None:
    text = "d\0004096\0001\0etc\0\0f\0007\0002\0etc/a\nb\0\0l\0003\0003\0x\0../y\0"
    assert parse_listing(text) == {
        "etc": Entry("d", 4096, 1, ""),
        "etc/a\nb": Entry("f", 7, 2, ""),
        "x": Entry("l", 3, 3, "../y"),
    }


def test_a_file_with_two_names_counts_once() -> None:
    assert size_of(tree()) == 107


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("lib/x", None),
        ("lib", "usr/lib"),
        ("/lib/../../etc/passwd", "etc/passwd"),
        ("a", "etc/passwd"),
        ("up", "etc/passwd"),
        ("circle", None),
        ("etc/nothing", None),
        ("/", ""),
    ],
)
def test_links_are_resolved_inside(path: str, leads: str | None) -> None:
    there = tree(lib="usr/lib", a="/etc/passwd", up="../../../etc/passwd", circle="circle")
    assert resolve(there, path) == leads


@pytest.mark.parametrize(
    ("path", "place"),
    [("/data", "data"), ("/data/a/b", "data/a/b"), ("/lib/x", "usr/lib/x"), ("/", ""), ("/etc/passwd/x", None)],
)
def test_where_a_working_directory_is_made(path: str, place: str | None) -> None:
    assert directory_for(tree(lib="usr/lib", gone="/nowhere"), path) == place
    assert directory_for(tree(gone="/nowhere"), "/gone/x") is None


@pytest.mark.parametrize(
    ("links", "reason"),
    [
        ({"x": "../etc"}, "a symbolic link out of the image: 'x' to '../etc'"),
        ({"usr_x": "../../root"}, "a symbolic link out of the image: 'usr/x' to '../../root'"),
        ({"proc": "/etc"}, "/proc is not a directory in the image"),
        ({"shared": "data"}, "/shared is not a directory in the image"),
        ({"etc_hosts": "/etc/shadow"}, "/etc/hosts is not a file in the image"),
        ({"etc": "data"}, "/etc is not a directory in the image"),
    ],
)
def test_links_that_lead_out_or_to_what_nodes_mount(links: dict[str, str], reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_links_out(tree(**links), "app")
    assert reason in raised.value.message


def test_usual_links_are_not_refused() -> None:
    refuse_links_out(tree(lib="usr/lib", usr_x="../etc/passwd", etc_y="/etc/../etc/z", a="./b"), "app")


def elf(machine: int, content: bytes = b"") -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0" + machine.to_bytes(2, "little") + content


GLIBC = b"\0GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\nCopyright"
MUSL = b"\0musl libc (x86_64)\0\0" + b"\x001.2.5\0Version %s\n"


def libraries(files: dict[str, bytes], links: dict[str, str] | None = None, architecture: str = "amd64") -> str:
    there: Tree = {
        **{path: Entry("f", len(content), number, "") for number, (path, content) in enumerate(files.items())},
        **{path: Entry("l", 1, 99, target) for path, target in (links or {}).items()},
    }
    above = {path.rsplit("/", count)[0] for path in there for count in range(1, path.count("/") + 1)}
    there = {**{path: Entry("d", 4096, 0, "") for path in above}, **there}
    return libc_of(there, files.__getitem__, architecture, "app")


def test_c_libraries_are_recognised() -> None:
    place, musl = "usr/lib/x86_64-linux-gnu/libc.so.6", "lib/ld-musl-x86_64.so.1"
    assert libraries({place: elf(62, GLIBC)}) == "glibc 2.36"
    assert libraries({musl: elf(62, MUSL)}) == "musl 1.2.5"
    assert libraries({place: elf(62, GLIBC), musl: elf(62, MUSL)}) == "glibc 2.36, musl 1.2.5"
    assert libraries({place: elf(62)}) == "glibc"  # of a version that is not where it usually is
    assert libraries({"app": elf(62)}) == "none"
    assert libraries({"lib/libc-2.28.so": elf(62, GLIBC)}, {"lib/libc.so.6": "libc-2.28.so"}) == "glibc 2.36"
    assert libraries({place: elf(62, GLIBC), "lib32/libc.so.6": elf(3, GLIBC)}) == "glibc 2.36"
    assert libraries({}, {"lib/libc.so.6": "../../../etc/passwd"}) == "none"


def test_an_image_that_claims_another_processor_than_its_library_has() -> None:
    with pytest.raises(UsageError, match="says that it is for amd64, but its C library is for arm64"):
        libraries({"lib/libc.so.6": elf(183, GLIBC)})


@pytest.mark.parametrize(
    ("content", "machine"), [(b"", ""), (b"#!/bin/sh\n", ""), (elf(62), "amd64"), (elf(9), "processor 9")]
)
def test_the_processor_of_a_program(content: bytes, machine: str) -> None:
    assert elf_machine(content) == machine
    assert elf_machine(b"\x7fELF\x02\x02\x01" + bytes(9) + b"\0\x03\0\x16") == "s390x"  # big-endian
