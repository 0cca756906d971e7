"""VBoxManage on this machine: where it is, its calls, and why a machine does not start."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing, ProvisionError, VtaxError
from vtax.model.trial import CommandResult
from vtax.providers.virtualbox import command as lines
from vtax.providers.virtualbox import listing
from vtax.providers.virtualbox.command import Command
from vtax.transport import process

DIRECT = Path("/usr/lib/virtualbox/VBoxManage")  # without the wrapper, which prints warnings into every answer
DRIVER = Path("/dev/vboxdrv")
LIMIT_S = 300.0
LOAD = "as root: modprobe vboxdrv; where there is none: apt-get install virtualbox-dkms linux-headers-$(uname -r)"
FIRMWARE = "switch on VT-x or AMD-V in the firmware; on a virtual host, nested virtualization in its hypervisor"
REASONS = (  # pattern in VirtualBox's log, its cause, the remedy
    (
        r"VERR_(VMX_IN_VMX_ROOT_MODE|SVM_IN_USE)",
        "another hypervisor uses the CPU's virtualization",
        "end the virtual machines of KVM; from Linux 6.12 on also: modprobe -r kvm_intel kvm_amd, or boot with "
        "kvm.enable_virt_at_load=0",
    ),
    (r"VERR_(VMX_NO_VMX|SVM_NO_SVM|NEM_NOT_AVAILABLE)", "the CPU shows neither VT-x nor AMD-V", FIRMWARE),
    (r"VERR_(VMX_MSR_\w*DISABLED|SVM_DISABLED)", "VT-x or AMD-V is switched off", FIRMWARE),
    (
        r"VERR_(VM_DRIVER_VERSION_MISMATCH|VERSION_MISMATCH)",
        "the driver vboxdrv and VirtualBox have different versions",
        "as root: modprobe -r vboxnetflt vboxnetadp vboxdrv; modprobe vboxdrv; if that is not enough, reinstall both",
    ),
    (r"VERR_VM_DRIVER_(NOT_INSTALLED|LOAD_ERROR|OPEN_ERROR)", "the driver vboxdrv cannot be used", LOAD),
)


def program() -> str | None:
    """The path of VBoxManage, None when it is not installed."""
    return str(DIRECT) if DIRECT.exists() else shutil.which(lines.PROGRAM)


def run(line: Command, *, check: bool = True) -> CommandResult:
    """One call. With `check`, raises CommandError with VBoxManage's message when it fails."""
    found = program()
    if found is None:
        raise EnvironmentMissing("VBoxManage is not installed", remedy="run `vtax doctor` to see what to install")
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    result = process.run((found, *line[1:]), timeout_s=LIMIT_S, env=env)
    if check and (result.exit_code != 0 or result.timed_out):
        raise failed(result)
    return result


def failed(result: CommandResult) -> CommandError:
    said = listing.errors(result.stderr + result.stdout)
    return process.failed(result.model_copy(update={"stderr": said}) if said else result)


def version() -> listing.Version | None:
    return listing.version(run((lines.PROGRAM, "--version")).stdout)


def machines() -> Mapping[str, str]:
    """UUID -> name of all machines that are registered for this user."""
    return listing.machines(run((lines.PROGRAM, "list", "vms")).stdout)


def media() -> tuple[listing.Medium, ...]:
    return listing.media(run((lines.PROGRAM, "list", "hdds")).stdout)


def about(name: str) -> Mapping[str, str]:
    """The settings and the state of a machine; nothing when it is not registered."""
    result = run(lines.describe(name), check=False)
    return listing.settings(result.stdout) if result.exit_code == 0 else {}


def start(name: str) -> None:
    """Raises EnvironmentMissing when this machine cannot run any, ProvisionError when it cannot run this one."""
    result = run(lines.start(name), check=False)
    if result.exit_code != 0 or result.timed_out:
        place = about(name).get("LogFldr", "")
        logs = sorted(Path(place).glob("VBox*.log")) if place else []
        log = "\n".join(path.read_text(errors="replace") for path in logs)
        raise refusal(name, listing.errors(result.stderr + result.stdout), log, driver=DRIVER.exists())


def refusal(name: str, said: str, log: str, *, driver: bool) -> VtaxError:
    """Why a machine did not start, by VBoxManage's message, its log, and whether the driver is loaded."""
    if not driver:
        return EnvironmentMissing("VirtualBox cannot run machines: its driver is not loaded", detail=said, remedy=LOAD)
    for pattern, why, remedy in REASONS:
        if re.search(pattern, said + log):
            return EnvironmentMissing(f"VirtualBox cannot run machines: {why}", detail=said, remedy=remedy)
    tail = "\n".join(log.splitlines()[-15:])
    return ProvisionError(f"{name} does not start", detail=f"{said}\n{tail}".strip(), remedy="see the log above")
