"""The wait for the nodes of a cluster, and the first login."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from vtax.cluster.access import wait_for_banner, wait_for_banner_through, write_ssh_config
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
) -> tuple[dict[str, float], dict[str, float]]:
    """Return when every node is ready and a connection to it is open: node -> when its first process printed its first
    line, and when its SSH server first answered, on the monotonic clock. Raises ProvisionError."""
    master = machines[0]  # or the first node on this machine of a cluster on several
    first: dict[str, float] = {}
    answered: dict[str, float] = {}
    usernet = qmp.ask(master.directory / "qmp", "human-monitor-command", {"command-line": "info usernet"})
    port = qmp.forwarded_port(usernet)
    ports = {master.node.name: port}
    here = {machine.node.name: places[machine.node.name] for machine in machines}
    config = write_ssh_config(
        site.directory, site.keys, ports, behind=here, timeout_factor=timeout_factor, paused=site.paused
    )

    def wait(machine: Machine, checks: Sequence[console.Check] = ()) -> None:
        log, limit_s = site.console(machine.node.name), READY_S * timeout_factor
        ready.wait(machine.node, log, lambda: ended(machine), limit_s, deadline, POLL_S, checks)

    def log_in() -> None:
        """Open the connections that all commands share while the nodes still wait for the shared directory; the
        master's first, because the others go through it."""
        for group in (machines[:1], machines[1:]):
            each(lambda machine: wait(machine, console.STARTED), group)
            if master in group:
                wait_for_banner(master.node.name, port, deadline, answer_s=2 * timeout_factor)
                answered[master.node.name] = time.monotonic()
            each(open_connection, group)

    def open_connection(machine: Machine) -> None:
        name, transport = machine.node.name, SshTransport(config, machine.node.name, timeout_factor)
        if machine is not master:
            wait_for_banner_through(config, master.node.name, name, places[name], deadline, timeout_factor)
            answered[name] = time.monotonic()
        transport.open()

    def come_up(machine: Machine) -> None:
        wait(machine, console.STARTED[:1])
        first[machine.node.name] = time.monotonic()
        wait(machine)

    with ThreadPoolExecutor(max_workers=1) as pool:
        logged_in = pool.submit(log_in)
        each(come_up, machines)
        logged_in.result()
    return first, answered
