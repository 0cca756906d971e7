"""N09: the network between the machines of a cluster: what each end is, and how large packets cross it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.audit.several import several
from vtax.evidence.campaign import Evidence, observed, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.providers.tunnel import OVERHEAD
from vtax.units import format_quantity

TUNNEL = "vxlan"
CROSSED = "packets of "  # begins the check of a new cluster that packets of the planned size crossed
JUMBO = (
    "give the interfaces of all machines, and the switch between them, jumbo frames (`ip link set dev NAME mtu 9000`): "
    f"then {OVERHEAD} bytes are 0.6 % of a packet instead of 3 %"
)
JUMBO_MTU = 4000  # from about which the overlay's headers are 1 % of a packet


def apart(evidence: Evidence) -> str:
    """Why the row does not apply; "" when nodes of one cluster are on several machines."""
    return several(evidence) or ("" if evidence.plan.study.apart else "every cluster is on one machine")


@row(
    "N09",
    Severity.WARNING,
    "the network between machines differs between their ends, or between environments",
    short="unequal ends of a network",
    why="a path is as fast as its slower end, and carries packets as large as its narrowest part; an overlay takes 50 "
    "bytes of every packet for its own headers, which the machines' own network does not",
    remedy="use the same interface, speed and MTU on all machines, and the same network in all environments",
    source="the interface of every machine, its speed and MTU; the network that vtax made between the nodes; packets "
    "of the planned size, which may not be fragmented, from every node to one on another machine",
    needs=Needs("the interfaces between the machines", node=("uplink", "between_machines"), origin=Origin.RUN),
    note="a note where an overlay and the machines' own network are compared, or where its packets are small",
    applies=apart,
)
def between(evidence: Evidence) -> Iterator[Result]:
    """N09: interfaces at both ends, and the MTU end to end."""
    uplinks: dict[str, Mapping[str, Any]] = {}
    kinds: dict[str, dict[tuple[str, int], None]] = {}
    for environment in evidence.environments:
        for _, values in observed(evidence, environment):
            if {"on_machine", "uplink", "between_machines"} <= values.keys():
                uplinks[str(values["on_machine"])] = values["uplink"]
                kind = (str(values["between_machines"]), int(values["between_machines_mtu"]))
                kinds.setdefault(environment, {})[kind] = None
    yield from ends(uplinks)
    for environment, several_kinds in kinds.items():
        crossed = [text for text in evidence.checks(environment) if text.startswith(CROSSED)]
        said = " or ".join(f"{kind_text(kind)} with packets of {mtu} bytes" for kind, mtu in several_kinds)
        if crossed:
            yield f"{environment}: {said}, which cross unfragmented"
        else:
            yield Undecided(f"{environment}: not recorded: whether packets of the planned size cross", environment)
    yield from overlays(evidence, kinds)


def ends(uplinks: Mapping[str, Mapping[str, Any]]) -> Iterator[Result]:
    """What differs between the interfaces of the machines."""
    texts: dict[str, dict[str, list[str]]] = {"MTU": {}, "speed": {}, "driver": {}}
    for machine, link in sorted(uplinks.items()):
        speed = link.get("speed_bits")
        texts["MTU"].setdefault(f"{link['mtu']}", []).append(machine)
        texts["speed"].setdefault(format_quantity(speed, "bit/s") if speed else "unknown", []).append(machine)
        texts["driver"].setdefault(str(link.get("driver") or "a virtual device"), []).append(machine)
    for name, values in texts.items():
        said = "; ".join(f"{value} on {shown(machines)}" for value, machines in values.items())
        if len(values) > 1:
            yield Failed(f"{name} of the interfaces between machines: {said}")
        elif values:
            yield f"{name} of the interfaces between machines: {said}"


def overlays(evidence: Evidence, kinds: Mapping[str, Mapping[tuple[str, int], None]]) -> Iterator[Failed]:
    """Environments that pay for an overlay where what they are compared with does not."""
    for one, other in evidence.pairs:
        mine, theirs = ({kind for kind, _ in kinds.get(name, {})} for name in (one, other))
        if mine and theirs and mine != theirs:
            over, under = (one, other) if TUNNEL in mine else (other, one)
            sizes = [" or ".join(str(mtu) for _, mtu in kinds[name]) for name in (over, under)]
            message = (
                f"{over} crosses machines by an overlay with packets of {sizes[0]} bytes, {under} by the machines' own "
                f"network with {sizes[1]}: part of what they differ by is the overlay"
            )
            yield Failed(message, over, severity=Severity.INFO)
    small = {name: mtu for name, found in kinds.items() for kind, mtu in found if kind == TUNNEL and mtu < JUMBO_MTU}
    if small:
        said = ", ".join(f"{name}: {mtu} bytes" for name, mtu in small.items())
        message = f"{OVERHEAD} bytes of every packet are the overlay's, and packets are no larger than usual ({said})"
        yield Failed(message, severity=Severity.INFO, remedy=JUMBO)


def kind_text(kind: str) -> str:
    return "a VXLAN overlay" if kind == TUNNEL else "the machines' own network"
