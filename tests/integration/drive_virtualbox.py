"""Runs where VirtualBox's driver is loaded: one machine from definition to end, by the provider's own functions.

`virtualbox_in_qemu.py` starts it, in a guest, with as much of a root file system as makes a disk to start from.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, NodeShape, Role
from vtax.providers.base import Site
from vtax.providers.virtualbox import listing, manage
from vtax.providers.virtualbox import provider as module
from vtax.providers.virtualbox.command import Machine, VirtualBoxOptions

PLACE = Path(__file__).parent
FIRMWARE_S = 60.0  # after which it must still run
OPTIONS = VirtualBoxOptions(engine="interpreter", allow_emulation=True)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def drive() -> None:
    tree = PLACE / "image" / "rootfs"
    kernel = next((tree / "boot").glob("vmlinuz-*"))
    image = Image(recipe="k", digest="0123456789abcdef", directory=str(tree), archive="", kernel=str(kernel))
    site = Site("c1", PLACE / "run/c1/c", image, PLACE / "run/c1/keys")
    site.directory.mkdir(parents=True, mode=0o700)
    node = NodeShape(name="master", role=Role.MASTER, cpus=2, cpu_ids=(0, 1), memory_bytes=2**29, disk_bytes=2**30)
    shape = ClusterShape(nodes=(node,))
    supplier = module.VirtualBox(PLACE / "run")
    assert supplier.unavailable() == ""
    say("AVAILABLE", supplier.status_note())
    machines = module._machines(site, shape, OPTIONS, "2201")
    supplier.define(machines, shape, "/shared", site, OPTIONS)
    try:
        live(machines[0])
    finally:
        supplier.destroy("c1")
    assert manage.about(machines[0].name) == {}
    assert supplier.leftovers() == []
    say("GONE", machines[0].name)


def live(machine: Machine) -> None:
    began = time.monotonic()
    manage.start(machine.name)
    say("STARTED", f"in {time.monotonic() - began:.1f} s")
    about = manage.about(machine.name)
    assert listing.runs(about)
    say("RUNNING", about["VMState"])
    say("PINNED", module._pinned(machine, OPTIONS)[0])
    orders = Path(listing.serial_socket(about))
    assert orders.is_socket()
    say("ORDERS", orders)
    time.sleep(FIRMWARE_S)
    assert module._Watch(machine.name)() == ""
    log = (Path(about["LogFldr"]) / "VBox.log").read_text(errors="replace")
    for line in [line for line in log.splitlines() if "efi" in line.lower() or "HMR3Init" in line][:12]:
        say("LOG", line)


if __name__ == "__main__":
    drive()
