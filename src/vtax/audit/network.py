"""N01, N02, N05: whether packets went where they should."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from vtax.evidence.campaign import Evidence, observed_in, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord
from vtax.units import format_quantity
from vtax.wording import plural

BETWEEN_NODES = (Scope.PAIRS,)


@row(
    "N01",
    Severity.BLOCKER,
    "the peer of a network test is the node itself",
    short="a node that talked to itself",
    why="traffic to the node's own address stays in the kernel's memory: this is memory bandwidth",
    remedy="measure between two nodes with their own network stacks",
    source="the addresses of both ends in the tools' output, and the nodes' interfaces; where the output has none, "
    "what the first node sent over its interfaces and over its loopback",
    scopes=BETWEEN_NODES,
    needs=(
        Needs("the addresses of both ends", facts=("server_address",)),
        Needs("what its interfaces carried", counters=("loopback_bytes",), origin=Origin.RUN),
    ),
)
def loopback(evidence: Evidence) -> Iterator[Result]:
    """N01: a network test between a node and itself."""
    for (environment, label), trials in evidence.entries().items():
        peers: dict[str, bool] = {}
        for trial in trials:
            own = own_addresses(evidence, trial)
            for facts in evidence.facts((trial,), "server_address"):
                client, server = str(facts.get("client_address", "")), str(facts["server_address"])
                to_itself = is_loopback(server) or is_loopback(client) or server == client or server in own
                peers[server] = peers.get(server, False) or to_itself
        if own_peers := [peer for peer, to_itself in peers.items() if to_itself]:
            message = (
                f"{label} in {environment} sent to {own_peers[0]}, an address on the same node, so nothing left it"
            )
            yield Failed(message, environment, label)
        elif peers:
            yield f"{label} in {environment}: the peer is {shown(list(peers))}"
        else:
            yield from to_its_loopback(evidence, environment, label, trials)


def to_its_loopback(
    evidence: Evidence, environment: str, label: str, trials: Sequence[TrialRecord]
) -> Iterator[Result]:
    """What a client sent, by the counters of its node: commands seldom print whom they talk to."""
    counted = [evidence.counters.get(trial.id, {}).get(trial.nodes[0], {}) for trial in trials if trial.nodes]
    sent = [(one["loopback_bytes"], one["network_sent_bytes"]) for one in counted if "loopback_bytes" in one]
    if not sent:
        return
    inside, outside = max(sent, key=lambda both: both[0] - both[1])
    amounts = f"{format_quantity(outside, 'byte')} to other nodes and {format_quantity(inside, 'byte')} to itself"
    if inside > outside:
        message = f"the client of {label} in {environment} sent {amounts}, so its peer was the node itself"
        yield Failed(message, environment, label)
    elif outside:
        yield f"{label} in {environment}: the client sent {amounts}"
    else:
        yield Undecided(f"{label} in {environment}: its node counted nothing that the client sent", environment, label)


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address in ("localhost", "ip6-localhost")


def own_addresses(evidence: Evidence, trial: TrialRecord) -> set[str]:
    """The addresses of the interfaces of a trial's first node, as the facts of its cell have them: on another machine
    it has others."""
    cells = [cell for cell in evidence.provisioned if cell.cell == trial.cell]
    known = (values for cell in cells for node, values in observed_in(cell) if node in trial.nodes[:1])
    listed = (link for values in known for link in values.get("interfaces", ()))
    return {str(a).partition("/")[0] for link in listed for a in link.get("addresses", ())}


@row(
    "N02",
    Severity.BLOCKER,
    "peers share one physical host, in some environments only",
    short="peers on one machine",
    why="packets between nodes of one machine cross no wire; a real network in one environment and a bridge in another "
    "are two experiments",
    remedy="read such figures as those between nodes on one machine; for a physical network use nodes on two machines",
    source="the plan: whether all nodes of an environment are on the machine that runs vtax",
    scopes=BETWEEN_NODES,
    needs=Needs("which machine each node ran on", origin=Origin.RUN),
    note="a note where all environments are on one machine, because all network figures are then between nodes on one "
    "machine and compare with each other; a blocker would forbid every network figure of a single machine",
)
def one_host(evidence: Evidence) -> Iterator[Result]:
    """N02: whether packets crossed a physical network, and whether that is so everywhere."""
    environments = tuple(dict.fromkeys(environment for environment, _ in evidence.entries()))
    inside = [name for name in environments if evidence.capabilities(name).shares_machine]
    for name in (name for name in environments if name not in inside):
        yield from crossing(name, *pairs_of(evidence, name))
    if inside and len(inside) == len(environments):
        message = f"all nodes of {shown(inside)} are on one machine: network figures are between nodes on one machine"
        yield Failed(message, severity=Severity.INFO)
    elif inside:
        for label in dict.fromkeys(label for _, label in evidence.entries()):
            message = f"the nodes of {shown(inside)} share one machine, which is not known of the other environments"
            yield Failed(message, entry=label, severity=Severity.WARNING)


def crossing(environment: str, across: list[str], inside: list[str]) -> Iterator[Result]:
    """Which pairs of nodes cross machines."""
    if across:
        yield f"{environment}: {shown(across)} {plural(len(across), 'crosses', 'cross')} machines"
    if inside:
        others = ", and others cross the network" if across else ""
        message = f"in {environment}, packets between the nodes of {shown(inside)} stay on one machine{others}"
        yield Failed(message, environment, severity=Severity.INFO)
    if not across and not inside:
        yield Undecided(f"{environment}: not recorded: which machine each node ran on", environment)


def pairs_of(evidence: Evidence, environment: str) -> tuple[list[str], list[str]]:
    """The pairs of nodes that were measured on two machines, and those on one, where clusters are on several."""
    placed = {cell.id: cell.placement for cell in evidence.plan.cells if cell.placement}
    across: dict[str, None] = {}
    inside: dict[str, None] = {}
    for (name, _), trials in evidence.entries().items():
        for trial in trials:
            where = placed.get(trial.cell)
            if evidence.capabilities(environment).away:
                where = _own_machines(evidence, environment, trial.nodes)
            if name == environment and where and len(trial.nodes) == 2:
                machines = {where[node] for node in trial.nodes}
                (across if len(machines) > 1 else inside)["-".join(trial.nodes)] = None
    return list(across), list(inside)


def _own_machines(evidence: Evidence, environment: str, nodes: Sequence[str]) -> dict[str, str]:
    """Node -> its machine, where the environment names one for each."""
    named = evidence.option(environment, "nodes")
    return {node: str(named.get(node, node)) if isinstance(named, Mapping) else node for node in nodes}


@row(
    "N05",
    Severity.BLOCKER,
    "a rate above that of the interface, or interfaces that are configured differently",
    short="unequal or exceeded interfaces",
    why="no wire carries more than its rate, so a path or a unit is wrong; packet size, segmentation offload and "
    "congestion control change what a connection reaches",
    remedy="check the path; give the interfaces of all environments the same MTU and offloads",
    source="facts of the nodes: MTU, largest segment, congestion control, speed of physical interfaces",
    scopes=BETWEEN_NODES,
    needs=Needs("the interfaces of its nodes", node=("interfaces",), origin=Origin.RUN),
)
def interfaces(evidence: Evidence) -> Iterator[Result]:
    """N05: line rate, MTU, offload and congestion control."""
    seen: dict[str, dict[str, str]] = {}
    rates = [one for one in evidence.measurements if one.unit == "bit/s" and not one.warmup]
    for environment in dict.fromkeys(one.environment for one in rates):
        listed = [v for every in values_of(evidence, environment, "interfaces").values() for v in every]
        links = [link for value in listed for link in value if link.get("name") != "lo"]
        if not links:
            continue
        algorithms = [v for every in values_of(evidence, environment, "tcp_congestion_control").values() for v in every]
        seen[environment] = {
            "MTU": shown(sorted({str(link["mtu"]) for link in links if "mtu" in link})),
            "largest segment": shown(sorted({str(link["gso_max_size"]) for link in links if "gso_max_size" in link})),
            "congestion control": shown(sorted({str(value) for value in algorithms})),
        }
        settings = (f"{name} {value or 'unknown'}" for name, value in seen[environment].items())
        yield f"{environment}: " + ", ".join(settings)
        speeds = [link["speed_bits"] for link in links if "speed_bits" in link]  # virtual interfaces have no rate
        for label in dict.fromkeys(one.label for one in rates if one.environment == environment):
            fastest = max(one.value for one in rates if (one.environment, one.label) == (environment, label))
            if speeds and fastest > max(speeds):
                rate, speed = format_quantity(fastest, "bit/s"), format_quantity(max(speeds), "bit/s")
                message = f"{label} in {environment}: {rate} exceeds the interface's {speed}"
                yield Failed(message, environment, label)
    first = next((name for name in (evidence.reference, *evidence.environments) if name in seen), "")
    for environment in (name for name in seen if name != first):
        for name, value in seen[environment].items():
            if value and seen[first][name] and value != seen[first][name]:
                message = f"{name} is {value} in {environment} and {seen[first][name]} in {first}"
                for benchmark in dict.fromkeys(one.benchmark for one in rates if one.environment == environment):
                    yield Failed(message, environment, benchmark, Severity.WARNING)
