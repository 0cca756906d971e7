"""N: whether figures of the network are figures of the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from vtax.audit import logs
from vtax.audit.catalogue import row
from vtax.audit.evidence import Evidence, blocker, info, shown, unknown, values_of, warning
from vtax.model import Finding, Severity, TrialRecord
from vtax.units import format_quantity

REACHED = 0.98  # of the requested rate
DEFAULT_UDP = 1048576.0  # bit/s that iperf3 sends over UDP unless told otherwise
BUSY = 90.0  # % of a core
RETRANSMITTED = 0.001  # of all segments
SEGMENT_BYTES = 1448  # of Ethernet with timestamps, where the log does not tell
SLOW_START = 0.8  # of the later intervals' rate
FEWEST_PACKETS = 100
NETWORK = ("iperf3", "ping")
ONE_MACHINE = frozenset({"host", "docker", "podman", "qemu", "virtualbox"})  # providers whose nodes share one machine

CONNECTED = re.compile(r"local (\S+) port \d+ connected (?:to|with) (\S+) port \d+")
PINGED = re.compile(r"^PING \S+ \(([0-9a-fA-F.:]+)\)", re.MULTILINE)
PACKETS = re.compile(r"^(\d{1,9}) packets transmitted, (\d{1,9}) received", re.MULTILINE)
REPLY = re.compile(r"icmp_seq=(\d{1,9}) .*time=([\d.]{1,12}) ms")
SENT = re.compile(r"([\d.]+) ([KMGT]?)Bytes +[\d.]+ [KMGT]?bits/sec +(\d{1,12}) +sender")
FINAL = re.compile(r"\b(sender|receiver)[ \t]*\r?$", re.MULTILINE)
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

JSON_ONLY = "iperf3's JSON; a plain text log does not tell"


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
    source="the provider: all nodes of host, Docker, Podman, QEMU and VirtualBox are on the machine that runs vtax; "
    "imported logs do not tell",
    benchmarks=NETWORK,
)
def one_host(evidence: Evidence) -> Iterator[Finding | str]:
    """N02: whether packets crossed a physical network, and whether that is so everywhere."""
    environments = tuple(dict.fromkeys(environment for environment, _ in evidence.entries(*NETWORK)))
    inside = [name for name in environments if evidence.provider(name) in ONE_MACHINE]
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
    "N03",
    Severity.BLOCKER,
    "UDP arrives at the rate at which it was sent",
    why="then the figure is the request, not what the path can carry; iperf3 sends 1 Mbit/s unless told otherwise",
    remedy="raise `bitrate` until packets are lost, or compare TCP throughput",
    source="the plan's parameters, or iperf3's JSON; of an imported text log only iperf3's default rate is recognised",
    benchmarks=("iperf3",),
)
def udp_rate(evidence: Evidence) -> Iterator[Finding | str]:
    """N03: UDP that arrives at the rate at which it was sent."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        udp = [trial for trial in trials if is_udp(trial)]
        rates = evidence.values(environment, label, "throughput")
        if not udp or not rates:
            continue
        arrived, target = median(rates), requested(udp[0])
        if target is None and 0.9 * DEFAULT_UDP <= arrived <= 1.1 * DEFAULT_UDP:
            target = DEFAULT_UDP
        if target is None:
            yield unknown("N03", f"the rate that {label} was asked for is not known", environment, label)
            continue
        said = f"{label} in {environment} arrived at {format_quantity(arrived, 'bit/s')}, with "
        said += f"{format_quantity(target, 'bit/s')} requested"
        if arrived >= REACHED * target:
            message = f"{said}: this is the requested rate, not the capacity"
            yield blocker("N03", message, "", environment, label, metrics=("throughput",))
        else:
            yield said


def is_udp(record: TrialRecord) -> bool:
    """Whether a run of iperf3 was one over UDP."""
    if record.params.get("protocol"):
        return record.params["protocol"] == "udp"
    protocols = [str(logs.at(one, "start", "test_start", "protocol")).lower() for one in logs.documents(record)]
    return "udp" in protocols or "Lost/Total Datagrams" in logs.text_of(record)


def requested(record: TrialRecord) -> float | None:
    """The rate that was asked for, of all streams together, bit/s."""
    each, streams = logs.number(record.params.get("bitrate")), logs.number(record.params.get("parallel", 1))
    if each and streams:
        return each * streams
    for document in logs.documents(record):
        start = logs.at(document, "start", "test_start")
        each, streams = (logs.number(logs.at(start, name)) for name in ("target_bitrate", "num_streams"))
        if each and streams:
            return each * streams
    return None


@row(
    "N04",
    Severity.WARNING,
    "a single stream of iperf3 takes more than 90 % of a core",
    why="then the CPU is measured, not the network",
    remedy="read it as the CPU's cost of moving data, or use more streams (`parallel`)",
    source="`cpu_utilization_percent` in iperf3's JSON; imported text logs do not have it",
    benchmarks=("iperf3",),
)
def cpu_bound(evidence: Evidence) -> Iterator[Finding | str]:
    """N04: iperf3 limited by a CPU."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        shares: dict[str, list[float]] = {"host": [], "remote": []}
        for document in (document for trial in trials for document in logs.documents(trial)):
            if logs.at(document, "start", "test_start", "num_streams") not in (1, None):
                continue
            for side, seen in shares.items():
                value = logs.number(logs.at(document, "end", "cpu_utilization_percent", f"{side}_total"))
                seen += [] if value is None else [value]
        known = {side: median(seen) for side, seen in shares.items() if seen}
        if not known:
            yield unknown("N04", f"{label}: {JSON_ONLY}, or it had several streams", environment, label)
            continue
        said = ", ".join(f"{share:.0f} % of a core on the {name_of(side)}" for side, share in known.items())
        if max(known.values()) > BUSY:
            yield warning("N04", f"{label} in {environment} took {said}", "", environment, label)
        else:
            yield f"{label} in {environment}: {said}"


def name_of(side: str) -> str:
    return "client" if side == "host" else "server"


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
    "N06",
    Severity.WARNING,
    "TCP sent segments again, or its slow start is inside the interval",
    why="the mean then depends on losses and on the length of the run",
    remedy="set `omit_s` to 3 (iperf3 -O 3), and look for the cause of the losses",
    source="iperf3's JSON, or the closing lines of a text log",
    benchmarks=("iperf3",),
)
def retransmits(evidence: Evidence) -> Iterator[Finding | str]:
    """N06: retransmits, and slow start."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        tcp = [trial for trial in trials if not is_udp(trial)]
        counted = [each for trial in tcp for each in resent(trial)]
        if not tcp:
            continue
        if not counted:
            yield unknown("N06", f"the log of {label} has no count of retransmits", environment, label)
            continue
        again, segments = sum(count for count, _ in counted), sum(of for _, of in counted)
        slow = sum(any(starts_slowly(document) for document in logs.documents(trial)) for trial in tcp)
        if segments and again / segments > RETRANSMITTED:
            message = f"{label} in {environment}: {again:.0f} of about {segments:.0f} segments were sent again"
            yield warning("N06", message, "", environment, label)
        if slow:
            message = f"{label} in {environment}: {slow} of {len(tcp)} runs count TCP's slow start (nothing is omitted)"
            yield warning("N06", message, "", environment, label)
        yield f"{label} in {environment}: {again:.0f} of about {segments:.0f} segments sent again"


def resent(record: TrialRecord) -> Iterator[tuple[float, float]]:
    """(retransmits, segments) of every finished test in a log."""
    for document in logs.documents(record):
        total = logs.at(document, "end", "sum_sent")
        count, size = logs.number(logs.at(total, "retransmits")), logs.number(logs.at(total, "bytes"))
        each = logs.number(logs.at(document, "start", "tcp_mss_default")) or SEGMENT_BYTES
        if count is not None and size is not None:
            yield count, size / each
    for digits, prefix, count_text in SENT.findall(logs.text_of(record)):
        size = logs.number(digits)
        if size is not None:
            yield float(count_text), size * BYTES[prefix] / SEGMENT_BYTES


def starts_slowly(document: object) -> bool:
    """Whether nothing was omitted and the first interval is well below the others."""
    if logs.at(document, "start", "test_start", "omit") not in (0, None):
        return False
    every = logs.at(document, "intervals") or ()
    rates = [logs.number(logs.at(interval, "sum", "bits_per_second")) for interval in every]
    known = [rate for rate in rates if rate is not None]
    return len(known) > 2 and known[0] < SLOW_START * median(known[1:])


@row(
    "N07",
    Severity.BLOCKER,
    "throughput counted at the sender",
    why="the sender also counts what is still in buffers, and with UDP what was lost",
    remedy="use the client's log with its closing lines, or iperf3 -J",
    source="`sum_received` in iperf3's JSON, or the `receiver` line of a text log",
    benchmarks=("iperf3",),
)
def sender_side(evidence: Evidence) -> Iterator[Finding | str]:
    """N07: which side counted."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        sides = [sides_of(trial) for trial in trials]
        blind = [side for side in sides if "receiver" not in side]
        if blind and any(blind):
            message = f"{label} in {environment}: {len(blind)} of {len(sides)} logs have the sender's count only"
            yield blocker("N07", message, "", environment, label, metrics=("throughput",))
        elif blind:
            yield unknown("N07", f"{len(blind)} logs of {label} do not say which side counted", environment, label)
        else:
            yield f"{label} in {environment}: counted by the receiver"


def sides_of(record: TrialRecord) -> set[str]:
    """The sides whose totals a log holds."""
    sides = {side for document in logs.documents(record) for side in ends_of(document)}
    return sides | set(FINAL.findall(logs.text_of(record)))


def ends_of(document: object) -> Iterator[str]:
    for side, name in (("sender", "sum_sent"), ("receiver", "sum_received")):
        if logs.number(logs.at(document, "end", name, "bits_per_second")) is not None:
            yield side


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
