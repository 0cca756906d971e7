"""KVM, really running machines of ours: inside a QEMU guest whose CPU offers AMD's virtualization.

Not part of the default run, because it takes long (`make test-kvm`): Debian with its usual kernel, QEMU and Python,
which runs `drive_kvm.py` with the project's own code.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from vtax.model.cluster import Image
from vtax.providers.guest import disk

from . import nested, sid

PACKAGES = (
    "linux-image-amd64,initramfs-tools,qemu-system-x86,qemu-utils,kmod,mount,udev,iproute2,procps,openssh-client,"
    "python3,python3-pydantic,e2fsprogs"
)
SIZE = 2**32  # of the machines' disks; drive_kvm.py wants the same


def test_kvm_runs_machines(cache: Path, image: Image, tmp_path: Path) -> None:
    """The test guest passes; two machines come up with huge pages, taps and vhost, are pinned, and are gone again."""
    root = sid.tree(cache, "kvm-trixie", PACKAGES, suite="trixie")
    place = nested.furnish(root, Path(__file__).with_name("drive_kvm.py"), "kvm_amd tun vhost_net bridge")
    whole, part = Path(image.directory), place / "image" / "rootfs"
    shutil.copytree(whole / "boot", part / "boot")
    for listed in (whole / "usr/lib/modules").glob("*/modules.*"):  # which ones are inside the kernel
        copy = part / listed.relative_to(whole)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(listed, copy)
    made = disk.system(image, SIZE)
    subprocess.run(("cp", "--sparse=always", str(made), str(part.parent)), check=True)
    said = nested.run(root, tmp_path, "4096")
    assert "\nDRIVEN 0\n" in said, said[-5000:]
    for word in ("PROBED", "AVAILABLE with KVM", "READY", "PINNED master", "PINNED worker1", "ANSWERED", "GONE"):
        assert any(line.startswith(word) for line in said.splitlines()), word
