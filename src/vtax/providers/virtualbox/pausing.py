"""How virtual machines under VirtualBox are paused."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.errors import CommandError, PauseError
from vtax.providers.virtualbox import command as lines
from vtax.providers.virtualbox import manage
from vtax.transport.parallel import each

PAUSE, RESUME = "pause", "resume"
PAUSED, RUNNING = "paused", "running"


class MachinePausing:
    """`machines` are the names in VirtualBox."""

    reason = ""

    def __init__(self, machines: Sequence[str]) -> None:
        self.machines = tuple(machines)

    def pause(self) -> str:
        self._change(PAUSE, PAUSED)
        return f"VBoxManage controlvm {PAUSE}"

    def resume(self) -> None:
        self._change(RESUME, RUNNING)

    def _change(self, word: str, wanted: str) -> None:
        def one(name: str) -> None:
            try:
                manage.run(lines.control(name, word))
            except CommandError as error:
                if manage.about(name).get("VMState") != wanted:  # VirtualBox refuses to do it twice
                    raise PauseError(f"{name}: {error.message}", detail=error.detail) from error

        each(one, self.machines)
