"""One directory for the nodes of a cluster on several machines, which the master's machine serves by NFS: whether they
can do that, and the making of it by their agents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from vtax.machines.agent import Agent, understood
from vtax.model.finding import Problem
from vtax.model.link import Link
from vtax.model.nodes import ClusterShape
from vtax.transport.parallel import each

REMEDY = "fix that, or set nfs = false in [shared]: entries on the shared directory are then left out"


def lacking(agents: Mapping[str, Agent], machines: Collection[str], servers: Collection[str]) -> list[str]:
    """Why `machines` cannot have one directory that each of `servers` may have to serve; nothing where they can."""

    def asked(name: str) -> list[str]:
        wanted = {"serve": name in servers, "mount": any(server != name for server in servers)}
        return [f"machine {name} cannot {what}: {why}" for what, why in refusals(agents[name]).items() if wanted[what]]

    return [reason for several in each(asked, machines) for reason in several]


def refusals(agent: Agent) -> dict[str, str]:
    """What a machine cannot do with a directory by NFS, "serve" or "mount", and why."""
    with understood(agent):
        said = agent.ask("nfs").content
        return {what: str(said[what]) for what in ("serve", "mount") if said[what]}


def problems(agents: Mapping[str, Agent], shape: ClusterShape) -> Iterator[Problem]:
    """Why a cluster cannot have the directory that its plan wants."""
    for reason in lacking(agents, shape.machines, [server_of(shape)]):
        yield Problem.blocker(f"the shared directory: {reason}", REMEDY)


def server_of(shape: ClusterShape) -> str:
    return shape.nodes[0].machine  # the master's


def share(agents: Mapping[str, Agent], links: Mapping[str, Link], labels: Mapping[str, str], provider: str) -> None:
    """Make the directory on all machines of a cluster: first on the one that serves it. `labels` are those of the
    parts. Raises ProvisionError or CommandError; what was made goes with the part."""
    link = next(iter(links.values()))
    if not link.server:
        return
    server, name = links[link.server], link.shared.rpartition("/")[2]
    clients, mine = server.others, labels[link.server]
    agents[link.server].ask("serve_share", label=mine, provider=provider, name=name, clients=clients)

    def mount(machine: str) -> None:
        own = labels[machine]
        agents[machine].ask("mount_share", label=own, provider=provider, name=name, server=server.local)

    each(mount, [machine for machine in links if machine != link.server])
