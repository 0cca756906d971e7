"""N: whether figures of a network are figures of the network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from statistics import median

from vtax.audit.imported.evidence import runs, values, where
from vtax.evidence.campaign import Evidence, blocker, warning
from vtax.model.finding import Finding
from vtax.units import format_quantity

DEFAULT_UDP = 1.06e6  # bit/s: iperf3 sends 1 MiB/8 a second when nobody asks for more
LOST_FEW = 0.02


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


def udp_rate(evidence: Evidence) -> Iterator[Finding]:
    """N03: UDP at the rate that was asked for, or at iperf3's own 1 Mbit/s."""
    seen = set()
    for trial, facts in runs(evidence, "iperf3"):
        if facts.get("protocol") != "udp" or (trial.environment, trial.label) in seen:
            continue
        mine = [one for one in evidence.measurements if one.trial == trial.id]
        rates = [one.value for one in mine if one.metric == "throughput"]
        lost = [one.value for one in mine if one.metric == "lost_fraction"]
        if not rates or (lost and max(lost) > LOST_FEW):
            continue
        seen.add((trial.environment, trial.label))
        rate = format_quantity(median(rates), "bit/s")
        default = facts.get("bitrate_asked") == "default" or median(rates) <= DEFAULT_UDP
        asked = "iperf3's default rate, because no -b was given" if default else "the rate that was asked for"
        message = f"{where(trial)} in {trial.environment}: UDP arrived at {rate}: {asked}, not what the path can carry"
        yield blocker("N03", message, "raise -b until packets are lost", trial.environment, trial.label)


def retransmits(evidence: Evidence) -> Iterator[Finding]:
    """N06: TCP that sent segments again, with its slow start counted."""
    for environment in {trial.environment: 0 for trial, _ in runs(evidence, "iperf3")}:
        counts = values(evidence, environment, "iperf3", "retransmits")
        if counts and max(counts) > 0:
            message = f"TCP in {environment} sent {max(counts):.0f} segments again in one run (of {len(counts)} runs)"
            yield warning("N06", message, "use -O 3, and look for what drops packets", environment, "iperf3")
