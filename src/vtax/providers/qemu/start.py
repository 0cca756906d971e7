"""The start of a node's QEMU: in the foreground for QEMU, in the background for vtax."""

from __future__ import annotations

import time
from pathlib import Path

from vtax.errors import ProvisionError
from vtax.providers.qemu import qmp
from vtax.transport import process

POLL_S = 0.01
LOG = "qemu.log"


def start_machine(command: tuple[str, ...], place: Path, limit_s: float) -> process.Running:
    """Start a node, and return when its devices are there: then its monitor answers. It is in a session of its own, and
    outlives vtax. Raises CommandError with what QEMU printed."""
    running = process.start(command, stdout=place / "qemu.out", stderr=place / LOG)
    deadline = time.monotonic() + limit_s
    while not running.ended() and time.monotonic() < deadline:
        if _answers(place / "qmp"):
            return running
        time.sleep(POLL_S)
    late = not running.ended()
    result = running.stop()
    printed = (place / LOG).read_text(errors="replace")
    raise process.failed(result.model_copy(update={"stderr": printed, "timed_out": late}))


def _answers(monitor: Path) -> bool:
    try:
        qmp.ask(monitor, "query-status")
    except ProvisionError:
        return False
    return True
