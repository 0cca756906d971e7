"""SSH keys of a campaign: one for the user, one host key per node; made once, and known to all from the start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vtax.transport import process
from vtax.transport.parallel import each

USER = "user"


def make_keys(directory: Path, nodes: Sequence[str]) -> None:
    """Create `directory` with the keys `user` and one of each node's name; existing pairs stay. A private key without
    a whole public one is what a killed ssh-keygen leaves, and is made anew."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def make(name: str) -> None:
        other = directory / f"{name}.pub"
        if not other.exists() or not other.read_text().endswith("\n"):
            (directory / name).unlink(missing_ok=True)
            other.unlink(missing_ok=True)
            command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"vtax {name}", "-f", str(directory / name))
            process.run(command, timeout_s=20, check=True)

    each(make, [USER, *nodes])


def public(directory: Path, name: str) -> str:
    """The public key `name` as `type base64`, without its comment."""
    return " ".join((directory / f"{name}.pub").read_text().split()[:2])
