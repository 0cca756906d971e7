"""A machine in software emulation whose CPU offers virtualization: in it the project runs machines of its own.

Not part of the default run, because everything in it takes long.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PLACE = "srv/vtax"  # of this project in the machine
DISK = "8G"
LIMIT_S = 1800
INIT = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LOGNAME=root LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
for place in /dev/shm /tmp /run; do mount -t tmpfs tmpfs $place; done
ip link set lo up
for module in {modules}; do modprobe $module; done
cd /{place}
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/{place}/src python3 {script}
echo "DRIVEN $?"
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


def furnish(root: Path, script: Path, modules: str) -> Path:
    """This project in a tree of Debian, and what starts `script` of it with these modules of the kernel loaded. Returns
    where it is."""
    place = root / PLACE
    shutil.rmtree(place, ignore_errors=True)
    here = Path(__file__).parent
    shutil.copytree(here.parent.parent / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(script, place)
    (place / "init").write_text(INIT.format(modules=modules, place=PLACE, script=script.name))
    (place / "init").chmod(0o755)
    return place


def run(root: Path, where: Path, memory: str) -> str:
    """Start a machine from a tree that was furnished, with files in `where`; what its console says until it ends."""
    disk, log = where / "disk", where / "console.log"
    subprocess.run(("mke2fs", "-q", "-t", "ext4", "-d", str(root), str(disk), DISK), check=True)
    kernel = sorted((root / "boot").glob("vmlinuz-*"))[-1]
    ram_disk = kernel.with_name(kernel.name.replace("vmlinuz", "initrd.img"))
    words = f"console=ttyS0 quiet root=/dev/vda rw init=/{PLACE}/init panic=-1 mitigations=off"
    guest = subprocess.Popen(
        (
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,+svm,-cx16", "-smp", "2", "-m", memory),
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
        disk.unlink()
    return log.read_text(errors="replace").replace("\r", "")
