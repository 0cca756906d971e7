"""Names of network namespaces that tests make. They say which process made them, so what a test that was killed has
left is found, and removed, by the next one that makes any."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
from pathlib import Path

PLACE = Path("/run/netns")
NAME = re.compile(r"vtaxtest-(?P<process>\d+)-(?P<started>\d+)-\d+")  # then what the test calls it
NUMBERS = itertools.count(1)


def new_name(purpose: str) -> str:
    """A name for a namespace of this process, after what earlier ones left has been removed."""
    remove_abandoned()
    return f"vtaxtest-{os.getpid()}-{started(os.getpid())}-{next(NUMBERS)}{purpose}"


def remove_abandoned() -> None:
    """End what runs in the namespaces of tests that were killed, and remove these."""
    for name in sorted(path.name for path in PLACE.glob("vtaxtest-*")):
        found = NAME.match(name)
        if found is None or started(int(found["process"])) == int(found["started"]):
            continue
        for line in ip("netns", "pids", name).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)
        ip("netns", "del", name)


def ip(*words: str) -> str:
    """What it prints; another session may be removing the same."""
    return subprocess.run(("ip", *words), capture_output=True, text=True, timeout=20, check=False).stdout


def started(process: int) -> int:
    """When a process began, in ticks since the machine did; 0 of one that has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    state, *words = text.rpartition(")")[2].split()
    return 0 if state == "Z" else int(words[18])
