"""What VBoxManage prints: its version, machines, media, the settings of a machine, errors. Pure.

The wrapper that some packages install prints warnings about the driver first, so lines that match nothing are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

VERSION = re.compile(r"^([0-9]+)\.([0-9]+)\.[0-9]+", re.MULTILINE)
MACHINE = re.compile(r'^"(.*)" \{([0-9a-f-]{36})\}$', re.MULTILINE)
SETTING = re.compile(r'^("?)([^"=\n]+)\1=("?)(.*)\3$', re.MULTILINE)
FIELD = re.compile(r"^([A-Z][A-Za-z ]*): +(.*)$", re.MULTILINE)
ERROR = re.compile(r"^(?:VBoxManage|VBoxHeadless): error: (.*)$", re.MULTILINE | re.IGNORECASE)
OURS = re.compile(r"(?:^|/)vtax-([^/]+)-(master|worker[0-9]+)(?:\.vdi$|/)")

Version = tuple[int, int]


@dataclass(frozen=True)
class Medium:
    """A disk that VirtualBox knows."""

    uuid: str
    location: str

    @property
    def owner(self) -> str:
        """The campaign to whose machine it belongs, by its path; "" when it is not of a cluster."""
        found = OURS.search(self.location)
        return found[1] if found else ""


def version(text: str) -> Version | None:
    """Of `VBoxManage --version`."""
    found = VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def machines(text: str) -> Mapping[str, str]:
    """UUID -> name, of `list vms`. One whose files are gone is called `<inaccessible>`."""
    return {uuid: name for name, uuid in MACHINE.findall(text)}


def settings(text: str) -> Mapping[str, str]:
    """Of `showvminfo --machinereadable`."""
    return {key: value for _, key, _, value in SETTING.findall(text)}


def media(text: str) -> tuple[Medium, ...]:
    """Of `list hdds`."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        fields = dict(FIELD.findall(paragraph))
        if "UUID" in fields and "Location" in fields:
            found.append(Medium(fields["UUID"], fields["Location"]))
    return tuple(found)


def runs(machine: Mapping[str, str]) -> bool:
    """Whether a machine is in a state from which it can be powered off, by its settings."""
    return machine.get("VMState", "") in ("running", "paused", "starting", "stopping", "gurumeditation", "stuck")


def serial_socket(machine: Mapping[str, str]) -> str:
    """The socket of the second serial port; "" when there is none."""
    kind, _, path = machine.get("uartmode2", "").partition(",")
    return path if kind == "server" else ""


def errors(text: str) -> str:
    """The errors that VBoxManage reports, without their context lines."""
    lines = (line for line in ERROR.findall(text) if not line.startswith(("Details: ", "Context: ")))
    return "\n".join(dict.fromkeys(lines))
