"""Which addresses a cluster of containers gets, on a machine where some are taken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vtax.cluster.access import is_free
from vtax.errors import ProvisionError
from vtax.providers.container import engine as lines
from vtax.providers.container.client import Client
from vtax.providers.container.engine import Owner
from vtax.transport import process

ROUTES = Path("/proc/net/route")
ATTEMPTS = 20
TAKEN = ("overlap", "already used", "is already being used", "conflicts")  # in messages of the engines


def create(client: Client, owner: Owner) -> str:
    """Make the cluster's network; returns the first three numbers of its addresses. Some may be taken."""
    for attempt in range(ATTEMPTS):
        prefix = lines.subnet(owner.campaign, attempt)
        if lines.routed(prefix, ROUTES.read_text() if ROUTES.exists() else ""):
            continue
        result = client.run(lines.create_network(client.name, owner, prefix)[1:])
        if result.exit_code == 0:
            return prefix
        if not any(word in result.stderr.lower() for word in TAKEN):
            raise process.failed(result, client.install_hint)
    raise ProvisionError(
        f"none of {ATTEMPTS} private networks is free for {client.name}",
        remedy="run `vtax clean`: it removes those of crashed runs",
    )


def create_part(client: Client, owner: Owner, prefix: str, part: tuple[str, ...]) -> None:
    """Make this machine's part of a network with these addresses. Raises ProvisionError where they are taken: another
    attempt has others, on all machines."""
    result = None
    if not lines.routed(prefix, ROUTES.read_text() if ROUTES.exists() else ""):
        result = client.run(lines.create_network(client.name, owner, prefix, part)[1:])
        if result.exit_code == 0:
            return
        if not any(word in result.stderr.lower() for word in TAKEN):
            raise process.failed(result, client.install_hint)
    raise ProvisionError(
        f"the private network {prefix}.0/24 is taken on this machine",
        detail=result.stderr.strip() if result else f"{ROUTES} has a route to it",
        remedy="run `vtax clean`: it removes those of crashed runs",
    )


def free_loopback(campaign: str, names: Sequence[str]) -> tuple[str, int]:
    """Where nodes in this machine's own network may listen: the first three numbers of their addresses, the port."""
    for attempt in range(ATTEMPTS):
        prefix, port = lines.loopback(campaign, attempt)
        if all(is_free(address, port) for address in lines.addresses(prefix, tuple(names)).values()):
            return prefix, port
    raise ProvisionError(
        f"none of {ATTEMPTS} ports is free on this machine's loopback addresses",
        remedy="run `vtax clean`: it removes what crashed runs left behind",
    )
