"""How this machine reaches the nodes: the cluster's own ssh_config, and the wait for each node's SSH banner."""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from vtax.cluster.keys import USER, public
from vtax.errors import ProvisionError, StoreError
from vtax.transport.ssh import banner_ready, banner_through

LONGEST_SOCKET = 90  # a Unix socket's path ends at 107 characters, and OpenSSH adds 17 of them
PROBED = "  ControlPersist 120\n  ServerAliveInterval 5\n  ServerAliveCountMax 6\n"
# A paused node answers no probe: a dead one is noticed by the time limits of commands. Four hours without a command are
# longer than any pause, and not for ever after `kill -9`.
PAUSED = "  ControlPersist 14400\n  ServerAliveInterval 0\n"
POLL_S = 0.02
LOOPBACK = "127.0.0.1"


def write_ssh_config(
    directory: Path,
    keys: Path,
    ports: Mapping[str, int],
    behind: Mapping[str, str] | None = None,
    timeout_factor: float = 1,
    at: Mapping[str, str] | None = None,
    paused: bool = False,
    through: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """`ssh_config` and `known_hosts` for nodes behind loopback ports. Returns the configuration's path.

    `at` are the loopback addresses of nodes that have their own. Nodes without any are reached `through` a command
    whose standard input and output are an SSH server's.

    Nodes without a port are `behind` the first that has one: name -> address as that node knows it.
    `timeout_factor` is how many times longer than usual a login may take. With `paused`, connections outlive pauses of
    the nodes.
    Nothing of the user's own SSH configuration is read or changed; one connection per node is shared by all commands.
    """
    config, hosts = directory / "ssh_config", directory / "known_hosts"
    hidden = {name: address for name, address in (behind or {}).items() if name not in ports}
    longest = max(len(str(directory / f"c-{name}")) for name in (*ports, *hidden, *(through or {})))
    if longest > LONGEST_SOCKET:
        raise StoreError(
            f"{directory} is too deep for SSH's control sockets ({longest} characters, {LONGEST_SOCKET} at most)",
            remedy="set XDG_STATE_HOME to a shorter path",
        )
    hosts.write_text("".join(f"{name} {public(keys, name)}\n" for name in (*ports, *hidden, *(through or {}))))
    blocks = [
        f"Host {name}\n  HostName {(at or {}).get(name, LOOPBACK)}\n  Port {port}\n  HostKeyAlias {name}\n"
        f"  ControlPath {directory}/c-{name}\n"
        for name, port in ports.items()
    ]
    blocks += [
        f"Host {name}\n  HostName {address}\n  ProxyJump {next(iter(ports))}\n  HostKeyAlias {name}\n"
        f"  ControlPath {directory}/c-{name}\n"
        for name, address in hidden.items()
    ]
    blocks += [
        f"Host {name}\n  HostName {name}\n  ProxyCommand {shlex.join(command).replace('%', '%%')}\n"
        f"  HostKeyAlias {name}\n  ControlPath {directory}/c-{name}\n"
        for name, command in (through or {}).items()
    ]
    common = (
        f"Host *\n  User root\n  IdentityFile {keys / USER}\n  IdentitiesOnly yes\n  UserKnownHostsFile {hosts}\n"
        "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n"
        f"  ControlMaster auto\n  ConnectTimeout {10 * timeout_factor:.0f}\n{PAUSED if paused else PROBED}"
        "  HashKnownHosts no\n"
    )
    config.write_text("\n".join([*blocks, common]))
    config.chmod(0o600)
    return config


def is_free(address: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
        except OSError:
            return False
        return True


def wait_for_banner(name: str, port: int, deadline: float, answer_s: float = 1, address: str = LOOPBACK) -> None:
    """Return when the server behind a loopback port sends its SSH banner. `deadline` is on the monotonic clock;
    `answer_s` is what one try may take."""
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((address, port), timeout=answer_s) as connection:
                connection.settimeout(answer_s)
                if banner_ready(connection.recv(32)):
                    return
        except OSError:
            pass  # not listening yet, or an accepted connection that is closed immediately
        time.sleep(POLL_S)
    raise ProvisionError(
        f"{name}: no SSH server answered on {address}:{port} in time",
        remedy="see the node's log above, if it wrote one; is the machine overloaded?",
    )


def wait_for_banner_through(
    config: Path, gateway: str, name: str, address: str, deadline: float, timeout_factor: float = 1
) -> None:
    """Return when the SSH server of a node sends its banner to `gateway`, through which it is reached."""
    while not banner_through(config, gateway, address, timeout_factor):
        if time.monotonic() > deadline:
            raise ProvisionError(
                f"{name}: no SSH server answered on {address} in time", remedy="see the node's console log"
            )
        time.sleep(POLL_S)
