"""What a guest's console says: how far it has come, and why it went no further. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vtax.model.nodes import NodeShape, Role

FATAL = re.compile(r"^.*(Kernel panic|Out of memory: Killed process|vtax-init \S+ failed: ).*$", re.MULTILINE)
SHOWN = 15  # last lines of a console that an error tells
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|c)|\r")


@dataclass(frozen=True)
class Check:
    """One thing that must be seen, in this order. `hint` is what to look at when it is not."""

    what: str
    word: str  # that the first process tells when it is done
    hint: str

    def passed(self, text: str) -> bool:
        return re.search(rf"^vtax-init \S+ {self.word}$", text, re.MULTILINE) is not None


STARTED = (
    Check("the kernel started its first process", "mounted", "does any guest run here? `vtax doctor` says"),
    Check("the node read its seed", "seeded", "it looks in QEMU's configuration (module qemu_fw_cfg) and on its disks"),
    Check("the network is up", "network", "does the kernel have a driver for this network card? try nic = virtio"),
    Check("the SSH server runs", "sshd", "the console says what it did not like"),
)
READY = Check("the node is ready", "ready", "the console says what it was doing")
MASTER = (
    *STARTED,
    Check("the shared directory is exported", "exported", "is the module nfsd in the root file system?"),
    Check("the workers reach the outside through the master", "gateway", "is nftables in the root file system?"),
    READY,
)
WORKER = (*STARTED, Check("the shared directory is mounted", "shared", "is the master up? see its console"), READY)


def checks_for(node: NodeShape) -> tuple[Check, ...]:
    return MASTER if node.role is Role.MASTER else WORKER


def plain(text: str) -> str:
    """A console's text without what moves cursors."""
    return ESCAPES.sub("", text)


def first_missing(text: str, checks: Sequence[Check]) -> Check | None:
    """The first check that has not passed; None when all have."""
    return next((check for check in checks if not check.passed(text)), None)


def fatal(text: str) -> str:
    """The line that says that this guest will never be ready; "" when none does."""
    found = FATAL.search(text)
    return found[0].strip() if found else ""


def tail(text: str) -> str:
    """The last lines, for an error."""
    return "\n".join(text.strip().splitlines()[-SHOWN:])
