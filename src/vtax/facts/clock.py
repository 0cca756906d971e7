"""The clock at which CPUs run while all of them are busy, measured.

A 64-bit multiplication that needs the result of the one before takes three cycles on every x86-64 CPU since 2008 (Intel
from Nehalem, AMD from K10; Agner Fog, "Instruction tables"). So a known number of them in a measured time gives the
clock, whatever the time-stamp counter or the kernel reports. On other processors nothing is measured.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from vtax.transport.process import end_with

CYCLES = 3  # of one multiplication that waits for the one before
UNROLLED = 64
ROUNDS = 200_000  # of the loop: about 15 ms
BEST_OF = 8
MULTIPLY = b"\x48\x0f\xaf\xc0"  # imul rax, rax
BODY = MULTIPLY * UNROLLED + b"\x48\xff\xcf"  # dec rdi
LOOP = b"\x48\x89\xf8" + BODY + b"\x0f\x85" + (-(len(BODY) + 6)).to_bytes(4, "little", signed=True) + b"\xc3"


def measured_clocks(cpus: Sequence[int]) -> dict[int, float]:
    """CPU -> clock in Hz with all of `cpus` busy at once; nothing where it cannot be measured."""
    if platform.machine() != "x86_64" or not cpus:
        return {}
    with ProcessPoolExecutor(len(cpus), get_context("fork"), end_with, (os.getpid(),)) as pool:
        try:
            clocks = list(pool.map(_clock, cpus))
        except OSError:  # no page may be executed here, or a CPU may not be used
            return {}
    return dict(zip(cpus, clocks, strict=True))


def _clock(cpu: int) -> float:
    """The clock of one CPU in Hz: the fastest of several short runs, since whatever disturbs only makes it slower."""
    os.sched_setaffinity(0, {cpu})
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(LOOP)
        start = ctypes.c_char.from_buffer(page)
        run = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(ctypes.addressof(start))
        best_s = min(_timed(run) for _ in range(BEST_OF))
        del run, start  # the page cannot be given back while something points into it
    return CYCLES * UNROLLED * ROUNDS / best_s


def _timed(run: ctypes._CFunctionType) -> float:
    began = time.thread_time()  # not wall time: other programs may share the CPU
    run(ROUNDS)
    return time.thread_time() - began
