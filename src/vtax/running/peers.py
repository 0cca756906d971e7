"""Who logs in to whom when a new cluster is verified, what nodes are asked for that, and what is wrong in the answers.

Pure. Up to `EVERY_PAIR` nodes that is every ordered pair. Pairs grow with the square of the nodes, so more nodes are
checked from the first one to all others (it starts the ranks), along a ring, and along random chords: a part of a
network, or a node that nobody reaches, is in one of these.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from vtax.model.nodes import EVERY_PAIR

AT_ONCE = 16  # logins of one node: each takes 5 MB of its memory
LOGIN_S = 10.0  # and as many more as there are nodes: they log in at the same time, maybe on few CPUs


def logins(names: Sequence[str], seed: int) -> dict[str, tuple[str, ...]]:
    """The nodes that each node logs in to. In the ring, and by chords, every node is logged in to as often as it logs
    in itself."""
    if len(names) <= EVERY_PAIR:
        return {name: tuple(other for other in names if other != name) for name in names}
    mixed = random.Random(seed).sample(list(names), len(names))
    found: dict[str, set[str]] = {name: set() for name in names}
    found[names[0]].update(names[1:])
    for order in (names, mixed):
        for client, server in zip(order, (*order[1:], order[0]), strict=True):
            found[client].add(server)
    return {name: tuple(other for other in names if other in found[name]) for name in names}


def sentence(checked: Mapping[str, Collection[str]], seed: int) -> str:
    """What was checked, as it is recorded."""
    nodes, pairs = len(checked), sum(map(len, checked.values()))
    if nodes <= EVERY_PAIR:
        return f"names and SSH between all {pairs} pairs of nodes"
    return (
        f"names of all {nodes} nodes on each, and SSH between {pairs} of {nodes * (nodes - 1)} pairs: from "
        f"{next(iter(checked))} to all, along a ring, and along random chords (seed {seed})"
    )


def script(names: Sequence[str], servers: Sequence[str], wait_s: float) -> str:
    """What a node runs to find all others by their `names` and to log in to `servers`, in the background: the caller
    waits. One process finds all names."""
    if not names:
        return ""
    found = (
        f"( getent hosts {shlex.join(names)} | while read -r address all; do "
        'for name in $all; do echo "vtax-name $name $address"; done; done ) 2>&1 </dev/null &'
    )
    calls = [
        f"ssh -o BatchMode=yes -o ConnectTimeout={wait_s:.0f} root@{server} echo vtax-login {server} 2>&1 </dev/null &"
        for server in servers
    ]
    if len(calls) > AT_ONCE:
        groups = ("\n".join(calls[start : start + AT_ONCE]) for start in range(0, len(calls), AT_ONCE))
        calls = ["(", *(f"{group}\nwait" for group in groups), ") &"]
    return "\n".join((found, *calls))


def wrong(name: str, addresses: Mapping[str, str], servers: Collection[str], text: str) -> list[str]:
    """What is wrong in a node's answer: names that it does not find, or elsewhere, and logins that fail."""
    found = dict(re.findall(r"^vtax-name (\S+) (\S+)$", text, re.MULTILINE))
    mistakes = []
    for other, address in addresses.items():
        if other in servers and f"vtax-login {other}\n" not in text:
            output = [line for line in text.splitlines() if not line.startswith("vtax-")]
            mistakes.append(f"{name} cannot log in to {other}: {output[-1] if output else 'no answer'}")
        if found.get(other) != address:
            mistakes.append(f"{name} finds {other} at {found.get(other, 'no address')}")
    return mistakes
