"""Who uses a run-time directory: a lock in it, which ends with the process that holds it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from vtax import files
from vtax.errors import UsageError

ALIVE = "alive"


@contextlib.contextmanager
def alive(directory: Path) -> Iterator[None]:
    """While this lasts, `is_alive(directory)` is true; it ends with the process, however that ends."""
    with contextlib.ExitStack() as stack:
        mine = None
        while mine is None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # `vtax clean` removed it: nobody used it yet
                mine = stack.enter_context(files.locked(directory / ALIVE))
        if not mine:
            raise UsageError(f"{directory} is used by another process", remedy="wait until it ends, or stop it")
        yield


@contextlib.contextmanager
def unused(directory: Path) -> Iterator[bool]:
    """While this lasts, no process begins to work for this run-time directory; False where one does already."""
    with contextlib.ExitStack() as stack:
        mine = True
        with contextlib.suppress(FileNotFoundError):  # then it is not there
            mine = stack.enter_context(files.locked(directory / ALIVE))
        yield mine


def is_alive(directory: Path) -> bool:
    """Whether a process that works for this run-time directory is running."""
    with contextlib.suppress(OSError):  # what cannot be locked was not locked by `alive`
        return files.is_locked(directory / ALIVE)
    return False
