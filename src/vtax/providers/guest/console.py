"""A guest's console: how far the guest has come, and why it went no further. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vtax.model.nodes import NodeShape, Role

FATAL = re.compile(r"^.*(Kernel panic|Out of memory: Killed process|vtax-init \S+ failed: ).*$", re.MULTILINE)
SHOWN = 15  # last lines of a console that an error shows
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|c)|\r")


@dataclass(frozen=True)
class Check:
    """One line that must appear, in this order. `hint` is what to check when it does not."""

    what: str
    word: str  # that the first process prints when it is done
    hint: str

    def passed(self, text: str) -> bool:
        return re.search(rf"^vtax-init \S+ {self.word}$", text, re.MULTILINE) is not None


STARTED = (
    Check("the kernel started its first process", "mounted", "can any guest run here? run `vtax doctor`"),
    Check(
        "the node read its seed", "seeded", "it is read from QEMU's configuration (module qemu_fw_cfg) or from a disk"
    ),
    Check("the network is up", "network", 'does the kernel have a driver for this network card? try nic = "virtio"'),
    Check("the SSH server runs", "sshd", "see the console for its error"),
)
READY = Check("the node is ready", "ready", "see the console for its last step")
MASTER = (
    *STARTED,
    Check("the shared directory is exported", "exported", "is the module nfsd in the root file system?"),
    Check("the workers reach outside networks through the master", "gateway", "is nftables in the root file system?"),
    READY,
)
WORKER = (*STARTED, Check("the shared directory is mounted", "shared", "is the master up? see its console"), READY)


def checks_for(node: NodeShape) -> tuple[Check, ...]:
    return MASTER if node.role is Role.MASTER else WORKER


def plain(text: str) -> str:
    """A console's text without escape sequences."""
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
