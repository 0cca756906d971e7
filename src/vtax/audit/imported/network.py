"""N: whether figures of a network are figures of the network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from vtax.audit.imported.evidence import runs, where
from vtax.evidence.campaign import Evidence, blocker
from vtax.model.finding import Finding


def _loops(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address in ("localhost", "ip6-localhost")


def loopback(evidence: Evidence) -> Iterator[Finding]:
    """N01: a peer that is the machine itself."""
    for trial, facts in runs(evidence, "iperf3", "ping"):
        client, server = (str(facts.get(name, "")) for name in ("client_address", "server_address"))
        peer = server or (trial.nodes[1] if len(trial.nodes) > 1 else "")
        if _loops(peer) or _loops(client) or (client and client == server):
            message = f"{where(trial)} in {trial.environment}: traffic to {peer} never left the node; this is memory"
            yield blocker("N01", message, "measure between two nodes", trial.environment, trial.label)
