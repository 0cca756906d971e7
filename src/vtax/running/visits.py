"""The command that a trial measures: every node of it is entered once, for its counters, the command, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from vtax.errors import CommandError
from vtax.facts.counters import counters_script, parse_counters, with_host_clock
from vtax.model.nodes import Phase, Scope, Target
from vtax.model.plan import Step, Work
from vtax.model.trial import CommandResult, StepRecord
from vtax.providers.base import Cluster
from vtax.running import steps
from vtax.running.outputs import names_of, place_of, record_of
from vtax.transport.base import Transport, Visiting
from vtax.transport.parallel import each
from vtax.transport.process import Watch
from vtax.transport.visit import Asked, Errand

NOT_COUNTED = ":"  # a script that prints nothing
Counters = dict[str, dict[str, float]]  # of nodes


def counted_nodes(cluster: Cluster, target: Target) -> dict[str, Transport]:
    """The nodes of a target whose counters are read, each where its commands run.

    Nodes of one machine that are used as one have one set of counters, under the name of the first.
    """
    names = target.names
    parallel = target.scope in (Scope.WORKERS, Scope.CLUSTER)
    asked = names[:1] if parallel and frozenset(names) in cluster.shared_transports else names
    return {node: cluster.reach(node, names if parallel else (node,)) for node in asked}


def measured_step(work: Work) -> tuple[int, Step] | None:
    """The command that is measured and its number, where that is a single one; what serves it does not count."""
    found = [(n, step) for n, step in enumerate(work.steps) if step.phase is Phase.RUN and not step.background]
    return found[0] if len(found) == 1 and found[0][1].argv else None


class Visits:
    """One visit for every node of a step, all at the same time."""

    def __init__(self, cluster: Cluster, number: int, step: Step, target: Target, place: Path) -> None:
        self.number, self.step, self.target, self.place = number, step, target, place
        self.transports = {node: steps.transport_of(cluster, step, node, target) for node in step.nodes}
        counted = counted_nodes(cluster, target)
        self.counted = {node for node, transport in self.transports.items() if counted.get(node) is transport}
        self.visits: dict[str, Visiting] = {}
        self.results: dict[str, CommandResult] = {}
        self.before: Counters = {}
        self.after: Counters = {}

    def begin(self) -> None:
        """Enter the nodes and read their counters. Raises CommandError."""
        files = steps.files_of(self.step)

        def enter(node: str) -> None:
            out, err = names_of(f"{self.number}", node)
            asked = counters_script() if node in self.counted else NOT_COUNTED
            visit = self.visits[node] = self.transports[node].visit(
                Errand(self.step.argv, asked, files),
                timeout_s=self.step.timeout_s,
                directory=self.target.directory,
                stdout=self.place / out,
                stderr=self.place / err,
            )
            self._count(self.before, node, visit.before)

        each(enter, self.step.nodes, abandon=True)

    def run(self, watch: Watch) -> None:
        """Run the command on all nodes."""

        def one(node: str) -> None:
            self.results[node] = self.visits[node].run(watch)

        each(one, self.step.nodes, abandon=True)

    def leave(self) -> list[StepRecord]:
        """Read the counters again and fetch the files. Returns the record of every command that ran."""
        return each(self._record, [node for node in self.step.nodes if node in self.results], abandon=True)

    def end(self) -> None:
        """End whatever still runs."""
        for visit in self.visits.values():
            visit.end()

    def _record(self, node: str) -> StepRecord:
        places = {name: place_of(self.number, node, name, self.place) for name in steps.files_of(self.step)}
        found: Mapping[str, str] = {}
        with suppress(CommandError):  # it no longer answers; what is missing is missing in the record
            asked, found = self.visits[node].leave(places)
            self._count(self.after, node, asked)
        outputs = {name: places[name].name for name, reason in found.items() if not reason}
        made = record_of(f"{self.number}", self.number, node, self.step, self.results[node], outputs, self.place)
        return made.model_copy(update={"not_kept": {name: reason for name, reason in found.items() if reason}})

    def _count(self, counters: Counters, node: str, asked: Asked) -> None:
        if node in self.counted and asked.text:
            counters[node] = with_host_clock(parse_counters(asked.text), asked.started, asked.elapsed_s)
