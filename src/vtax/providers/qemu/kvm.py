"""Whether KVM really runs a guest here. That /dev/kvm opens proves nothing: on nested hosts it does, and guests hang.

A guest of 442 bytes (`probe.S`) goes through protected and long mode, faults, a task, user mode, an interrupt and a
system call, and ends QEMU with an exit code that nothing else gives. The answer holds until the machine boots again.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vtax.errors import EnvironmentMissing
from vtax.model.trial import CommandResult
from vtax.providers.qemu.command import QEMU
from vtax.transport import process

DEVICE = Path("/dev/kvm")
CPUINFO = Path("/proc/cpuinfo")
BOOT = Path("/proc/sys/kernel/random/boot_id")
LIMIT_S = 2.0
PASSED = 2 * 42 + 1  # how isa-debug-exit ends QEMU when the guest says 42
SIZE = 2**16
RESET = bytes.fromhex("ea000000f0")  # a jump to the image's first byte
IMAGE = base64.b64decode(
    "+rgA8I7YZg8BFqABDyDADAEPIsBm6hwADwAIAGa4EACO2I7AjtC8AHAAAPy/AAABADHAuQBQAADzq8cFAAABAAcQAQDHBQAQAQAH"
    "IAEAxwUAIAEAhwAAALgAAAEADyLYDyDgg8ggDyLguYAAAMAPMg0BAQAADzAPIMANAAABgA8iwOqJAA8AGABmuBAAjtiOwI7Qv2AA"
    "AgC4JAEPALKO6JwAAAC/AAgCALguAQ8Asu7oiwAAAA8BHCWwAQ8ASMfAAHgAAEiJBCUEEAIAvlgBDwC/ACACALlIAAAA86QPARQl"
    "pgEPAGa4OAAPANi5gQAAwDHAuhgAIAAPMLmCAADAuDMBDwAx0g8wMdsPC2oraAB0AABqAmozaB4BDwBIz82ADwUPC4DLCEiDBCQC"
    "SM+AyyBIz4DLAojYZrr0AO706/1miQdmx0cCGACIVwXB6BBmiUcGww8fQAAAAAAAAAAAAP//AAAAm88A//8AAACTzwD//wAAAJuv"
    "AP//AAAAk88A//8AAADzzwD//wAAAPuvAGcAABACiQAAAAAAAAAAAABHAFgBDwBHAAAgAgAAAAAA/w8AAAIAAAAAAA=="
)


def working(runtime: Path) -> str:
    """Why no guest runs with KVM here; "" when one does. Asked once a boot, remembered under `runtime`."""
    reason = refused(CPUINFO.read_text(errors="replace")) or unopened()
    if reason:
        return reason
    note = runtime / f"kvm-{BOOT.read_text().strip()}-{os.geteuid()}"
    if note.exists():
        return note.read_text()
    reason = tried("kvm", "host")
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = note.with_name(f".{note.name}.{os.getpid()}")
    fresh.write_text(reason)
    fresh.replace(note)
    return reason


def refused(cpuinfo: str) -> str:
    """Why this CPU cannot run guests, by its flags; "" when it can."""
    flags = next((line.split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    if {"vmx", "svm"} & set(flags):
        return ""
    return "the CPU shows neither vmx nor svm (switched off in the firmware, or this machine is virtual itself)"


def unopened() -> str:
    """Why /dev/kvm cannot be opened; "" when it can."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{DEVICE}: {error.strerror}"
    return ""


def command(accel: str, cpu: str, image: Path) -> tuple[str, ...]:
    """The call that runs the test guest."""
    return (
        QEMU,
        *("-accel", accel, "-cpu", cpu, "-machine", "pc", "-m", "16M"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-bios", str(image), "-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
    )


def tried(accel: str, cpu: str) -> str:
    """Run the test guest: why it did not reach user mode, or ""."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as image:
        image.write(rom())
        image.flush()
        try:
            result = process.run(command(accel, cpu, Path(image.name)), timeout_s=LIMIT_S)
        except EnvironmentMissing as error:
            return error.message
    return judged(result)


def rom() -> bytes:
    """The test guest as firmware: its code, and at the very end the instruction that the processor starts with."""
    return IMAGE.ljust(SIZE - 16, b"\0") + RESET.ljust(16, b"\0")


def judged(result: CommandResult) -> str:
    """What a run of the test guest says."""
    if result.timed_out:
        return f"{DEVICE} opens, but a test guest did not reach user mode within {LIMIT_S:g} s"
    if result.exit_code != PASSED:
        return f"{DEVICE} opens, but a test guest ended with exit code {result.exit_code}: {_said(result.stderr)}"
    return ""


def _said(stderr: str) -> str:
    lines: Sequence[str] = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[0] if lines else "QEMU said nothing"
