"""How virtual machines under QEMU are paused: by their monitors, in a few milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vtax.errors import PauseError, ProvisionError
from vtax.providers.qemu import qmp
from vtax.transport.parallel import each

STOP, CONTINUE = "stop", "cont"


class MonitorPausing:
    """`places` are the directories of the nodes, with their monitor sockets, which have so long to answer."""

    reason = ""

    def __init__(self, places: Sequence[Path], answer_s: float = qmp.ANSWER_S) -> None:
        self.places, self.answer_s = tuple(places), answer_s

    def pause(self) -> str:
        self._ask(STOP)
        return f"QEMU's monitor ({STOP})"

    def resume(self) -> None:
        self._ask(CONTINUE)

    def _ask(self, command: str) -> None:
        def one(place: Path) -> None:
            try:
                qmp.ask(place / "qmp", command, answer_s=self.answer_s)
            except ProvisionError as error:
                raise PauseError(f"{place.name}: {error.message}", remedy=error.remedy) from error

        each(one, self.places)
