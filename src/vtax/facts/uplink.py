"""The network interfaces of a machine, and by which of them several machines reach each other."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vtax.errors import UsageError
from vtax.facts.machine import read
from vtax.facts.node import records
from vtax.facts.sections import whole
from vtax.model.link import Interface, Uplink
from vtax.transport import process

COMMAND_S = 20.0
REMEDY = "give each machine the address by which the others reach it: address in [machines.NAME]"


def interfaces() -> tuple[Interface, ...]:
    """Those of this machine that are up and have an IPv4 address, but for loopback."""
    listed = process.run(
        ("ip", "-j", "-4", "addr", "show", "up"), timeout_s=COMMAND_S, env=process.system_environment()
    )
    return tuple(parsed(listed.stdout, Path("/")))


def parsed(text: str, root: Path) -> Iterator[Interface]:
    """The interfaces in what `ip -j -4 addr` printed; speeds and drivers are those in /sys below `root`."""
    try:
        links = json.loads(text or "[]")
    except ValueError:
        return
    for link in records(links):
        name = str(link.get("ifname", ""))
        addresses = tuple(
            f"{one['local']}/{one['prefixlen']}" for one in records(link.get("addr_info")) if "local" in one
        )
        if not addresses or "LOOPBACK" in link.get("flags", ()):
            continue
        place = root / "sys/class/net" / name
        speed = whole(read(place / "speed").strip())
        driver = place / "device/driver"
        yield Interface(
            name=name,
            mtu=int(link.get("mtu", 0)),
            addresses=addresses,
            speed_bits=speed * 1_000_000 if speed is not None and speed > 0 else None,
            driver=driver.resolve().name if driver.exists() else "",
        )


def uplinks(known: Mapping[str, Sequence[Interface]], given: Mapping[str, str]) -> dict[str, Uplink]:
    """By machine, the interface by which it reaches the others: that with the address `given` by the study, or one in a
    network in which all others without such an address are too. Raises UsageError."""
    found = {name: _with_address(name, known[name], address) for name, address in given.items()}
    rest = [name for name in known if name not in found]
    if rest:
        found |= _in_one_network({name: known[name] for name in rest})
    return {name: found[name] for name in known}


def _with_address(machine: str, own: Sequence[Interface], address: str) -> Uplink:
    for one in own:
        if address in (text.partition("/")[0] for text in one.addresses):
            return _uplink(one, address)
    has = ", ".join(text for one in own for text in one.addresses) or "none"
    raise UsageError(f"machine {machine!r} does not have the address {address}", detail=f"it has {has}", remedy=REMEDY)


def _in_one_network(known: Mapping[str, Sequence[Interface]]) -> dict[str, Uplink]:
    """A network in which every machine has an address of its own. Bridges of engines have the same address on all."""
    first, *others = known
    for network in _networks(known[first]):
        found = {first: _member(known[first], network), **{name: _member(known[name], network) for name in others}}
        members = {name: one for name, one in found.items() if one is not None}
        if len(members) == len(known) == len({one.address for one in members.values()}):
            return members
    what = "; ".join(f"{name}: {', '.join(map(str, _networks(own))) or 'none'}" for name, own in known.items())
    raise UsageError("the machines share no network", detail=f"networks of {what}", remedy=REMEDY)


def _networks(own: Sequence[Interface]) -> list[ipaddress.IPv4Network]:
    """The networks of a machine's interfaces, those of real devices first."""
    ranked = sorted(own, key=lambda one: not one.driver)
    return [ipaddress.IPv4Interface(text).network for one in ranked for text in one.addresses]


def _member(own: Sequence[Interface], network: ipaddress.IPv4Network) -> Uplink | None:
    for one in own:
        for text in one.addresses:
            if ipaddress.IPv4Interface(text).network == network:
                return _uplink(one, text.partition("/")[0])
    return None


def _uplink(one: Interface, address: str) -> Uplink:
    return Uplink(address=address, interface=one.name, mtu=one.mtu, speed_bits=one.speed_bits, driver=one.driver)
