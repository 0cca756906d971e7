"""The same thing done to several nodes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
MOST = 16


def each(function: Callable[[T], R], items: Iterable[T], *, abandon: bool = False) -> list[R]:
    """`function` of every item, in order, at the same time; the first exception is raised when all have ended.

    With `abandon`, an interrupt does not wait for the others: for work that ends by itself when its cluster goes.
    """
    todo = list(items)
    if len(todo) == 1:
        return [function(todo[0])]
    pool = ThreadPoolExecutor(max_workers=max(1, min(MOST, len(todo))))
    wait = True
    try:
        return list(pool.map(function, todo))
    except KeyboardInterrupt:
        wait = not abandon
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)
