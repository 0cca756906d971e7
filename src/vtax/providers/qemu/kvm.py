"""Whether KVM really runs a guest here. That /dev/kvm opens proves nothing: on nested hosts it does, and guests hang.

A guest of 442 bytes (`probe.S`) goes through protected and long mode, faults, a task, user mode, an interrupt and a
system call, and ends QEMU with an exit code that nothing else gives. The answer is kept until the machine
boots again or QEMU changes; `vtax doctor` repeats a test that failed, perhaps because the machine was busy.
"""

from __future__ import annotations

import base64
import errno
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vtax.facts.host import name_of
from vtax.model.trial import CommandResult
from vtax.paths import replacing
from vtax.providers.qemu.command import QEMU
from vtax.transport import process

DEVICE = Path("/dev/kvm")
CPUINFO = Path("/proc/cpuinfo")
BOOT = Path("/proc/sys/kernel/random/boot_id")
LIMIT_S = 2.5  # for what takes 0.05 s on an idle machine
PASSED = 2 * 42 + 1  # how isa-debug-exit ends QEMU when the guest says 42
SIZE = 2**16
FIRMWARE = "enable VT-x or AMD-V in the firmware; on a virtual host, enable nested virtualization in its hypervisor"
HUNG = (
    "was the machine busy? `vtax doctor` tests again; on a virtual host, enable nested virtualization in its hypervisor"
)
BUSY = "stop the virtual machines of other hypervisors (VirtualBox)"
DEVICE_OF_CONTAINER = f"in a container: start it with --device {DEVICE}"
RESET = bytes.fromhex("ea000000f0")  # a jump to the image's first byte
IMAGE = base64.b64decode(
    "+rgA8I7YZg8BFqABDyDADAEPIsBm6hwADwAIAGa4EACO2I7AjtC8AHAAAPy/AAABADHAuQBQAADzq8cFAAABAAcQAQDHBQAQAQAH"
    "IAEAxwUAIAEAhwAAALgAAAEADyLYDyDgg8ggDyLguYAAAMAPMg0BAQAADzAPIMANAAABgA8iwOqJAA8AGABmuBAAjtiOwI7Qv2AA"
    "AgC4JAEPALKO6JwAAAC/AAgCALguAQ8Asu7oiwAAAA8BHCWwAQ8ASMfAAHgAAEiJBCUEEAIAvlgBDwC/ACACALlIAAAA86QPARQl"
    "pgEPAGa4OAAPANi5gQAAwDHAuhgAIAAPMLmCAADAuDMBDwAx0g8wMdsPC2oraAB0AABqAmozaB4BDwBIz82ADwUPC4DLCEiDBCQC"
    "SM+AyyBIz4DLAojYZrr0AO706/1miQdmx0cCGACIVwXB6BBmiUcGww8fQAAAAAAAAAAAAP//AAAAm88A//8AAACTzwD//wAAAJuv"
    "AP//AAAAk88A//8AAADzzwD//wAAAPuvAGcAABACiQAAAAAAAAAAAABHAFgBDwBHAAAgAgAAAAAA/w8AAAIAAAAAAA=="
)


@dataclass(frozen=True)
class Answer:
    """Why no guest runs with KVM here, and the remedy; both are empty when one does."""

    reason: str = ""
    remedy: str = ""


def probe(runtime: Path, *, again: bool = False) -> Answer:
    """Whether a guest runs with KVM here. The result of a test guest is stored under `runtime`; with `again`, only a
    stored success counts."""
    obstacle = refused(CPUINFO.read_text(errors="replace")) or unopened(CPUINFO.read_text(errors="replace"))
    if obstacle:
        return obstacle
    program = shutil.which(QEMU)
    if program is None:
        return Answer(f"{QEMU} is not installed", "as root: apt-get install --no-install-recommends qemu-system-x86")
    note = runtime / note_name(BOOT.read_text().strip(), os.geteuid(), Path(program).stat().st_mtime_ns)
    known = note.read_text() if note.exists() else None
    if known is not None and not (again and known):
        return Answer(known, HUNG if known else "")
    result = run_test_guest("kvm", "host")
    answer = answer_of(result)
    if result.timed_out or not answer.reason:  # other errors are QEMU's, not the guest's answer, and may pass
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(note) as fresh:
            fresh.write_text(answer.reason)
    return answer


def note_name(boot: str, user: int, changed_ns: int) -> str:
    """The file name of a stored answer: for one boot, one user and one QEMU, by when its file changed."""
    return f"kvm-{boot}-{user}-{changed_ns:x}"


def extension(cpuinfo: str) -> str:
    """The CPU's flag for virtualization, "" when it shows none."""
    flags = next((line.split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return next((flag for flag in ("vmx", "svm") if flag in flags), "")


def refused(cpuinfo: str) -> Answer | None:
    """Why this CPU cannot run guests, by its flags; None when it can."""
    if extension(cpuinfo):
        return None
    why = "the CPU shows neither vmx nor svm (disabled in the firmware, or this machine is itself virtual)"
    return Answer(why, FIRMWARE)


def unopened(cpuinfo: str) -> Answer | None:
    """Why /dev/kvm cannot be opened; None when it can."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        module = {"vmx": "kvm_intel", "svm": "kvm_amd"}.get(extension(cpuinfo), "kvm")
        return Answer(f"{DEVICE}: {error.strerror}", _opening(error.errno or 0, module, name_of(os.geteuid())))
    return None


def _opening(number: int, module: str, user: str) -> str:
    """What makes /dev/kvm open, by the number of the error."""
    if number == errno.EACCES:
        return f"as root: usermod -aG kvm {user}; then log in again"
    if number == errno.EPERM:
        return DEVICE_OF_CONTAINER
    return f"as root: modprobe {module}; {DEVICE_OF_CONTAINER}"


def command(accel: str, cpu: str, image: Path) -> tuple[str, ...]:
    """The call that runs the test guest."""
    return (
        QEMU,
        *("-accel", accel, "-cpu", cpu, "-machine", "pc", "-m", "16M"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-bios", str(image), "-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
    )


def run_test_guest(accel: str, cpu: str) -> CommandResult:
    """Run the test guest."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as image:
        image.write(rom())
        image.flush()
        return process.run(command(accel, cpu, Path(image.name)), timeout_s=LIMIT_S)


def rom() -> bytes:
    """The test guest as firmware: its code, and at the very end the instruction that the processor starts with."""
    return IMAGE.ljust(SIZE - 16, b"\0") + RESET.ljust(16, b"\0")


def answer_of(result: CommandResult) -> Answer:
    """What a run of the test guest means."""
    if result.timed_out:
        return Answer(f"{DEVICE} opens, but a test guest did not reach user mode within {LIMIT_S:g} s", HUNG)
    if result.exit_code == PASSED:
        return Answer()
    message = next((line.strip() for line in result.stderr.splitlines() if line.strip()), "no message from QEMU")
    reason = f"{DEVICE} opens, but a test guest ended with exit code {result.exit_code}: {message}"
    return Answer(reason, BUSY if "busy" in result.stderr else "see `dmesg` for the reason")
