"""From a node's command line to a node that answers, and when that was."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vtax.cluster.access import wait_for_banner
from vtax.errors import ProvisionError
from vtax.facts.processes import parent_of, program_of
from vtax.providers import overlay
from vtax.providers.base import Creation
from vtax.providers.container import engine as lines
from vtax.providers.container.client import COMMAND_S, Client
from vtax.transport import process


@dataclass(frozen=True)
class Order:
    """A node to start: the command that creates it, the files that it gets before it starts, and where its SSH server
    is reached; `port` None is the one that the engine chooses."""

    campaign: str
    name: str
    command: Sequence[str]
    content: bytes
    address: str
    port: int | None


def start(client: Client, order: Order, deadline: float) -> tuple[int, Creation]:
    """Create and start a node, and wait for its SSH server; returns the port of that."""
    ordered = time.monotonic()
    container = lines.name_of(order.campaign, order.name)
    client.must(order.command)
    client.must((client.name, "cp", "-", f"{container}:/"), stdin=order.content)
    client.must((client.name, "start", container), directory=client.runtime / order.campaign)
    described = client.described(container)
    port = order.port or _published(client, order, described)
    try:
        wait_for_banner(order.name, port, deadline, address=order.address)
    except ProvisionError as error:
        said = client.log(order.campaign, order.name)
        raise ProvisionError(error.message, detail=said, remedy=error.remedy) from error
    answered = time.monotonic()
    first = _first_line(client, container, ordered)
    return port, Creation(ordered, first, answered, runner_of(described, client.runners))


def bind_inside(client: Client, container: str, shared_path: str) -> None:
    """Mount inside the study's own image what the node has of its own: from outside, because it may not mount."""
    process_id = int(client.described(container)["State"]["Pid"])
    words = overlay.bind_inside(process_id, shared_path)
    process.run(words, timeout_s=COMMAND_S, env=process.system_environment(), check=True)


def runner_of(described: Mapping[str, Any], runners: Sequence[str]) -> int | None:
    """The process of this machine that runs a container; None when it is not to be seen here."""
    process_id = parent_of(int(described["State"].get("Pid") or 0))
    return process_id if process_id and program_of(process_id) in runners else None


def _published(client: Client, order: Order, described: Mapping[str, Any]) -> int:
    """The loopback port of a node's SSH server."""
    published = described["NetworkSettings"]["Ports"].get("22/tcp")
    if not published:
        said = client.log(order.campaign, order.name)
        raise ProvisionError(f"{order.name} ended immediately", detail=said, remedy=client.install_hint)
    return int(published[0]["HostPort"])


def _first_line(client: Client, container: str, ordered: float) -> float | None:
    """When a container printed its first line, on the monotonic clock; None when the engine's clock is not that of
    this machine."""
    said = client.run(("logs", "--timestamps", container))
    now = time.monotonic()
    written = lines.first_line(said.stdout)
    at = None if written is None else now - (time.time() - written)
    return at if at is not None and ordered <= at <= now else None
