"""A kernel as an EFI program, and the RAM disk in it: bytes that a person can count."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest

from vtax.errors import EnvironmentMissing
from vtax.model.cluster import Image
from vtax.providers.guest import firmware, initrd, uki
from vtax.providers.guest.initrd import Modules, archive, called


def stub(room: int = 0x400) -> bytes:
    """The smallest program that is one: a section .text of 16 bytes at 0x1000; headers of 0x400 bytes."""
    made = bytearray(0x400)
    made[:2] = b"MZ"
    struct.pack_into("<I", made, 0x3C, 0x80)
    made[0x80:0x84] = b"PE\0\0"
    struct.pack_into("<HH", made, 0x84, 0x8664, 1)  # machine, sections
    struct.pack_into("<H", made, 0x80 + 20, 0xF0)  # of the optional header
    struct.pack_into("<II", made, 0x80 + 24 + 32, 0x1000, 0x200)  # units in memory and in the file
    struct.pack_into("<II", made, 0x80 + 24 + 56, 0x2000, room)  # size in memory, of the headers
    uki.SECTION.pack_into(made, 0x80 + 24 + 0xF0, b".text", 16, 0x1000, 0x200, 0x400, 0, 0, 0, 0, 0x60000020)
    return bytes(made) + b"\x90" * 0x200


def sections(program: bytes) -> list[tuple[str, int, bytes]]:
    count = struct.unpack_from("<H", program, 0x86)[0]
    found = []
    for number in range(count):
        name, size, memory, _, place, *_ = uki.SECTION.unpack_from(program, 0x80 + 24 + 0xF0 + number * 40)
        found.append((name.rstrip(b"\0").decode(), memory, program[place : place + size]))
    return found


def test_sections_follow_each_other() -> None:
    made = uki.unified(stub(), [(".cmdline", b"quiet"), (".linux", b"k" * 0x1001)])
    assert sections(made)[1:] == [(".cmdline", 0x2000, b"quiet"), (".linux", 0x3000, b"k" * 0x1001)]
    assert struct.unpack_from("<I", made, 0x80 + 24 + 56)[0] == 0x5000, "of the whole, in memory"
    assert len(made) == 0x600 + 0x200 + 0x1200
    assert made[:0x80] == stub()[:0x80]
    assert made[0x400:0x600] == stub()[0x400:0x600]


@pytest.mark.parametrize("program", [b"", b"MZ", b"\x7fELF" + bytes(100), b"MZ" + bytes(200)])
def test_what_is_no_stub(program: bytes) -> None:
    with pytest.raises(EnvironmentMissing, match="not an EFI program"):
        uki.unified(program, [])


def test_a_stub_without_room() -> None:
    with pytest.raises(EnvironmentMissing, match="no room"):
        uki.unified(stub(room=0x1C0), [(".a", b""), (".b", b"")])


def test_what_the_stub_starts() -> None:
    parts = dict(firmware.sections(b"kernel", b"disk"))
    assert parts[".cmdline"] == (
        b"console=ttyS0 quiet oops=panic no_timer_check rw root=PARTLABEL=vtax-root rootfstype=ext4 "
        b"init=/usr/local/bin/vm-init"
    )
    assert (parts[".initrd"], list(parts)[-1]) == (b"disk", ".linux")
    assert ".initrd" not in dict(firmware.sections(b"kernel", None))


def test_the_table_of_partitions() -> None:
    """One MiB, the boot partition of 64, then the root: sectors of 512 bytes."""
    lines = firmware.TABLE.splitlines()
    assert lines[1].startswith("start=2048, size=131072, type=C12A7328-")
    assert lines[2].startswith("start=133120, type=4F68BCE3-")


KNOWN = Modules(
    "kernel/ata/ahci.ko.xz: kernel/ata/libahci.ko.xz kernel/scsi/scsi_mod.ko.xz\n"
    "kernel/ata/libahci.ko.xz: kernel/scsi/scsi_mod.ko.xz\nkernel/scsi/scsi_mod.ko.xz:\n"
    "kernel/scsi/sd_mod.ko.xz: kernel/scsi/scsi_mod.ko.xz\n",
    "kernel/nvme/nvme.ko\nkernel/fs/ext4/ext4.ko\n",
)


def test_modules_come_after_what_they_need() -> None:
    order = [called(path) for path in KNOWN.order(("ahci", "sd_mod", "ext4"))]
    assert order == ["scsi_mod", "libahci", "ahci", "sd_mod"]
    assert KNOWN.inside("nvme")
    assert not KNOWN.inside("ahci")
    assert KNOWN.has("ahci")
    assert not KNOWN.has("e1000")
    assert called("kernel/nvme/nvme-core.ko.xz") == "nvme_core"


def test_the_archive_is_cpio() -> None:
    made = archive([("dev", 0o040755, b""), ("init", 0o100755, b"hello")])
    assert made[:6] == b"070701"
    assert made.count(b"070701") == 3, "the last is the trailer"
    second = made.index(b"070701", 6)
    assert second % 4 == 0
    assert made[second + 54 : second + 62] == b"00000005", "the size"
    assert made[second + 110 : second + 115] == b"init\0"
    assert made[second + 116 : second + 121] == b"hello"
    assert b"TRAILER!!!\0" in made


def tree(root: Path) -> Image:
    """A root file system of five files."""
    modules = root / "usr/lib/modules/6.1"
    (modules / "kernel/ata").mkdir(parents=True)
    (modules / "kernel/ata/ahci.ko.xz").write_bytes(lzma.compress(b"driver"))
    (modules / "modules.dep").write_text("kernel/ata/ahci.ko.xz:\n")
    (modules / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\nkernel/scsi/sd_mod.ko\n")
    (root / "usr/local/bin").mkdir(parents=True)
    (root / "usr/local/bin/vtax-boot").write_bytes(b"program")
    return Image(recipe="k", digest="d", directory=str(root), archive="", kernel=str(root / "boot/vmlinuz-6.1"))


def test_a_ram_disk(tmp_path: Path) -> None:
    made = initrd.build(tree(tmp_path), initrd.SATA)
    assert made is not None
    for part in (b"program", b"driver", b"/00-ahci.ko\n"):
        assert part in made
    assert initrd.build(tree(tmp_path / "again"), ("ext4",)) is None, "nothing to load"
    with pytest.raises(EnvironmentMissing, match="has no nvme"):
        initrd.build(tree(tmp_path / "more"), initrd.NVME)
