"""The initial RAM disk: which modules, in which order, and the archive that the kernel reads, byte by byte."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from vtax.errors import EnvironmentMissing
from vtax.model.cluster import Image
from vtax.providers.guest import initrd
from vtax.providers.guest.initrd import NVME, Modules

NEEDS = """\
kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz
kernel/fs/jbd2/jbd2.ko.xz:
kernel/lib/crc16.ko.xz:
kernel/drivers/nvme/host/nvme.ko.xz: kernel/drivers/nvme/host/nvme-core.ko.xz kernel/lib/crc16.ko.xz
kernel/drivers/nvme/host/nvme-core.ko.xz: kernel/lib/crc16.ko.xz
kernel/drivers/net/e1000.ko.xz:
"""
RELEASE = "6.12-amd64"


@pytest.mark.parametrize(
    ("path", "name"),
    [("kernel/a/nvme-core.ko.xz", "nvme_core"), ("kernel/a/ext4.ko", "ext4"), ("kernel/a/x.ko.gz", "x")],
)
def test_what_a_module_is_called(path: str, name: str) -> None:
    assert initrd.called(path) == name


def test_every_module_comes_after_what_it_needs_and_once() -> None:
    ordered = [initrd.called(path) for path in Modules(NEEDS, "").order(("nvme", "ext4", "unknown"))]
    assert ordered == ["crc16", "nvme_core", "nvme", "jbd2", "ext4"]


def test_what_is_inside_the_kernel_needs_no_file() -> None:
    known = Modules(NEEDS, "kernel/crypto/crc32c_generic.ko\n")
    assert known.inside("crc32c_generic")
    assert known.has("crc32c_generic")
    assert known.has("e1000")
    assert not known.inside("e1000")
    assert not known.has("ahci")


def test_one_file_in_the_archive() -> None:
    """The fields of "newc": inode, mode, owner, group, links, time, size, four device numbers, length of the name."""
    made = initrd.entry(2, "init", 0o100755, b"hello")
    fields = [made[6 + 8 * place : 14 + 8 * place] for place in range(13)]
    assert made[:6] == b"070701"
    assert [int(field, 16) for field in fields] == [2, 0o100755, 0, 0, 1, 0, 5, 0, 0, 0, 0, 5, 0]
    assert made[110:115] == b"init\0"
    assert made[115:116] == b"\0", "110 bytes and the name are padded to four"
    assert made[116:] == b"hello\0\0\0"


def test_the_archive_ends_as_the_kernel_expects() -> None:
    made = initrd.archive([("dev", 0o040755, b"")])
    assert made.count(b"070701") == 2
    assert made.rstrip(b"\0").endswith(b"TRAILER!!!")
    assert len(made) % 4 == 0
    assert made == initrd.archive([("dev", 0o040755, b"")])


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """A root file system with a kernel whose drivers are modules."""
    modules = tmp_path / "rootfs" / "usr/lib/modules" / RELEASE
    for line in NEEDS.splitlines():
        path = modules / line.partition(":")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(f"code of {path.name}".encode()))
    (modules / "modules.dep").write_text(NEEDS)
    (modules / "modules.builtin").write_text("")
    boot = tmp_path / "rootfs" / initrd.BOOT
    boot.parent.mkdir(parents=True)
    boot.write_bytes(b"the first program")
    kernel = str(tmp_path / "rootfs" / "boot" / f"vmlinuz-{RELEASE}")
    return Image(recipe="r", digest="d", directory=str(tmp_path / "rootfs"), archive="", kernel=kernel)


def test_the_ram_disk_of_a_kernel_with_modules(image: Image) -> None:
    made = initrd.build(image, NVME)
    assert made is not None
    assert b"the first program" in made
    assert b"/00-crc16.ko\n/01-nvme_core.ko\n/02-nvme.ko\n/03-jbd2.ko\n/04-ext4.ko\n" in made
    assert b"code of nvme-core.ko.xz" in made, "unpacked"
    assert b"e1000" not in made


def test_a_kernel_that_has_all_inside_gets_none(image: Image) -> None:
    builtin = Path(image.directory) / "usr/lib/modules" / RELEASE / "modules.builtin"
    builtin.write_text("kernel/drivers/nvme/host/nvme.ko\nkernel/fs/ext4/ext4.ko\n")
    assert initrd.build(image, NVME) is None


def test_a_kernel_that_cannot_reach_its_disk(image: Image) -> None:
    with pytest.raises(EnvironmentMissing, match="has no ahci, sd_mod"):
        initrd.build(image, initrd.SATA)


def test_a_packing_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="unknown compression"):
        initrd.unpacked(tmp_path / "a.ko.zst")
