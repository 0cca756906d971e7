"""The cells of one machine, run there by its agent: the same loop, whose records go to where the campaign is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from vtax.errors import CommandError, EnvironmentMissing, ProvisionError
from vtax.events import Event
from vtax.model.cluster import CellRecord, Image
from vtax.model.plan import Plan
from vtax.model.trial import TrialRecord
from vtax.providers.base import Provider
from vtax.running.cell import Running
from vtax.running.provision import prepare
from vtax.running.rounds import Rounds
from vtax.running.sites import label_of, sites
from vtax.running.wall import Wall


class Saying(Protocol):
    """The way to the machine with the campaign."""

    def say(self, content: Mapping[str, Any], payload: bytes = b"") -> None: ...

    def confirmed(self) -> None: ...


class Block:
    """A part of a campaign. It is the campaign of its cells, their readings and their clock: all of it is passed on."""

    def __init__(
        self,
        plan: Plan,
        campaign: str,
        providers: Mapping[str, Provider],
        image: Image,
        runtime: Path,
        about: Mapping[str, Any],
        kept: Mapping[str, bytes],
        way: Saying,
    ) -> None:
        self.plan, self.id, self.providers, self.image = plan, campaign, providers, image
        self.runtime, self.about, self.files, self.way = runtime, about, kept, way
        self.clusters = {str(name): int(count) for name, count in about["instances"].items()}
        self.rounds: Rounds | None = None

    def enter(self, stack: ExitStack) -> None:
        """Take the places of the clusters, until `stack` ends, and remove what an agent that was killed left there."""
        labels = {spec.name: label_of(self.id, spec.name) for spec in self.plan.environments}
        for name, label in labels.items():
            with suppress(ProvisionError, CommandError, EnvironmentMissing):
                self.providers[name].destroy(label)
        origin = Path(str(self.about["directory"]))
        places = stack.enter_context(sites(origin, self.id, self.plan, self.runtime, self.image))
        wall = Wall(after=float(self.about["after"]))
        wall.offset -= float(self.about["offset_s"])  # so that records of all machines have the times of one clock
        self.rounds = Rounds(Running(self.plan, self, self.providers, places, self, self._tell, wall))

    def prepare(self, environments: Sequence[str]) -> None:
        due = [spec for spec in self.plan.environments if spec.name in environments]
        prepare(due, self.providers, self.plan.shape, self.image)

    def run(self, cells: Sequence[str], pending: Mapping[str, Sequence[str]]) -> None:
        """Run what is pending of the cells of one round."""
        assert self.rounds is not None
        known = {cell.id: cell for cell in self.plan.cells}
        chosen = [known[name] for name in cells]
        todo = {
            cell.id: [trial for trial in cell.trials if trial.id in set(pending.get(cell.id, ()))] for cell in chosen
        }
        self.rounds.run(chosen, todo)

    def _tell(self, event: Event) -> None:
        self.way.say({"event": type(event).__name__, "fields": asdict(event)})

    # --- the campaign ------------------------------------------------------------------------------------------------

    @property
    def campaign(self) -> Block:
        return self

    def instances(self, cell: str) -> int:
        return self.clusters.get(cell, 0)

    @contextmanager
    def new_trial(self, trial: str) -> Iterator[Path]:
        """A directory that is passed on as soon as the record is in it, before the next trial may begin."""
        place = Path(tempfile.mkdtemp(prefix="trial-", dir=self.runtime))
        try:
            yield place
            found = {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}
            self.way.say(
                {"trial": trial, "files": {name: len(content) for name, content in found.items()}},
                b"".join(found.values()),
            )
            self.way.confirmed()
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def kept(self, sha256: str) -> bytes:
        return self.files[sha256]

    def save_cell(self, cell: CellRecord) -> None:
        """With how far the clock here is from that of the machine where the campaign is, and what is said of this
        machine there."""
        facts = {**cell.host_facts, "clock_ahead_s": float(self.about["offset_s"]), **self.about.get("given", {})}
        cell = cell.model_copy(update={"host_facts": facts})
        self.clusters[cell.cell] = max(cell.instance, self.clusters.get(cell.cell, 0))
        self.way.say({"cell": cell.model_dump(mode="json")})

    def save(self, name: str, content: bytes) -> None:
        self.way.say({"file": name}, content)

    # --- its readings and its clock -----------------------------------------------------------------------------------

    def counted(self, record: TrialRecord) -> TrialRecord:
        """The output is read where the campaign is, not on the machine that is measured; there it may be refused."""
        return record

    def done(self, cell: str, elapsed_s: float, *, ran: bool = True) -> None:
        self.way.say({"done": cell, "elapsed_s": elapsed_s, "ran": ran})

    def ready(self, cell: str) -> None:
        self.way.say({"ready": cell})

    def remaining_s(self, until: int | None = None) -> float:  # noqa: ARG002  # of the protocol
        return 0.0  # filled in where all machines are known
