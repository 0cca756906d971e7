"""How quiet this machine is: a spin loop, a pass over memory and a write to disk, in pairs of adjacent time slots.

The loops are one call of numpy or of the kernel each, long enough that Python's own share of a slot is below a percent,
and without garbage collection. Nothing is left behind: the file has no name.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from vtax.errors import UsageError
from vtax.events import Listener, StageFinished, StageProgress, StageStarted
from vtax.facts.machine import machine_counters, machine_delta
from vtax.model.noise import NoiseReading, Probe

STAGE = "measuring how quiet this machine is"
SECONDS = 15.0  # for everything
SLOT_S = 0.28
WARM_S = 0.1  # before the first slot of every probe: caches, clock, the file's blocks
SPIN_VALUES = 2**15  # 256 KiB: in the second cache
PASS_VALUES = 2**24  # 128 MiB, read and written
WRITE_BYTES = 2**20
FILE_BYTES = 16 * WRITE_BYTES

Operation = Callable[[], object]


def measure(directory: Path, listener: Listener, seconds: float = SECONDS) -> NoiseReading:
    """Measure for `seconds`, the file of the disk's probe in `directory`. Raises UsageError where that cannot be
    written."""
    listener(StageStarted(STAGE, seconds))
    began = time.monotonic()
    deadline = began + seconds
    before, own = machine_counters(), cpu_s()
    with probes(directory) as operations, undisturbed():
        for operation in operations.values():
            rate(operation, min(deadline, time.monotonic() + WARM_S))
        rates: dict[str, list[float]] = {name: [] for name in operations}
        pair_s = 2 * SLOT_S
        while time.monotonic() + pair_s * len(operations) <= deadline:
            for name, operation in operations.items():
                pair = [rate(operation, min(deadline, time.monotonic() + SLOT_S)) for _ in range(2)]
                rates[name] += pair if time.monotonic() <= deadline else []
            listener(StageProgress(STAGE, f"{time.monotonic() - began:.0f} of {seconds:.0f} s"))
    counted = machine_delta(before, machine_counters())
    elapsed_s = time.monotonic() - began
    listener(StageFinished(STAGE, elapsed_s))
    return NoiseReading(
        elapsed_s=elapsed_s,
        slot_s=SLOT_S,
        apart_s=pair_s * len(rates),
        **shares(counted, cpu_s() - own),
        probes=tuple(Probe(name=name, rates=tuple(several)) for name, several in rates.items()),
    )


def rate(operation: Operation, until: float) -> float:
    """Operations per second until that moment, one at least."""
    count, began = 0, time.perf_counter()
    while count == 0 or time.monotonic() < until:
        operation()
        count += 1
    return count / (time.perf_counter() - began)


@contextlib.contextmanager
def probes(directory: Path) -> Iterator[Mapping[str, Operation]]:
    """What is repeated in the slots, by what it is called."""
    angles, sines = np.linspace(0, 1, SPIN_VALUES), np.empty(SPIN_VALUES)
    source, copy = np.ones(PASS_VALUES), np.ones(PASS_VALUES)  # their pages are there before the first slot
    block = bytes(WRITE_BYTES)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115  # closed below
    except OSError as error:
        raise UsageError(f"{directory} cannot be written: {error.strerror}", remedy="set XDG_STATE_HOME") from error
    with file:
        number = file.fileno()
        for place in range(0, FILE_BYTES, WRITE_BYTES):
            os.pwrite(number, block, place)
        os.fsync(number)
        places = iter(range(10**12))

        def write() -> None:
            os.pwrite(number, block, next(places) * WRITE_BYTES % FILE_BYTES)
            os.fsync(number)

        yield {
            "CPU": lambda: np.sin(angles, out=sines),
            "memory": lambda: np.copyto(copy, source),
            "disk": write,
        }


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """On one CPU, as a benchmark with one thread runs, and without garbage collection."""
    usable = os.sched_getaffinity(0)
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    os.sched_setaffinity(0, {min(usable)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)
        if was_on:
            gc.enable()


def cpu_s() -> float:
    """CPU time that this process has used."""
    used = os.times()
    return used.user + used.system


def shares(counted: Mapping[str, float], own_s: float) -> dict[str, float | None]:
    """Stolen CPU time, and that which other programs used, as shares of all; absent where it is not counted."""
    total, busy, stolen = (counted.get(f"{name}_ticks") for name in ("cpu", "busy", "steal"))
    if not total or busy is None or stolen is None:
        return {"stolen": None, "others": None}
    own = own_s * os.sysconf("SC_CLK_TCK")
    return {"stolen": stolen / total, "others": max(0.0, busy - stolen - own) / total}
