"""The time that a running campaign writes into its records: this machine's, but never going back."""

from __future__ import annotations

import time
from collections.abc import Callable

Now = Callable[[], float]  # Unix time


class Wall:
    """Unix time that passes evenly. This machine's clock is read once, because it may be set while a campaign runs (by
    a person, by NTP), and the order of trials is read from their times. `after` is the end of the last trial of a
    campaign that is resumed, which a clock that was set back meanwhile has not reached."""

    def __init__(self, after: float = 0.0) -> None:
        now = time.time()
        self.behind_s = max(0.0, after - now)
        self.offset = now + self.behind_s - _passed()

    def __call__(self) -> float:
        return self.offset + _passed()


def _passed() -> float:
    """Since the start of this machine, the time included in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
