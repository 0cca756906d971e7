"""N01, N02, N05, N08: whether packets went where they should, and whether there were enough of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, blocker, info, shown, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.trial import TrialRecord
from vtax.units import format_quantity

FEWEST_PACKETS = 100
NETWORK = ("iperf3", "ping")

CONNECTED = re.compile(r"local (\S+) port \d+ connected (?:to|with) (\S+) port \d+")
PINGED = re.compile(r"^PING \S+ \(([0-9a-fA-F.:]+)\)", re.MULTILINE)
PACKETS = re.compile(r"^(\d{1,9}) packets transmitted, (\d{1,9}) received", re.MULTILINE)
REPLY = re.compile(r"icmp_seq=(\d{1,9}) .*time=([\d.]{1,12}) ms")


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address in ("::1", "localhost")


def connections(record: TrialRecord) -> list[tuple[str, str]]:
    """(own address, peer's address) of every stream that a log of iperf3 names."""
    pairs = [(own, peer) for own, peer in CONNECTED.findall(logs.text_of(record))]
    for document in logs.documents(record):
        for stream in logs.at(document, "start", "connected") or ():
            own, peer = logs.at(stream, "local_host"), logs.at(stream, "remote_host")
            if isinstance(own, str) and isinstance(peer, str):
                pairs.append((own, peer))
    return pairs


def own_addresses(evidence: Evidence, environment: str, node: str) -> set[str]:
    """The addresses of a node's interfaces, as its facts have them."""
    listed = values_of(evidence, environment, "interfaces").get(node, [])
    return {str(a).partition("/")[0] for links in listed for link in links for a in link.get("addresses", ())}


@row(
    "N01",
    Severity.BLOCKER,
    "the peer of a network test is the node itself",
    why="traffic to an own address stays in the kernel's memory: this is memory bandwidth",
    remedy="measure between two nodes with network stacks of their own",
    source="addresses in logs of iperf3 (JSON or text) and ping, and the nodes' interfaces; also in imported logs",
    benchmarks=NETWORK,
)
def loopback(evidence: Evidence) -> Iterator[Finding | str]:
    """N01: iperf3 or ping between a node and itself."""
    for (environment, label), trials in evidence.entries(*NETWORK).items():
        pairs = [pair for trial in trials for pair in connections(trial)]
        for trial in trials:
            own = own_addresses(evidence, environment, trial.nodes[0] if trial.nodes else "")
            pairs += [(peer if peer in own else "", peer) for peer in logs.found(PINGED, trial)]
        inside = [peer for own_address, peer in pairs if is_loopback(peer) or own_address == peer]
        if inside:
            message = f"{label} in {environment} sent to {inside[0]}, an address of its own node: nothing left the node"
            yield blocker("N01", message, "", environment, label)
        elif pairs:
            yield f"{label} in {environment}: the peer is {shown(list(dict.fromkeys(peer for _, peer in pairs)))}"
        else:
            yield unknown("N01", f"the log of {label} names no address", environment, label)


@row(
    "N02",
    Severity.BLOCKER,
    "peers share one physical host, in some environments only",
    why="packets between nodes of one machine cross no wire; a real network in one environment and a bridge in another "
    "are two experiments",
    remedy="read such figures as those between nodes on one machine; for a physical network use nodes on two machines",
    source="the plan: whether all nodes of an environment are on the machine that runs vtax; not recorded in imported "
    "logs",
    benchmarks=NETWORK,
)
def one_host(evidence: Evidence) -> Iterator[Finding | str]:
    """N02: whether packets crossed a physical network, and whether that is so everywhere."""
    environments = tuple(dict.fromkeys(environment for environment, _ in evidence.entries(*NETWORK)))
    inside = [name for name in environments if evidence.capabilities(name).shares_machine]
    for name in (name for name in environments if name not in inside):
        yield unknown("N02", "the records do not say which machine each node ran on", name)
    if inside and len(inside) == len(environments):
        message = f"all nodes of {shown(inside)} are on one machine: network figures are between nodes on one machine"
        yield info("N02", message)
    elif inside:
        for label in evidence.labels_of(*NETWORK):
            message = f"the nodes of {shown(inside)} share one machine, which is not known of the other environments"
            yield warning("N02", message, "", "", label)


@row(
    "N05",
    Severity.BLOCKER,
    "a rate above that of the interface, or interfaces that are set otherwise",
    why="no wire carries more than its rate, so a path or a unit is wrong; packet size, segmentation offload and "
    "congestion control change what a connection reaches",
    remedy="look at the path; give the interfaces of all environments the same MTU and offloads",
    source="facts of the nodes: MTU, largest segment, congestion control, speed of physical interfaces; imported "
    "logs do "
    "not tell",
    benchmarks=("iperf3",),
)
def interfaces(evidence: Evidence) -> Iterator[Finding | str]:
    """N05: line rate, MTU, offload and congestion control."""
    seen: dict[str, dict[str, str]] = {}
    for environment in dict.fromkeys(environment for environment, _ in evidence.entries("iperf3")):
        links = [
            link
            for values in values_of(evidence, environment, "interfaces").values()
            for value in values
            for link in value
            if link.get("name") != "lo"
        ]
        if not links:
            yield unknown("N05", "no node told its interfaces", environment)
            continue
        algorithms = [v for every in values_of(evidence, environment, "tcp_congestion_control").values() for v in every]
        seen[environment] = {
            "MTU": shown(sorted({str(link["mtu"]) for link in links if "mtu" in link})),
            "largest segment": shown(sorted({str(link["gso_max_size"]) for link in links if "gso_max_size" in link})),
            "congestion control": shown(sorted({str(value) for value in algorithms})),
        }
        yield f"{environment}: " + ", ".join(
            f"{name} {value or 'unknown'}" for name, value in seen[environment].items()
        )
        yield from above_line_rate(
            evidence, environment, [link["speed_bits"] for link in links if "speed_bits" in link]
        )
    first = next(iter(seen), "")
    for environment in (name for name in seen if name != first):
        for name, value in seen[environment].items():
            if value and seen[first][name] and value != seen[first][name]:
                message = f"{name} is {value} in {environment} and {seen[first][name]} in {first}"
                yield warning("N05", message, "", environment, "iperf3")


def above_line_rate(evidence: Evidence, environment: str, speeds: list[int]) -> Iterator[Finding]:
    """Throughput above the fastest physical interface of the nodes; virtual ones have no rate."""
    for name, label in evidence.entries("iperf3"):
        rates = evidence.values(environment, label, "throughput")
        if name == environment and speeds and rates and max(rates) > max(speeds):
            rate, speed = format_quantity(max(rates), "bit/s"), format_quantity(max(speeds), "bit/s")
            yield blocker("N05", f"{label} in {environment}: {rate} exceeds the interface's {speed}", "", name, label)


@row(
    "N08",
    Severity.WARNING,
    "packets of ping were lost, are few, or include the first one",
    why="a handful of round trips has no reliable mean, and the first packet waits for address resolution",
    remedy="send 100 packets or more, after one that does not count",
    source="ping's closing lines, also in imported logs; single packets where the log lists them",
    benchmarks=("ping",),
)
def few_packets(evidence: Evidence) -> Iterator[Finding | str]:
    """N08: loss, few packets, a first packet that waited."""
    for (environment, label), trials in evidence.entries("ping").items():
        counted = [timed[-1] for trial in trials if (timed := PACKETS.findall(logs.text_of(trial)))]
        if not counted:
            yield unknown("N08", f"the log of {label} has no closing lines", environment, label)
            continue
        sent, received = (sum(int(pair[side]) for pair in counted) for side in (0, 1))
        fewest = min(int(pair[0]) for pair in counted)
        faults = []
        if received < sent:
            faults.append(f"{sent - received} of {sent} packets were lost")
        if fewest < FEWEST_PACKETS:
            faults.append(f"runs have {fewest} packets, fewer than {FEWEST_PACKETS}")
        if late := sum(first_waited(trial) for trial in trials):
            faults.append(f"the first packet of {late} runs took more than twice as long as any other")
        if faults:
            yield warning("N08", f"{label} in {environment}: {'; '.join(faults)}", "", environment, label)
        else:
            yield f"{label} in {environment}: {received} of {sent} packets came back"


def first_waited(record: TrialRecord) -> bool:
    """Whether packet 1 took more than twice as long as every other."""
    times = {int(number): float(ms) for number, ms in REPLY.findall(logs.text_of(record)) if logs.number(ms)}
    rest = [ms for number, ms in times.items() if number != 1]
    return bool(rest) and times.get(1, 0.0) > 2 * max(rest)
