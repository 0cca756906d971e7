"""VirtualBox with its driver, really starting a machine: inside a QEMU guest whose CPU offers virtualization.

Not part of the default run, because it takes long (`make test-virtualbox`): Debian sid with VirtualBox, the kernel that
its driver is compiled for, and Python, which runs `drive_virtualbox.py` with the project's own code. VirtualBox's
interpreter runs the machine, because nested virtualization in software emulation gets no further than its reset.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from vtax.model.cluster import Image

from . import nested, sid

PACKAGES = (
    "virtualbox,linux-image-cloud-amd64,linux-headers-cloud-amd64,initramfs-tools,kmod,mount,udev,iproute2,openssh-client,"
    "python3,python3-pydantic,dosfstools,mtools,fdisk,e2fsprogs"
)


def test_virtualbox_starts_a_machine(cache: Path, image: Image, tmp_path: Path) -> None:
    """It runs, its threads are pinned, it takes orders, it is powered off, and nothing of it is left."""
    root = sid.tree(cache, "virtualbox-kernel", PACKAGES)
    place = nested.furnish(root, Path(__file__).with_name("drive_virtualbox.py"), "vboxdrv")
    whole, part = Path(image.directory), place / "image" / "rootfs"
    for name in ("boot", "usr/lib/modules"):
        shutil.copytree(whole / name, part / name)
    (part / "usr/local/bin").mkdir(parents=True)
    shutil.copy(whole / "usr/local/bin/vtax-boot", part / "usr/local/bin")
    said = nested.run(root, tmp_path, "3072")
    assert "\nDRIVEN 0\n" in said, said[-5000:]
    for word in ("STARTED", "RUNNING", "PINNED", "ORDERS", "GONE"):
        assert f"\n{word} " in said
    assert "PINNED master: virtual CPU 0 on CPU 0, 1 on CPU 1" in said
