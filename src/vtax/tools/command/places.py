"""On which node of a target a command runs: by its role in the study, or by what it is for."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.errors import UsageError
from vtax.model.nodes import Scope, Target
from vtax.tools.command.params import CommandParams, ServiceTable

ALONE = (Scope.NODE, Scope.SHARED)
NODE, SERVER, CLIENT, MASTER = "node", "server", "client", "master"


def roles_of(scopes: Sequence[Scope]) -> tuple[str, ...]:
    """The words for nodes that mean something in all of these scopes; `worker1` stands for every worker."""
    return tuple(word for word in (NODE, SERVER, CLIENT, MASTER, "worker1") if all(_known(word, one) for one in scopes))


def _known(role: str, scope: Scope) -> bool:
    match scope:
        case Scope.PAIRS:
            return role in (SERVER, CLIENT)
        case Scope.CLUSTER:
            return role == MASTER or role.startswith("worker")
        case Scope.WORKERS:
            return role.startswith("worker")
        case _:
            return role in (NODE, SERVER, CLIENT)


def known(role: str, scopes: Sequence[Scope]) -> bool:
    """Whether a word for a node means something in all of these scopes."""
    return all(_known(role, scope) for scope in scopes)


class Places:
    """The nodes of one target, by role. Without a role a service is on the server and everything else on the client;
    `setup` is where the first service is, because what it makes is usually that service's data."""

    def __init__(self, params: CommandParams, target: Target) -> None:
        self.target = target
        names = target.names
        self._client, self._server = names[0], names[-1] if target.scope is Scope.PAIRS else names[0]
        self.run = self.node(params.running.on, self._client)
        self.server = self.service(params.services[0]) if params.services else self._server
        self.setup = self.server if params.services else self.run

    def service(self, table: ServiceTable) -> str:
        return self.node(table.on, self._server)

    def node(self, role: str | None, default: str) -> str:
        """The node with a role. Raises UsageError for one that the target does not have."""
        if role is None:
            return default
        if role in (NODE, SERVER, CLIENT):
            return self._server if role == SERVER else self._client
        if role not in self.target.names:
            raise UsageError(
                f'on = "{role}": that node does not take part in scope "{self.target.scope}"',
                remedy=f"it has {', '.join(self.target.names)}",
            )
        return role
