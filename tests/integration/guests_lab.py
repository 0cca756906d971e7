"""Machines for tests with kernels of their own: emulated guests with a real sshd, on a network that only they share.

Debian's kernel has what the one below the tests may lack: an NFS server and its client. Their files are layers over one
disk with Debian, and the root file system that vtax builds where vtax would have put it. They are booted once, and are
slow: what takes a second elsewhere takes ten there.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from integration import sid
from integration.machines_lab import CONFIG, Lab, make_keys, run, write_ssh
from integration.namespaces import new_name
from vtax.image import integrity
from vtax.model.cluster import Image

PACKAGES = (
    "linux-image-cloud-amd64,kmod,mount,python3,openssh-server,nfs-kernel-server,nfs-common,iproute2,procps,"
    "util-linux,iputils-ping"
)
SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}  # by their Python, which is that of the tests: vtax sends itself
DIRECTORY = "/srv/vtax"  # of vtax in a guest
DISK, MEMORY_MIB = "6G", 1536
READY_S, COMMAND_S = 600, 300
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
for place in /dev/shm /run /tmp; do mount -t tmpfs -o mode=1777 tmpfs $place; done
chmod 755 /run
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -o remount,rw /
mkdir -p /run/sshd /run/lock
modprobe -a virtio_pci virtio_net
ip link set lo up
ip addr add $guest_address/24 dev eth0
ip link set eth0 up
hostname $guest_name
echo $guest_id >/etc/machine-id
echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range
/usr/sbin/sshd -f /etc/ssh/lab_config && echo GUEST-READY
while :; do sleep 1000; done
"""
# A tree with more in it than Debian, without a copy of either: mke2fs takes a directory.
FILL = """
mount --make-rprivate /
mount -t overlay overlay -o lowerdir={tree},upperdir={layer}/upper,workdir={layer}/work {layer}/root
mount --bind {rootfs} {layer}/root{images}/{recipe}/rootfs
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=0,root_owner=0:0 -m 0 -d {layer}/root {disk} {size}
"""


@dataclass
class Guest:
    """One guest. `command` enters the network in which it is reached."""

    name: str
    address: str
    process: subprocess.Popen[bytes]
    place: Path
    command: tuple[str, ...] = field(default=())

    @property
    def console(self) -> str:
        return (self.place / "console.log").read_text(errors="replace")

    def inside(self, script: str, check: bool = True) -> str:
        """What a script prints there."""
        argv = (*self.command, self.name, script)
        made = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_S)
        assert not check or made.returncode == 0, f"{script}: {made.stderr}\n{self.console[-2000:]}"
        return made.stdout

    def processes(self) -> list[str]:
        """The command lines of everything on it but the kernel's threads, the first process and the SSH server."""
        lines = self.inside("ps --ppid 2 -p 2 --deselect -o args --no-headers").splitlines()
        own = ("sshd", "/usr/sbin/sshd", "ps ", "/bin/sh /guest-init", "sleep 1000", "bash -c ps", "sh -c ps")
        return [line for line in lines if not line.startswith(own)]

    def pause(self) -> None:
        """Stop all of it, as if it had frozen."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@dataclass
class GuestsLab(Lab):
    """The same for guests as for machines that are namespaces."""

    guests: dict[str, Guest] = field(default_factory=dict)

    def tables(self, images: Path) -> str:
        return "".join(
            f'[machines.{name}]\nssh = "{name}"\ndirectory = "{DIRECTORY}"\n' for name in sorted(self.guests)
        )


@contextlib.contextmanager
def guests_lab(names: tuple[str, ...], image: Image, cache: Path, place: Path) -> Iterator[GuestsLab]:
    """Guests of these names, until the end."""
    made = GuestsLab(place, new_name("guests"))
    suite = SUITES[sys.version_info[:2]]
    tree = sid.tree(cache, f"machine-with-nfs-{suite}", PACKAGES, suite)
    with contextlib.ExitStack() as stack:
        make_keys(place)
        disk = _disk(tree, image, place)
        stack.callback(disk.unlink)
        run("ip", "netns", "add", made.namespace)
        stack.callback(run, "ip", "netns", "del", made.namespace, check=False)
        inside = ("ip", "-n", made.namespace)
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "link", "add", "bridge", "type", "bridge")
        run(*inside, "addr", "add", "10.214.0.1/24", "dev", "bridge")
        run(*inside, "link", "set", "bridge", "up")
        for number, name in enumerate(names, start=11):
            run(*inside, "tuntap", "add", f"tap-{name}", "mode", "tap")
            run(*inside, "link", "set", f"tap-{name}", "master", "bridge", "up")
            guest = _guest(made, name, number, disk, tree)
            made.guests[name] = guest
            stack.callback(_ended, guest)
        write_ssh(made, {name: one.address for name, one in made.guests.items()})
        for guest in made.guests.values():
            guest.command = made.enter((f"{place}/bin/ssh", "-o", "BatchMode=yes"))
            _ready(guest)
            _note(guest, image)
        yield made


def _disk(tree: Path, image: Image, place: Path) -> Path:
    """The disk below all guests: Debian with an SSH server of the lab, and the root file system."""
    layer, here = place / "layer", f"{DIRECTORY}/images/{image.recipe}"
    for part in ("upper/etc/ssh", "work", "root", f"upper{here}/rootfs"):
        (layer / part).mkdir(parents=True, exist_ok=True)
    own = Path(image.directory).parent
    etc = layer / "upper/etc/ssh"
    (etc / "lab_config").write_text(CONFIG + "UseDNS no\n")
    shutil.copy(place / "user.pub", etc / "lab_authorized")
    shutil.copy(place / "host", etc / "lab_key")
    init = layer / "upper/guest-init"
    init.write_text(INIT)
    init.chmod(0o755)
    shutil.copy(own / "vtax-enter", layer / f"upper{here}/vtax-enter")
    shutil.copy(own / "recipe.json", layer / f"upper{here}/recipe.json")
    (layer / f"upper{here}/rootfs.tar").touch()  # it is unpacked already
    there = {"directory": f"{here}/rootfs", "archive": f"{here}/rootfs.tar", "kernel": ""}
    (layer / f"upper{here}/image.json").write_text(image.model_copy(update=there).model_dump_json(indent=1))
    disk = place / "disk.raw"
    script = FILL.format(
        tree=tree,
        layer=layer,
        rootfs=image.directory,
        images=f"{DIRECTORY}/images",
        recipe=image.recipe,
        disk=disk,
        size=DISK,
    )
    made = subprocess.run(("unshare", "--mount", "sh", "-ec", script), capture_output=True, text=True, timeout=600)
    assert made.returncode == 0, made.stderr
    return disk


def _guest(made: GuestsLab, name: str, number: int, disk: Path, tree: Path) -> Guest:
    place = made.place / name
    place.mkdir()
    address, layer = f"10.214.0.{number}", place / "disk.qcow2"
    run("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(disk), "-F", "raw", str(layer))
    kernel = sorted((tree / "boot").glob("vmlinuz-*"))[-1]
    words = (
        f"console=ttyS0 quiet panic=-1 rw root=/dev/nvme0n1 init=/guest-init mitigations=off "
        f"guest_name={name} guest_address={address} guest_id={secrets.token_hex(16)}"
    )
    argv = (
        *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "q35"),
        *("-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", "1", "-m", str(MEMORY_MIB)),
        *("-kernel", str(kernel), "-append", words, "-serial", f"file:{place}/console.log"),
        *(
            "-drive",
            f"if=none,id=disk,file={layer},format=qcow2,cache=unsafe",
            "-device",
            "nvme,drive=disk,serial=disk",
        ),
        *("-netdev", f"tap,id=net,ifname=tap-{name},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=net,romfile=,mac=52:54:00:00:00:{number:02x}"),
    )
    with (place / "qemu.log").open("wb") as log:
        process = subprocess.Popen(made.enter(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    return Guest(name, address, process, place)


def _ready(guest: Guest) -> None:
    """Wait until it has an SSH server."""
    deadline = time.monotonic() + READY_S
    log = guest.place / "console.log"
    while not log.exists() or "GUEST-READY" not in guest.console:
        said = (guest.place / "qemu.log").read_text() + (guest.console if log.exists() else "")
        assert guest.process.poll() is None and time.monotonic() < deadline, said
        time.sleep(0.2)


def _note(guest: Guest, image: Image) -> None:
    """Write down, as vtax does where it installs a root file system, what it is there."""
    here = f"{DIRECTORY}/images/{image.recipe}"
    listing = guest.inside(f"cd {here} && find rootfs rootfs.tar -printf {shlex.quote(integrity.ENTRY)}")
    guest.inside(f"chmod 700 {DIRECTORY}/images && printf %s {integrity.digest(listing)} >{here}/{integrity.FILE}")


def _ended(guest: Guest) -> None:
    guest.process.kill()
    guest.process.wait()
    (guest.place / "disk.qcow2").unlink()
