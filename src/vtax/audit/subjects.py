"""Which benchmarks a row of the audit is about, by what they declare."""

from __future__ import annotations

from vtax.model.nodes import Scope
from vtax.model.trial import TrialRecord
from vtax.tools import benchmarks

MPI = tuple(name for name, one in benchmarks().items() if "mpirun" in one.requires)
STORAGE = tuple(
    name for name, one in benchmarks().items() if Scope.SHARED in one.scopes and getattr(one, "about_storage", True)
)
DISKS = tuple(  # these, and the workloads by name that are about disks
    name for name, one in benchmarks().items() if name in STORAGE or getattr(one, "group", "") == "Storage"
)
SERVERS = tuple(name for name, one in benchmarks().items() if getattr(one, "group", "") == "Servers")
SHORT = frozenset(name for name, one in benchmarks().items() if getattr(one, "short_by_nature", False))


def reporting(fact: str) -> tuple[str, ...]:
    """The benchmarks whose readers give a fact, as they declare it."""
    return tuple(name for name, one in benchmarks().items() if fact in getattr(one, "facts", ()))


def ran(trial: TrialRecord) -> bool:
    """Whether a command ran: what is noted of a cluster itself is the work of no program inside it."""
    return trial.scope is not Scope.PROVISIONING
