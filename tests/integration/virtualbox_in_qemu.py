"""VirtualBox with its driver, really starting a machine: inside a QEMU guest whose CPU offers virtualization.

Not part of the default run, because it takes long (`make test-virtualbox`): Debian sid with VirtualBox, the kernel that
its driver is compiled for, and Python, which runs `drive_virtualbox.py` with the project's own code. VirtualBox's
interpreter runs the machine, because nested virtualization in software emulation gets no further than its reset.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from vtax.model.cluster import Image

from . import sid

PACKAGES = (
    "virtualbox,linux-image-cloud-amd64,linux-headers-cloud-amd64,initramfs-tools,kmod,mount,udev,iproute2,openssh-client,"
    "python3,python3-pydantic,dosfstools,mtools,fdisk,e2fsprogs"
)
LIMIT_S = 1800
PLACE = "srv/vtax"
INIT = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LOGNAME=root LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
for place in /dev/shm /tmp /run; do mount -t tmpfs tmpfs $place; done
ip link set lo up
modprobe vboxdrv
cd /srv/vtax
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/srv/vtax/src python3 drive_virtualbox.py
echo "DRIVEN $?"
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


def test_virtualbox_starts_a_machine(cache: Path, image: Image, tmp_path: Path) -> None:
    """It runs, its threads are pinned, it takes orders, it is powered off, and nothing of it is left."""
    root = sid.tree(cache, "virtualbox-kernel", PACKAGES)
    furnish(root / PLACE, image)
    disk, log = tmp_path / "disk", tmp_path / "console.log"
    subprocess.run(("mke2fs", "-q", "-t", "ext4", "-d", str(root), str(disk), "6G"), check=True)
    kernel = sorted((root / "boot").glob("vmlinuz-*"))[-1]
    ram_disk = kernel.with_name(kernel.name.replace("vmlinuz", "initrd.img"))
    words = f"console=ttyS0 quiet root=/dev/vda rw init=/{PLACE}/init panic=-1 mitigations=off"
    guest = subprocess.Popen(
        (
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,+svm,-cx16", "-smp", "2", "-m", "3072"),
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", f"file:{log}"),
            *("-kernel", str(kernel), "-initrd", str(ram_disk), "-append", words),
            *("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe", "-nic", "none"),
        )
    )
    try:
        guest.wait(LIMIT_S)
    finally:
        guest.kill()
        guest.wait()
    said = log.read_text(errors="replace").replace("\r", "")
    assert "\nDRIVEN 0\n" in said, said[-5000:]
    for word in ("STARTED", "RUNNING", "PINNED", "ORDERS", "GONE"):
        assert f"\n{word} " in said
    assert "PINNED master: virtual CPU 0 on CPU 0, 1 on CPU 1" in said


def furnish(place: Path, image: Image) -> None:
    """This project, and as much of the root file system as makes a disk that firmware starts from."""
    shutil.rmtree(place, ignore_errors=True)
    here = Path(__file__).parent
    shutil.copytree(here.parent.parent / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(here / "drive_virtualbox.py", place)
    (place / "init").write_text(INIT)
    (place / "init").chmod(0o755)
    whole, part = Path(image.directory), place / "image" / "rootfs"
    for name in ("boot", "usr/lib/modules"):
        shutil.copytree(whole / name, part / name)
    (part / "usr/local/bin").mkdir(parents=True)
    shutil.copy(whole / "usr/local/bin/vtax-boot", part / "usr/local/bin")
