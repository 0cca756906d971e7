"""The network between the machines of one cluster: decided before any node is created, kept as a fact of every cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from vtax.model.names import StudyName
from vtax.model.record import Record, is_empty

Address = Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$")]
Prefix = Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){2}$")]  # the first three numbers of addresses
InterfaceName = Annotated[str, Field(pattern=r"^[!-,.0-~][!-.0-~]{0,14}$")]  # as Linux allows; never an option
# A cluster's own part of a directory that machines share, which goes with the cluster; "" where they share none.
OwnPlace = Annotated[str, Field(pattern=r"^(/[^\x00-\x1f\x7f:]*vtax-[0-9a-f]{8}(-[0-9a-f]{8})?)?$")]
Port = Annotated[int, Field(ge=1, le=65535)]


class Interface(Record):
    """A network interface of a machine, as the machine reports it. `addresses` have the length of their network's
    prefix. `driver` is "" for a virtual device, and the speed is None where the interface does not say one."""

    name: InterfaceName
    mtu: int
    addresses: tuple[str, ...]
    speed_bits: int | None = None
    driver: str = ""


class Uplink(Record):
    """The interface by which a machine reaches the others, and its address for them."""

    address: Address
    interface: InterfaceName
    mtu: int
    speed_bits: int | None = None
    driver: str = ""


class Interconnect(Record):
    """What connects the nodes of a cluster that are on several machines; `uplinks` by machine, in the study's order.

    "vxlan": vtax makes a tunnel on every machine and connects it with the cluster's own bridge there; `mtu` is what the
    tunnel leaves of the machines' own, `port` that of its datagrams, and `vni` tells this cluster's from others.
    "host": nodes use the network of the machines, one node on each, and their SSH servers listen on `port`.
    """

    kind: Literal["vxlan", "host"]
    uplinks: Mapping[StudyName, Uplink]
    mtu: int
    port: Port
    prefix: Prefix  # of the nodes' addresses, where the network is vtax's own
    vni: Annotated[int, Field(ge=0, lt=2**24)] = 0


class Link(Record):
    """What the part of a cluster on one machine knows of the whole: the interconnect, and the addresses, CPUs and
    machines of all nodes, in the order of the cluster. `shared` is the directory of this machine that all machines
    see; "" where they share none. `server` is the machine that serves it to the others by NFS, where vtax made it."""

    machine: StudyName
    interconnect: Interconnect
    places: Mapping[StudyName, Address]
    slots: Mapping[StudyName, int]
    machines: Mapping[StudyName, StudyName]
    shared: OwnPlace = ""
    server: StudyName | Literal[""] = Field(default="", exclude_if=is_empty)

    @property
    def mtu(self) -> int:
        return self.interconnect.mtu

    @property
    def number(self) -> int:
        """Of this machine among those of the cluster."""
        return list(self.interconnect.uplinks).index(self.machine)

    @property
    def local(self) -> str:
        return self.interconnect.uplinks[self.machine].address

    @property
    def interface(self) -> str:
        """Of this machine, by which it reaches the others."""
        return self.interconnect.uplinks[self.machine].interface

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(one.address for name, one in self.interconnect.uplinks.items() if name != self.machine)
