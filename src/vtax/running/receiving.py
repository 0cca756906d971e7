"""What a machine says while it runs cells, and where that goes: into the campaign, to the listener, to the clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vtax import events
from vtax.errors import ProvisionError
from vtax.machines.channel import Message
from vtax.model.cluster import CellRecord
from vtax.model.plan import Cell, PlannedTrial
from vtax.model.trial import Status, TrialRecord
from vtax.running.trial import not_run

if TYPE_CHECKING:
    from vtax.running.fleet import Fleet

PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-%")


class Receiver:
    """The records of one machine. What comes from it is checked: it may only write what it was asked for."""

    def __init__(self, fleet: Fleet, machine: str) -> None:
        self.fleet, self.machine = fleet, machine
        self.cells = {cell.id: cell for cell in fleet.plan.cells if cell.machine == machine}
        self.trials = {trial.id: (cell, trial) for cell in self.cells.values() for trial in cell.trials}
        self.running = ""  # the trial that has begun and is not stored
        self.counted: TrialRecord | None = None  # the last trial that was stored, as it counts
        self.stored = 0

    def heard(self, message: Message) -> None:
        """Store one message. Raises ValueError or KeyError for one that makes no sense, StoreError."""
        content = message.content
        with self.fleet.together:
            if "trial" in content:
                self._trial(str(content["trial"]), content["files"], message.payload)
            elif "cell" in content:
                record = CellRecord.model_validate(content["cell"])
                if record.cell not in self.cells:
                    raise ValueError(f"{record.cell} is no cell of this machine")
                self.fleet.campaign.save_cell(record)
            elif "file" in content:
                self._log(str(content["file"]), message.payload)
            elif "done" in content:
                self.fleet.clock.done(str(content["done"]), float(content["elapsed_s"]), ran=bool(content["ran"]))
            elif "ready" in content:
                self.fleet.clock.ready(str(content["ready"]))
            elif "event" in content:
                self._event(str(content["event"]), dict(content["fields"]))

    def _trial(self, name: str, sizes: dict[str, int], payload: bytes) -> None:
        """Write a trial's files, and have its output read."""
        if name not in self.trials or self.fleet.campaign.has(name):
            raise ValueError(f"{name} is not a trial that was asked for")
        with self.fleet.campaign.new_trial(name) as place:
            begin = 0
            for file, size in sizes.items():
                _plain(place, file).write_bytes(payload[begin : begin + size])
                begin += size
            record = TrialRecord.model_validate_json((place / "record.json").read_bytes())
            if record.id != name or begin != len(payload):
                raise ValueError(f"the record of {name} is not its own")
        self.running = ""
        self.stored += 1
        self.fleet.agents[self.machine].tell({"stored": name})
        self.counted = self.fleet.readings.counted(record)

    def _log(self, name: str, content: bytes) -> None:
        """A node's console."""
        top, _, file = name.partition("/")
        if top != "cells" or not any(file.startswith(f"{cell}.") for cell in self.cells) or set(file) - PLAIN:
            raise ValueError(f"{name} is not a file of this machine's cells")
        self.fleet.campaign.save(name, content)

    def _event(self, kind: str, fields: dict[str, Any]) -> None:
        if kind == "TrialStarted":
            self.running = str(fields["trial"])
        if kind == "TrialFinished":
            clock, look = self.fleet.clock, fields["look"]
            fields |= {"remaining_s": clock.remaining_s(), "look_s": clock.remaining_s(look)}
            if self.counted is not None and self.counted.id == fields["trial"]:
                fields |= {"status": self.counted.status.value, "failure": self.counted.failure}
        made = getattr(events, kind, None)
        if not isinstance(made, type) or not issubclass(made, events.Event):
            raise ValueError(f"{kind} is not an event")
        self.fleet.listener(made(**fields))

    def lose(self, why: str) -> str:
        """Record the trial that was running as failed. Returns that as a sentence."""
        name, self.running = self.running, ""
        if name not in self.trials or self.fleet.campaign.has(name):
            return "no trial was running"
        cell, trial = self.trials[name]
        self.not_run(cell, trial, why, Status.FAILED)
        return f"{name} is lost"

    def not_run(self, cell: Cell, trial: PlannedTrial, why: str, status: Status = Status.NOT_RUN) -> None:
        """Record a trial of which nothing is there."""
        fleet = self.fleet
        with fleet.together:
            work = fleet.plan.work_of(cell.environment, trial.work)
            with fleet.campaign.new_trial(trial.id) as place:
                record = not_run(cell, trial, work, why, place, fleet.plan.sha256, fleet.wall, status)
            fleet.readings.counted(record)
            fleet.clock.done(cell.id, 0.0, ran=False)
            look = next(look for look in fleet.plan.study.looks if look >= cell.round)
            left_s, look_s = fleet.clock.remaining_s(), fleet.clock.remaining_s(look)
            fleet.listener(events.TrialFinished(trial.id, status.value, why, 0.0, left_s, look, look_s))


def _plain(place: Path, name: str) -> Path:
    if not name or name.startswith(".") or set(name) - PLAIN:
        raise ProvisionError(f"a machine sent a file called {name!r}", remedy="is that machine what it should be?")
    return place / name
