"""The wait until a guest reports on its console that it is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from vtax.errors import ProvisionError
from vtax.model.nodes import NodeShape
from vtax.providers.guest import console


def wait(
    node: NodeShape,
    log: Path,
    ended: Callable[[], str],
    limit_s: float,
    deadline: float,
    poll_s: float,
    checks: Sequence[console.Check] = (),
) -> None:
    """Return when the node is ready, or has passed `checks`. `ended` returns why it never will be, "" while it may;
    `deadline` is on the monotonic clock and `limit_s` long. Raises ProvisionError as soon as it is clear that it will
    not be."""
    checks = checks or console.checks_for(node)
    while True:
        dead = ended()  # before the console is read, which is complete once the guest has ended
        text = console.plain(log.read_text(errors="replace")) if log.exists() else ""
        missing = console.first_missing(text, checks)
        if missing is None:
            return
        reason = console.fatal(text) or dead
        if reason or time.monotonic() > deadline:
            raise ProvisionError(
                f"{node.name} does not come up: {reason or f'after {limit_s:.0f} s still waiting for: {missing.what}'}",
                detail=console.tail(text) or "the console is empty",
                remedy=missing.hint,
            )
        time.sleep(poll_s)
