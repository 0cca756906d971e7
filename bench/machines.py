"""What virtual machines cost until they are ready, against one bare machine and against the ordinary way.

All run with whatever works here (software emulation where KVM does not), and take turns, so that the ratios hold on
any machine. The bare machine has the same kernel and disk and a short first process. The ordinary way is a guest
with systemd and Debian's initial RAM disk, its machines started one after another until each shows its SSH banner; it
is given neither keys nor a shared directory, which would take it more time.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vtax.cluster.access import wait_for_banner
from vtax.image.build import find_machine_mirror
from vtax.image.recipe import KERNELS, LEAN, PACKAGES
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.providers import provider
from vtax.providers.base import Site
from vtax.providers.guest import disk
from vtax.providers.qemu import command, kvm
from vtax.running.provision import destroy, provision
from vtax.transport.process import as_root_here, system_environment

LIMIT_S = 900.0
MIB = 2**20
COMMON = ("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35", "-smp", "1")
INIT = """\
#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mkdir -p /run/sshd
modprobe virtio_net
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
/usr/sbin/sshd
while :; do sleep 1000; done
"""
ORDINARY = (*PACKAGES, KERNELS["x86_64"]["cloud"], "systemd-sysv", "dbus", "udev", "initramfs-tools")
DHCP = "[Match]\\nType=ether\\n[Network]\\nDHCP=ipv4\\n"
BY_HAND = (
    f"printf '{DHCP}' >\"$1/etc/systemd/network/all.network\"",
    'chroot "$1" systemctl enable systemd-networkd ssh',
    'chroot "$1" ssh-keygen -A',
    'cp "$1"/boot/vmlinuz-* "$1/vmlinuz"; cp "$1"/boot/initrd.img-* "$1/initrd"',
)


@dataclass(frozen=True)
class Guest:
    """A machine that is not ours: its disk (never written), and how its kernel starts."""

    base: Path
    device: tuple[str, ...]
    kernel: str
    words: str
    initrd: str = ""


@dataclass(frozen=True)
class Times:
    """Seconds, and bytes that each node of a second cell read from disks and wrote to them."""

    ours_s: float
    bare_s: float
    ordinary_s: float
    io_bytes: float


def measured(paths: Paths, image: Image, shape: ClusterShape, repeat: int) -> Times:
    """Medians of `repeat` turns; the ordinary way, which is slow, is taken once."""
    options, accel = _options(paths)
    disk.system(image, shape.nodes[0].disk_bytes)  # made once for all cells: not part of one
    bare = _bare(paths, image, shape.nodes[0].disk_bytes)
    ours, alone, moved = [], [], []
    for number in range(repeat):
        ready_s, io_bytes = _ours(paths, image, shape, number)
        ours.append(ready_s)
        moved += [io_bytes] if number or repeat == 1 else []
        alone.append(_banner_s([bare], [*options], shape.nodes[0].memory_bytes))
        _say(f"three machines verified {ours[-1]:.1f} s, one bare machine {alone[-1]:.1f} s ({accel})")
    guest = _ordinary(paths)
    ordinary_s = _banner_s([guest] * len(shape.nodes), [*options], shape.nodes[0].memory_bytes)
    _say(f"three ordinary machines, one after another: {ordinary_s:.1f} s ({accel})")
    return Times(statistics.median(ours), statistics.median(alone), ordinary_s, statistics.median(moved))


def _say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr)


def _options(paths: Paths) -> tuple[tuple[str, ...], str]:
    """Accelerator and CPU as our provider chooses them."""
    text = subprocess.run([command.QEMU, "--version"], check=True, capture_output=True, text=True).stdout
    accel: command.Accelerator = "tcg" if kvm.probe(paths.runtime).reason else "kvm"
    model = command.cpu_model(command.QemuOptions(), accel, command.version(text) or command.OLDEST)
    return ("-accel", "tcg,thread=multi" if accel == "tcg" else "kvm", "-cpu", model), accel


def _ours(paths: Paths, image: Image, shape: ClusterShape, number: int) -> tuple[float, float]:
    """Seconds until three machines are verified, and bytes that each node moved to and from disks until then."""
    supplier = provider("qemu", paths.runtime)
    spec = EnvironmentSpec(name="vm", provider="qemu", options=supplier.options().model_dump(mode="json"))
    site = Site(f"machines{number}", paths.runtime / f"m{number}" / "c", image, paths.runtime / f"m{number}" / "keys")
    before, clock = _moved("self"), time.monotonic()
    ready = provision(supplier, spec, shape, "/shared", site, [Scope.WORKERS])
    ready_s = time.monotonic() - clock
    pids = [(site.directory / node.name / "pid").read_text().strip() for node in shape.nodes]
    moved = sum(map(_moved, pids)) + _moved("self") - before
    destroy(supplier, site, ready.cluster)
    return ready_s, moved / len(shape.nodes)


def _moved(process: str) -> float:
    """Bytes that a process and its ended children have read from disks and written to them."""
    lines = Path(f"/proc/{process}/io").read_text().splitlines()
    values = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    return float(values["read_bytes"] + values["write_bytes"])


def _banner_s(guests: Sequence[Guest], options: Sequence[str], memory_bytes: int) -> float:
    """Seconds until each guest has shown its SSH banner, one started after another."""
    with tempfile.TemporaryDirectory(prefix="vb-") as name:
        running: list[subprocess.Popen[bytes]] = []
        try:
            clock = time.monotonic()
            for number, guest in enumerate(guests):
                port = _free_port()
                running.append(_start(guest, Path(name) / str(number), port, options, memory_bytes))
                wait_for_banner(f"guest {number}", port, time.monotonic() + LIMIT_S, answer_s=10)
            return time.monotonic() - clock
        finally:
            for process in running:
                process.kill()
                process.wait()


def _start(guest: Guest, place: Path, port: int, options: Sequence[str], memory_bytes: int) -> subprocess.Popen[bytes]:
    layer = ("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(guest.base), "-F", "raw", str(place))
    subprocess.run(layer, check=True)
    return subprocess.Popen(
        [
            *(command.QEMU, *COMMON, *options, "-m", f"{memory_bytes // MIB}M"),
            *("-chardev", f"file,id=console,path={place}.log", "-serial", "chardev:console"),
            *("-drive", f"id=system,file={place},format=qcow2,cache=none,backing.cache.direct=off,if=none"),
            *("-device", ",".join((*guest.device, "drive=system"))),
            *("-netdev", f"user,id=outer,ipv6=off,hostfwd=tcp:127.0.0.1:{port}-:22"),
            *("-device", "virtio-net-pci,netdev=outer,romfile="),
            *("-kernel", guest.kernel, "-append", f"console=ttyS0 quiet panic=-1 {guest.words}"),
            *(("-initrd", guest.initrd) if guest.initrd else ()),
        ]
    )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _bare(paths: Paths, image: Image, size_bytes: int) -> Guest:
    """The same kernel, as Debian packs it, and the same disk, with a short first process and a host key."""
    made = paths.cache / "bench" / f"bare-{image.recipe}.raw"
    words = "rw root=/dev/nvme0n1 rootfstype=ext4 init=/bare-init"
    with _making(made) as fresh:
        if fresh:
            subprocess.run(["cp", "--sparse=always", str(disk.system(image, size_bytes)), str(fresh)], check=True)
            with tempfile.TemporaryDirectory() as name:
                init, key = Path(name) / "init", Path(name) / "key"
                init.write_text(INIT)
                init.chmod(0o755)
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
                orders = f"write {init} bare-init\ncd etc/ssh\nwrite {key} ssh_host_ed25519_key\n"
                subprocess.run(
                    ["debugfs", "-w", "-f", "-", str(fresh)],
                    input=orders.encode(), check=True, capture_output=True, env=system_environment(),
                )  # fmt: skip
    return Guest(made, ("nvme", "serial=system"), image.kernel, words)


def _ordinary(paths: Paths) -> Guest:
    """The same packages with systemd and an initial RAM disk, as mmdebstrap and initramfs-tools make them."""
    place = paths.cache / "bench" / "ordinary"
    with _making(place) as fresh:
        if fresh:
            _say("building the ordinary guest, some minutes")
            fresh.mkdir()
            hooks = [f"--customize-hook={line}" for line in BY_HAND]
            mode = "root" if os.geteuid() == 0 else "unshare"
            build = ["mmdebstrap", f"--mode={mode}", "--variant=minbase", "--format=tar", *LEAN, *hooks]
            build += ["--components=main,contrib,non-free", f"--include={','.join(ORDINARY)}", "trixie"]
            mirror = find_machine_mirror()
            subprocess.run([*build, str(fresh / "rootfs.tar"), *([mirror] if mirror else [])], check=True)
            (fresh / "tree").mkdir()
            unpack = ["tar", "-C", str(fresh / "tree"), "--exclude=./dev/*", "--numeric-owner", "-xpf"]
            subprocess.run([*as_root_here(), *unpack, str(fresh / "rootfs.tar")], check=True)
            for name in ("vmlinuz", "initrd"):
                subprocess.run([*as_root_here(), "cp", str(fresh / "tree" / name), str(fresh / name)], check=True)
                subprocess.run([*as_root_here(), "chmod", "644", str(fresh / name)], check=True)
            make = [*as_root_here(), *disk.FORMAT, "-d", str(fresh / "tree"), str(fresh / "disk.raw"), "4096M"]
            subprocess.run(make, check=True, env=system_environment())
            subprocess.run([*as_root_here(), "rm", "-rf", str(fresh / "tree"), str(fresh / "rootfs.tar")], check=True)
    words = "root=/dev/vda ro"
    return Guest(place / "disk.raw", ("virtio-blk-pci",), str(place / "vmlinuz"), words, str(place / "initrd"))


@contextmanager
def _making(made: Path) -> Iterator[Path | None]:
    """A new name to make a thing under, which becomes `made` when all went well; None when it is there."""
    if made.exists():
        yield None
        return
    made.parent.mkdir(parents=True, exist_ok=True)
    fresh = made.with_name(f"{made.name}.new.{os.getpid()}")
    try:
        yield fresh
        fresh.rename(made)
    except BaseException:
        subprocess.run([*as_root_here(), "rm", "-rf", str(fresh)], check=True)
        raise
