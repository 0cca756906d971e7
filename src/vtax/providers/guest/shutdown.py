"""Shutdown of a guest through its second serial port, a Unix socket on the host: it needs no network."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

POWER_OFF = b"poweroff\n"  # which the guest's first process understands
POLL_S = 0.02


def power_off(path: Path, alive: Callable[[], bool], limit_s: float, poll_s: float = POLL_S) -> None:
    """Ask the guest to power off, and return when it has ended or the time is over. The connection stays open
    meanwhile, because what the guest has not read is lost when it closes."""
    deadline = time.monotonic() + limit_s
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(str(path))
        connection.sendall(POWER_OFF)
        while alive() and time.monotonic() < deadline:
            time.sleep(poll_s)
