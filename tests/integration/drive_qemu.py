"""Run by test_qemu.py as an ordinary user: one machine without a cluster, started, hung, and ended.

python drive_qemu.py DIRECTORY LABEL KERNEL
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from fakes.cluster import node_shape
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape
from vtax.providers.base import Site
from vtax.providers.qemu import command, machines, qmp, user
from vtax.providers.qemu.command import QemuOptions
from vtax.providers.qemu.processes import processes
from vtax.providers.qemu.provider import Qemu
from vtax.providers.qemu.start import start_machine
from vtax.transport import process


def main(top: Path, label: str, kernel: str) -> None:
    assert os.geteuid() != 0
    tree = top / "image" / "rootfs"
    tree.mkdir(parents=True)
    image = Image(recipe="", digest="", directory=str(tree), archive="", kernel=kernel)
    site = Site(label, top / label / "vm", image, top / label / "keys")
    options, shape = QemuOptions(disk="virtio-blk"), ClusterShape(nodes=(node_shape("worker1", (0,)),))
    (machine,) = machines.machines_of(site, shape, options, "tcg", None)
    machine.directory.mkdir(parents=True, mode=0o700)
    (machine.directory / "seed.tar").write_bytes(b"seed")
    (machine.directory / "seed.tar").chmod(0o600)
    between, started = machines.parts(site, (machine,), options, "tcg", command.OLDEST)
    process.run(between[0], timeout_s=20, check=True)
    for name, base in machine.bases.items():
        base.touch(mode=0o600)
        os.truncate(base, machine.node.disk_bytes)
        process.run(command.clone(base, machine.directory / name, options), timeout_s=20, check=True)
    running = start_machine(started[0], machine.directory, 60)
    status = qmp.ask(machine.directory / "qmp", "query-status")["status"]
    nodes = sorted(one.node for one in processes() if one.campaign == label)
    os.kill(running.process.pid, signal.SIGSTOP)
    began = time.monotonic()
    supplier = Qemu(top)
    supplier._children[label] = [running]
    supplier.destroy(label)
    ended_s = time.monotonic() - began
    while [one for one in processes() if one.campaign == label] and time.monotonic() - began < 20:
        time.sleep(0.05)
    left = [one.node for one in processes() if one.campaign == label]
    seen = {"user": user.sentence(label, "tcg"), "nodes": nodes, "status": status, "left": left, "ended_s": ended_s}
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
