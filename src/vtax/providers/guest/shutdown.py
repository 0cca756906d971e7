"""The order to power off, through a serial port of the guest that is a Unix socket here: it needs no network."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

POWER_OFF = "poweroff"
POLL_S = 0.02


def order(path: Path, word: str, alive: Callable[[], bool], limit_s: float, poll_s: float = POLL_S) -> None:
    """Say a word to the guest's first process, and return when the guest has ended, or did not in time. What the guest
    has not read yet is forgotten when the connection closes, so it stays open."""
    deadline = time.monotonic() + limit_s
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(str(path))
        connection.sendall(f"{word}\n".encode())
        while alive() and time.monotonic() < deadline:
            time.sleep(poll_s)
