"""Events of the kernel and of processors, counted from outside of what causes them: perf_event_open without `perf`.

A control group is counted on each CPU, a process in each of its threads; what they start is counted with them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vtax.model.outside import EVENTS

CALLS = {"x86_64": 298, "aarch64": 241}  # the number of perf_event_open
SIZE = 64  # of struct perf_event_attr in its first version
ENABLED_AND_RUNNING = 3  # read_format: for how long it was to be counted, and was
INHERIT = 1 << 1  # a bit of the flags
GROUP, CLOEXEC = 1 << 2, 1 << 3
UNKNOWN = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV)
NOT_COUNTED = "this machine's processors, or its kernel, do not count it"
COUNT = struct.Struct("=QQQ")


class Subject(NamedTuple):
    """What is counted: a control group in the hierarchy of events, or a process."""

    group: Path | None = None
    process: int | None = None


class Counter:
    """One event of one subject, counted since it was opened. Raises OSError with a reason where it is not counted."""

    def __init__(self, event: str, subject: Subject) -> None:
        self.event, self.open = event, list[int]()
        try:
            if subject.group is not None:
                self._count_group(subject.group)
            elif subject.process is not None:
                threads = [int(place.name) for place in Path(f"/proc/{subject.process}/task").iterdir()]
                self.open += [_opened(event, thread, -1, CLOEXEC, INHERIT) for thread in threads]
        except BaseException:
            self.close()
            raise

    def _count_group(self, group: Path) -> None:
        descriptor = os.open(group, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for cpu in online():
                self.open.append(_opened(self.event, descriptor, cpu, GROUP | CLOEXEC, 0))
        finally:
            os.close(descriptor)

    def read(self) -> int | None:
        """What was counted so far; None when the counter was shared with others, so that a part of it is missing."""
        counts = [COUNT.unpack(os.read(one, COUNT.size)) for one in self.open]
        whole = bool(counts) and all(enabled == running for _, enabled, running in counts)
        return sum(count for count, _, _ in counts) if whole else None

    def close(self) -> None:
        while self.open:
            with suppress(OSError):
                os.close(self.open.pop())


def online(root: Path = Path("/")) -> Sequence[int]:
    """The CPUs that run."""
    found: list[int] = []
    for part in (root / "sys/devices/system/cpu/online").read_text().strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def attributes(event: str, flags: int) -> bytes:
    """struct perf_event_attr: type, size, config, period, sample_type, read_format, flags, and nothing else."""
    kind, number, _ = EVENTS[event]
    return struct.pack("=IIQQQQQ", kind, SIZE, number, 0, 0, ENABLED_AND_RUNNING, flags).ljust(SIZE, b"\0")


def _opened(event: str, subject: int, cpu: int, options: int, flags: int) -> int:
    call = CALLS.get(platform.machine())
    if call is None:
        raise OSError(f"not on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes(event, flags), SIZE)
    numbers = (ctypes.c_int(subject), ctypes.c_int(cpu), ctypes.c_int(-1), ctypes.c_ulong(options))
    descriptor = libc.syscall(ctypes.c_long(call), given, *numbers)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, NOT_COUNTED if error in UNKNOWN else os.strerror(error))
    return int(descriptor)
