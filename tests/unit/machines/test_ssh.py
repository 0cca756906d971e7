"""What OpenSSH prints when it cannot log in, and what vtax makes of it: the reason, and the command to run by hand.

The lines are those of OpenSSH 9.2 (sshconnect.c, sshkey.c); the machines are not there.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vtax.errors import StoreError
from vtax.machines import parcel
from vtax.machines.ssh import ALIVE_S, HOLD, READY, Ssh
from vtax.model.study import MachineSpec

UNKNOWN = (
    "No ED25519 host key is known for node17 and you have requested strict checking.\r\nHost key verification failed."
)
CHANGED = (
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
    "Host key for node17 has changed and you have requested strict checking.\r\nHost key verification failed."
)
REFUSED = "lab@node17: Permission denied (publickey)."
AWAY = "ssh: connect to host node17 port 22: No route to host"


def machine(place: Path) -> Ssh:
    return Ssh("a", MachineSpec(ssh="lab@node17"), place)


@pytest.mark.parametrize(
    ("said", "why", "remedy"),
    [
        (UNKNOWN, "has a host key that is not known", "run `ssh lab@node17` by hand and compare the key"),
        (CHANGED, "has another host key than the one that is known", "ssh-keygen -R HOST"),
        (REFUSED, "refuses the login", "ssh-copy-id lab@node17"),
        (AWAY, "cannot be reached", "`ssh -o BatchMode=yes lab@node17 true` must work"),
        ("", "cannot be reached", "is the machine on"),
    ],
)
def test_a_login_that_fails_says_what_to_do(said: str, why: str, remedy: str) -> None:
    error = machine(Path("/s"))._refused(said)
    assert error.exit_code == 3
    assert error.message.startswith(f"machine a (lab@node17) {why}")
    assert remedy in error.remedy
    assert error.detail == said.replace("\r\n", "\n")


def test_every_command_uses_the_one_connection_and_asks_nothing() -> None:
    command = machine(Path("/s")).command(("printf", "%s", "a b; c"))
    assert command[0] == "ssh" and command[-3:] == ("--", "lab@node17", "printf %s 'a b; c'")
    options = dict(word.split("=", 1) for word in command if "=" in word)
    assert options["BatchMode"] == options["StrictHostKeyChecking"] == "yes"
    assert options["ProxyCommand"] == "false"  # where the connection is gone, no second one is made
    assert options["ControlMaster"] == "no"


@pytest.mark.parametrize("closed", ["stdin", "stdout"])
def test_the_other_side_ends_when_nobody_writes_or_nobody_reads(closed: str) -> None:
    """The second is how it learns that vtax is gone where the network was gone when vtax said so."""
    soon = HOLD.replace(f"timeout {ALIVE_S}", "timeout 0.2")
    assert soon != HOLD
    with subprocess.Popen(("sh", "-c", soon), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as side:
        assert side.stdin is not None and side.stdout is not None
        assert side.stdout.read(len(READY)) == READY
        assert side.stdout.read(1) == b"." and side.poll() is None
        (side.stdin if closed == "stdin" else side.stdout).close()
        side.wait(timeout=10)


def test_a_socket_that_openssh_could_not_make_is_refused() -> None:
    with pytest.raises(StoreError, match="too deep"):
        machine(Path("/" + "d" * 100))


def test_what_is_sent_is_the_same_each_time_and_has_what_an_agent_needs() -> None:
    names = [name for name, _ in parcel.contents()]
    assert {"vtax/running/agent.py", "pydantic/__init__.py", "typing_extensions.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    assert len(names) == len(set(names))
    assert len(parcel.digest()) == 64
