"""Machines for tests: namespaces with a real sshd, a file system and addresses of their own, and a way to them.

A machine's files are a layer over the root file system that vtax builds, which has an SSH server, so nothing is built
for it. It shares the kernel, the clock and the cache of root file systems with this machine. Its Python is the one that
runs the tests. The lab's network is a namespace too: what is to reach the machines runs inside of it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.namespaces import new_name

CONFIG = """\
Port 22
Port 2222
HostKey /etc/ssh/lab_key
AuthorizedKeysFile /etc/ssh/lab_authorized
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
"""
START = """
set -e
ip link set lo up
echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range
mount --make-rprivate /
mount -t tmpfs layer {place}/layer
mkdir {place}/layer/upper {place}/layer/work
mount -t overlay overlay -o lowerdir={tree},upperdir={place}/layer/upper,workdir={place}/layer/work {place}/root
cd {place}/root
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs run run
mount -t tmpfs tmp tmp
mkdir -p run/sshd run/lock root/.ssh {inside_python} {inside_images}
chmod 1777 tmp run/lock
mount --rbind {python} {inside_python}
mount --bind {images} {inside_images}
{install_python} usr/local/bin/python3
mkdir -p var/lib/docker
mount -t tmpfs docker var/lib/docker
{mounts}
cp {place}/etc/* etc/ssh/
echo {machine_id} >etc/machine-id
hostname {name}
mkdir -p before
pivot_root . before
exec chroot . sh -c 'umount -l /before && {services} exec /usr/sbin/sshd -D -e -f /etc/ssh/lab_config'
"""
READY_S = 60


def run(*argv: str, check: bool = True) -> str:
    made = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert not check or made.returncode == 0, f"{argv}: {made.stderr}"
    return made.stdout


@dataclass
class LabMachine:
    """One machine. `process` is the process of this machine that all of it is below."""

    name: str
    address: str
    namespace: str
    process: subprocess.Popen[bytes]
    place: Path

    @property
    def sshd(self) -> int:
        """The first process of its process namespace."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def enter(self, *argv: str) -> tuple[str, ...]:
        """A command that runs on the machine."""
        return ("nsenter", "-t", str(self.sshd), "-a", f"--root=/proc/{self.sshd}/root", "--wdns=/", *argv)

    def inside(self, *argv: str) -> str:
        """What a command prints on the machine."""
        return run(*self.enter(*argv))

    def processes(self) -> list[str]:
        """The command lines of everything on it but the SSH server."""
        lines = self.inside("ps", "-eo", "args", "--no-headers").splitlines()
        return [line for line in lines if "sshd" not in line and not line.startswith("ps ")]

    def pause(self) -> None:
        """Stop everything on it, as if it had frozen."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for line in run("pgrep", "--ns", str(self.sshd), "--nslist", "pid", ".").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), number)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, IndexError):
            os.kill(self.sshd, signal.SIGKILL)  # the first process of a namespace takes all others with it
        self.process.kill()
        self.process.wait()


@dataclass
class Lab:
    """Machines, the network that they share, and an `ssh` that knows them and nothing of its user."""

    place: Path
    namespace: str
    machines: dict[str, LabMachine] = field(default_factory=dict)

    def enter(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command that runs where the machines can be reached."""
        return ("nsenter", f"--net=/run/netns/{self.namespace}", *argv)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.place}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}

    def tables(self, images: Path) -> str:
        """[machines] of a study. The cache of root file systems is where this machine has it."""
        return "".join(
            f'[machines.{name}]\nssh = "{name}"\ndirectory = "{images.parent}"\n' for name in sorted(self.machines)
        )

    def forget(self, name: str) -> None:
        """Make a machine's host key unknown."""
        path = self.place / "known_hosts"
        kept = [line for line in path.read_text().splitlines() if not line.startswith(f"{name} ")]
        path.write_text("".join(f"{line}\n" for line in kept))

    def exchange(self, name: str) -> None:
        """Make another host key known for a machine than it has."""
        self.forget(name)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.place / "other"))
        with (self.place / "known_hosts").open("a") as file:
            file.write(f"{name} {(self.place / 'other.pub').read_text()}")


@contextlib.contextmanager
def lab(
    names: Sequence[str],
    tree: Path,
    images: Path,
    place: Path,
    services: str = "",
    mounts: Mapping[str, str] | None = None,
) -> Iterator[Lab]:
    """Machines of these names, until the end. `tree` is the root file system below them; `services` are commands of a
    shell that start what else they serve; `mounts` are directories of this computer that they see, by where they see
    them ("{name}" in a directory is the machine's)."""
    made = Lab(place, new_name("lab"))
    with contextlib.ExitStack() as stack:
        make_keys(place)
        run("ip", "netns", "add", made.namespace)
        stack.callback(run, "ip", "netns", "del", made.namespace, check=False)
        inside = ("ip", "-n", made.namespace)
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "link", "add", "bridge", "type", "bridge")
        run(*inside, "addr", "add", "10.213.0.1/24", "dev", "bridge")
        run(*inside, "link", "set", "bridge", "up")
        for number, name in enumerate(names, start=11):
            made.machines[name] = _machine(
                stack, made, name, f"10.213.0.{number}", tree, images, services, mounts or {}
            )
        write_ssh(made, {one.name: one.address for one in made.machines.values()})
        yield made


def make_keys(place: Path) -> None:
    for name in ("user", "host"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(place / name))


def _machine(
    stack: contextlib.ExitStack,
    made: Lab,
    name: str,
    address: str,
    tree: Path,
    images: Path,
    services: str,
    mounts: Mapping[str, str],
) -> LabMachine:
    namespace, place = f"{made.namespace}{name}", made.place / name
    run("ip", "netns", "add", namespace)
    stack.callback(run, "ip", "netns", "del", namespace, check=False)
    own = ("type", "veth", "peer", "name", "eth0", "netns", namespace)
    run("ip", "-n", made.namespace, "link", "add", f"to-{name}", *own)
    run("ip", "-n", made.namespace, "link", "set", f"to-{name}", "master", "bridge", "up")
    run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "-n", namespace, "link", "set", "eth0", "up")
    for part in ("layer", "root", "etc"):
        (place / part).mkdir(parents=True)
    (place / "etc/lab_config").write_text(CONFIG)
    shutil.copy(made.place / "user.pub", place / "etc/lab_authorized")
    shutil.copy(made.place / "host", place / "etc/lab_key")
    python, install_python = _python(Path(sys.base_prefix))
    script = START.format(
        place=place,
        tree=tree,
        images=images,
        python=python,
        install_python=install_python,
        inside_python=str(python).lstrip("/"),
        inside_images=str(images).lstrip("/"),
        machine_id=secrets.token_hex(16),
        name=name,
        services=services,
        mounts="\n".join(_mount(inside, source.format(name=name)) for inside, source in mounts.items()),
    )
    enter = ("nsenter", f"--net=/run/netns/{namespace}", "unshare", "--mount", "--pid", "--uts", "--ipc", "--fork")
    with (place / "log").open("wb") as log:
        process = subprocess.Popen((*enter, "--kill-child", "sh", "-c", script), stdout=log, stderr=log)
    machine = LabMachine(name, address, namespace, process, place)
    stack.callback(machine.end)
    deadline = time.monotonic() + READY_S
    while "Server listening" not in (said := (place / "log").read_text()):
        assert process.poll() is None and time.monotonic() < deadline, said
        time.sleep(0.05)
    return machine


def _mount(inside: str, source: str) -> str:
    below = inside.lstrip("/")
    return f"mkdir -p {below}; mount --bind {source} {below}"


def _python(prefix: Path) -> tuple[Path, str]:
    """The directory of the Python that runs this, and the command that makes its program another one. A system's own
    is not all of /usr: its program finds its modules by their path, wherever it is itself."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if prefix == Path("/usr"):
        return prefix / "lib" / version, f"cp {prefix}/bin/{version}"
    return prefix, f"ln -sf {prefix}/bin/{version}"


def write_ssh(made: Lab, addresses: Mapping[str, str]) -> None:
    """A program `ssh` that is given a configuration of the lab's own: OpenSSH reads that of the real home directory."""
    key = " ".join((made.place / "host.pub").read_text().split()[:2])
    (made.place / "known_hosts").write_text("".join(f"{name} {key}\n" for name in addresses))
    blocks = [f"Host {name}\n  HostName {to}\n  HostKeyAlias {name}\n" for name, to in addresses.items()]
    common = (
        f"Host *\n  User root\n  IdentityFile {made.place}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {made.place}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
    )
    (made.place / "config").write_text("".join(blocks) + common)
    program = made.place / "bin/ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {made.place}/config "$@"\n')
    program.chmod(0o755)
