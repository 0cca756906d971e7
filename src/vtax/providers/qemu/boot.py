"""The wait for the nodes of a cluster, and the first login."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from vtax.cluster.access import wait_for_banner, write_ssh_config
from vtax.providers.base import Site
from vtax.providers.guest import console, ready
from vtax.providers.qemu import qmp
from vtax.providers.qemu.command import Machine
from vtax.providers.qemu.processes import ended
from vtax.transport.parallel import each
from vtax.transport.ssh import SshTransport

READY_S = 60.0
POLL_S = 0.05


def wait_until_ready(
    site: Site, machines: Sequence[Machine], places: Mapping[str, str], timeout_factor: float, deadline: float
) -> None:
    """Return when every node is ready and a connection to it is open. Raises ProvisionError."""
    master = machines[0]
    usernet = qmp.ask(master.directory / "qmp", "human-monitor-command", {"command-line": "info usernet"})
    port = qmp.forwarded_port(usernet)
    ports = {master.node.name: port}
    config = write_ssh_config(
        site.directory, site.keys, ports, behind=places, timeout_factor=timeout_factor, paused=site.paused
    )

    def wait(machine: Machine, checks: Sequence[console.Check] = ()) -> None:
        log, limit_s = site.console(machine.node.name), READY_S * timeout_factor
        ready.wait(machine.node, log, lambda: ended(machine), limit_s, deadline, POLL_S, checks)

    def log_in() -> None:
        """Open the connections that all commands share while the nodes still wait for the shared directory; the
        master's first, because the others go through it."""
        for group in (machines[:1], machines[1:]):
            each(lambda machine: wait(machine, console.STARTED), group)
            if group[0] is master:
                wait_for_banner(master.node.name, port, deadline, answer_s=2 * timeout_factor)
            each(lambda machine: SshTransport(config, machine.node.name, timeout_factor).open(), group)

    with ThreadPoolExecutor(max_workers=1) as pool:
        logged_in = pool.submit(log_in)
        each(wait, machines)
        logged_in.result()
