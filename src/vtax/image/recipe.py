"""The recipe of the root file system: what goes in, as data, and the command that makes it. Pure."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from vtax import tools
from vtax.image import snapshot
from vtax.model.record import Record
from vtax.model.study import ImageSpec, Snapshot

PACKAGES = (  # besides those of the tools
    "ca-certificates",
    "e2fsprogs",
    "iproute2",
    "kmod",
    "libopenblas0-pthread",
    "nfs-common",
    "nfs-kernel-server",
    "nftables",
    "numactl",
    "openmpi-bin",
    "openssh-client",
    "openssh-server",
    "procps",
    "util-linux",
)
KERNELS = {  # what virtual machines boot, by kind of processor and `kernel` of the study's [image]
    "x86_64": {"cloud": "linux-image-cloud-amd64", "generic": "linux-image-amd64"},
    "aarch64": {"cloud": "linux-image-cloud-arm64", "generic": "linux-image-arm64"},
}
EFI_STUBS = {"x86_64": "systemd-boot-efi"}  # what makes a kernel start from firmware; copied, then removed again
KERNEL_PLACES = ("/boot", "/usr/lib/modules")
BUILD_PACKAGES = ("gcc", "libc6-dev", "libopenblas-dev", "libopenmpi-dev", "xz-utils", "zstd")
PROGRAMS = (  # besides those of the tools
    "ip",
    "mpirun",
    "numactl",
    "sshd",
    "vtax-blas",
    "vtax-boot",
    "vtax-enter",
    "vtax-fetch",
    "vtax-loopback.so",
    "vtax-rank",
    "vtax-run",
    "vtax-supervise",
    "vtax-world",
    "node-init",
    "vm-init",
    "exportfs",
    "modprobe",
    "mount.nfs4",
    "nft",
    "rpc.nfsd",
)
MODULES = (  # of the kernel, that nodes load
    *("qemu_fw_cfg", "virtio_pci", "virtio_net", "virtio_blk", "e1000", "vmxnet3", "overlay"),
    *("nfsd", "nfsv4", "nf_tables", "nft_chain_nat", "nft_masq"),
)
GUEST = (
    *("build.sh", "node-init", "unpack-kernel", "vm-init"),
    *("vtax-blas.c", "vtax-boot.c", "vtax-enter.c", "vtax-fetch.c", "vtax-loopback.c", "vtax-rank.c"),
    *("vtax-run.c", "vtax-stream.c", "vtax-supervise.c", "vtax-world.c", "xhpl.c"),
)
LEAN = (
    "--dpkgopt=force-unsafe-io",  # an interrupted build is discarded
    "--aptopt=APT::Install-Recommends false",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)
NO_RAM_DISK = "--dpkgopt=path-exclude=/etc/kernel/postinst.d/initramfs-tools"  # it would take long, and is never booted
SERVED = ("http://", "https://", "file:")  # others (mirror+file:) refer to files that only this machine has
SOURCE_FIELD = re.compile(r"^(URIs|Suites|Components|Types|Enabled):\s*(.+)$", re.MULTILINE)
SOURCE_LINE = re.compile(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)$", re.MULTILINE)


class Recipe(Record):
    """Everything that determines the content of the root file system; its hash names the cached image."""

    suite: str
    mirror: str  # "" is mmdebstrap's own choice for the suite
    components: tuple[str, ...]
    packages: tuple[str, ...]
    build_packages: tuple[str, ...]
    guest: Mapping[str, str]  # name -> sha256 of vtax's own files in it
    snapshot: Snapshot = ""  # time stamp; "" is the mirror's present state

    @property
    def recorded(self) -> dict[str, Any]:
        """What is written down of it. A field at its default is not, so a new one leaves the keys of others alone."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def key(self) -> str:
        content = json.dumps(self.recorded, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def guest_files() -> dict[str, bytes]:
    """vtax's own files for the root file system, by name."""
    folder = files("vtax.image") / "guest"
    return {name: (folder / name).read_bytes() for name in GUEST}


def kernel_packages(machine: str, kernel: str = "cloud") -> tuple[str, ...]:
    """The kernel for virtual machines on this kind of processor; none where Debian has no small one."""
    return (KERNELS[machine][kernel],) if machine in KERNELS else ()


def efi_packages(machine: str) -> tuple[str, ...]:
    """What starts a kernel from firmware on this kind of processor, for hypervisors that cannot be given a kernel."""
    return (EFI_STUBS[machine],) if machine in EFI_STUBS else ()


def recipe(spec: ImageSpec, machine_mirror: str) -> Recipe:
    """The recipe for a study's image; `machine_mirror` replaces mirror "auto", but for a snapshot."""
    kernel = kernel_packages(platform.machine(), spec.kernel)
    stamp = snapshot.stamp(spec.snapshot)
    usual = snapshot.ARCHIVE if stamp else machine_mirror
    return Recipe(
        suite=spec.suite,
        mirror=snapshot.address(usual if spec.mirror == "auto" else spec.mirror, stamp),
        snapshot=stamp,
        components=spec.components,
        packages=tuple(sorted({*PACKAGES, *tools.packages(), *kernel, *spec.extra_packages})),
        build_packages=(*BUILD_PACKAGES, *efi_packages(platform.machine())),
        guest={name: hashlib.sha256(content).hexdigest() for name, content in guest_files().items()},
    )


def programs() -> tuple[str, ...]:
    """What must be in the root file system when it is made: programs of vtax's own, and those of the tools."""
    return (*PROGRAMS, *tools.programs())


def command(made: Recipe, guest_directory: str, kernel_directory: str, mode: str) -> tuple[str, ...]:
    """The mmdebstrap call that writes the root file system as a tar archive to its standard output, and what only
    virtual machines need of it into `kernel_directory`."""
    inside = " ".join(f'"$1{place}"' for place in KERNEL_PLACES)
    place = "/usr/local/lib/vtax"
    settings = f"VTAX_BUILD_PACKAGES='{' '.join(made.build_packages)}' VTAX_PROGRAMS='{' '.join(programs())}'"
    settings = f"{settings} VTAX_MODULES='{' '.join(MODULES)}'"
    return (
        "mmdebstrap",
        f"--mode={mode}",
        "--variant=minbase",
        "--format=tar",
        f"--components={','.join(made.components)}",
        *LEAN,
        NO_RAM_DISK,
        f"--include={','.join((*made.packages, *made.build_packages))}",
        *(snapshot.OPTIONS if made.snapshot else ()),
        f'--customize-hook=mkdir -p "$1{place}"',
        f"--customize-hook=copy-in {guest_directory} {place}",
        f'--customize-hook={settings} chroot "$1" sh {place}/guest/build.sh',
        f"--customize-hook=copy-out {' '.join(KERNEL_PLACES)} {kernel_directory}",
        f"--customize-hook=rm -rf {inside}",
        "--",  # mmdebstrap takes options anywhere, and one of them runs commands as root
        made.suite,
        "-",
        *((made.mirror,) if made.mirror else ()),
    )


def simulation(made: Recipe, packages: Iterable[str], mode: str) -> tuple[str, ...]:
    """The mmdebstrap call that asks the mirror whether all packages of a recipe and these can be installed together.
    It installs nothing."""
    return (
        *("mmdebstrap", "--simulate", f"--mode={mode}", "--variant=custom", "--format=null"),
        f"--components={','.join(made.components)}",
        *LEAN,
        '--aptopt=Acquire::Check-Valid-Until "false"',  # of a snapshot; the signature is checked as always
        f"--include={','.join(sorted({*made.packages, *packages}))}",
        "--",
        made.suite,
        "/dev/null",
        *((made.mirror,) if made.mirror else ()),
    )


def machine_mirror(os_release: str, sources: Iterable[str]) -> str:
    """The mirror that this machine's own apt uses, from /etc/os-release and the texts of its apt sources.

    Only a Debian machine has a mirror with Debian suites; elsewhere "" leaves the choice to mmdebstrap.
    """
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    codename = release.get("VERSION_CODENAME", "")
    if release.get("ID") != "debian" or not codename:
        return ""
    for text in sources:
        for paragraph in re.split(r"\n\s*\n", text):
            fields = dict(SOURCE_FIELD.findall(paragraph))
            if fields.get("Enabled", "yes").strip() == "no" or "deb" not in fields.get("Types", "").split():
                continue
            listed = codename in fields.get("Suites", "").split() and "main" in fields.get("Components", "").split()
            for uri in fields.get("URIs", "").split() if listed else ():
                if uri.startswith(SERVED):
                    return str(uri)
        for uri, suite, components in SOURCE_LINE.findall(text):
            if suite == codename and "main" in components.split() and uri.startswith(SERVED):
                return str(uri)
    return ""
