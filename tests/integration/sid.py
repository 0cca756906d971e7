"""The real VBoxManage: from Debian sid, in a directory of its own, run in namespaces that end with the test.

VirtualBox keeps a registry and starts a daemon for it. The registry is in the test's directory; the daemon is in a
process namespace that dies with the test, and sees no /dev/vboxdrv, whatever this machine has.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vtax.image import build

PROGRAM = "usr/lib/virtualbox/VBoxManage"
BUILD_S = 1800
ENVIRONMENT = "HOME=/root USER=root LOGNAME=root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8"


def tree(cache: Path, name: str = "virtualbox-sid", packages: str = "virtualbox", suite: str = "sid") -> Path:
    """The directory with Debian and these packages, made once under that name."""
    place = cache / "vtax" / "tests" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    with build.locked(place.with_name(f"{name}.lock")):
        if not place.exists():
            _made(place, packages, suite)
    return place


def _made(place: Path, packages: str, suite: str) -> None:
    """In a directory that is new, since a build that was killed may go on in its own."""
    for old in place.parent.glob(f"{place.name}.new*"):
        shutil.rmtree(old, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{place.name}.new", dir=place.parent))
    mirror = build.find_machine_mirror()
    command = (
        *("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--components=main,contrib"),
        *(f"--include={packages}", "--aptopt=APT::Install-Recommends false"),
        '--aptopt=Acquire::Check-Valid-Until "false"',  # sid's list holds for a week, mirrors may be older
        *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"),
        *("--dpkgopt=path-exclude=/usr/share/locale/*", "--format=directory", suite, str(fresh)),
        *((mirror,) if mirror else ()),
    )
    made = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S)
    assert made.returncode == 0, made.stderr[-3000:]
    fresh.chmod(0o755)
    fresh.rename(place)


@contextmanager
def vboxmanage(root: Path, shared: Path) -> Iterator[Path]:
    """A program that is VBoxManage; it sees `shared` where this machine has it, and keeps its registry there."""
    script = f"""
mount -t tmpfs -o mode=755 dev {root}/dev
for one in null zero random urandom full; do touch {root}/dev/$one; mount --bind /dev/$one {root}/dev/$one; done
mkdir {root}/dev/shm
mount -t tmpfs tmp {root}/tmp
mkdir -p {root}{shared}
mount --bind {shared} {root}{shared}
echo ready
exec sleep 3600
"""
    holder = subprocess.Popen(
        ("unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root}/proc", "sh", "-ec", script),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        inside = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().strip()
        program = shared / "VBoxManage"
        program.write_text(
            f"#!/bin/sh\nexec nsenter --target {inside} --mount --pid chroot {root} env -i {ENVIRONMENT} "
            f'VBOX_USER_HOME={shared}/registry /{PROGRAM} "$@"\n'
        )
        program.chmod(0o755)
        yield program
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout:
            holder.stdout.close()
        _wait_until_gone(root)


def _wait_until_gone(root: Path) -> None:
    """Until the last process of the namespace has ended."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        roots = (entry / "root" for entry in Path("/proc").glob("[0-9]*"))
        if not any(_link(one) == str(root) for one in roots):
            return
        time.sleep(0.05)
    raise AssertionError(f"processes go on running in {root}")


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
