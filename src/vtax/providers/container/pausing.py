"""How containers are paused: as root by their control groups, in 2 ms; else by the engine, in 70 to 170 ms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vtax.errors import PauseError
from vtax.model.trial import CommandResult
from vtax.providers.freezer import Freezer
from vtax.transport.parallel import each

Engine = Callable[[Sequence[str]], CommandResult]  # runs the engine's client with these words


class ContainerPausing:
    """`freezers` finds the control groups of all containers, and raises PauseError where they cannot be used; then, and
    where one of them does not freeze, the engine pauses the containers."""

    def __init__(
        self, engine: str, run: Engine, containers: Sequence[str], freezers: Callable[[], tuple[Freezer, ...]]
    ) -> None:
        self.engine, self.run, self.containers, self.find = engine, run, tuple(containers), freezers
        self.freezers: tuple[Freezer, ...] | None = None  # () once the engine has to do it
        self.reason = ""
        self.by_engine = False  # whether it has paused them now

    def pause(self) -> str:
        if self.freezers is None:
            self._find()
        if self.freezers:
            try:
                each(Freezer.freeze, self.freezers)
                return f"the freezer of control groups, version {self.freezers[0].version}"
            except PauseError as error:
                each(Freezer.thaw, self.freezers)
                self.freezers, self.reason = (), error.message
        if not self.by_engine:
            self._ask("pause")
            self.by_engine = True
        return f"{self.engine} pause ({self.reason})"

    def resume(self) -> None:
        if self.by_engine:
            self._ask("unpause")
            self.by_engine = False
        elif self.freezers:
            each(Freezer.thaw, self.freezers)

    def _find(self) -> None:
        try:
            self.freezers = self.find()
        except PauseError as error:
            self.freezers, self.reason = (), error.message

    def _ask(self, word: str) -> None:
        result = self.run((word, *self.containers))
        if result.exit_code != 0 or result.timed_out:
            said = (result.stderr.strip() or result.stdout.strip()).splitlines()
            raise PauseError(f"{self.engine} {word} failed: {said[-1] if said else 'no message'}")
