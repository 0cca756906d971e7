"""How the parts of a cluster on several machines are connected: decided before any part is created, kept as a fact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from vtax.model.names import StudyName
from vtax.model.record import Record

Address = Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$")]
Port = Annotated[int, Field(ge=1, le=65535)]


class Uplink(Record):
    """The interface by which a machine reaches the others, as it reports it. `driver` is "" for a virtual device, and
    the speed is None where the interface does not say one."""

    address: Address
    interface: str
    mtu: int
    speed_bits: int | None = None
    driver: str = ""


class Link(Record):
    """The network between the machines of a cluster, as one of its parts needs it. `places` and `slots` are the
    addresses and the CPUs of all nodes of the cluster, in its order; `machines` is where each of them is.

    "vxlan": vtax makes a tunnel on every machine and connects it with the cluster's own bridge there. `local` and
    `others` are the machines' addresses, `mtu` what remains for a packet inside. "host": nodes use the network of the
    machines, one node on each, and their SSH servers listen on `port`.
    """

    kind: Literal["vxlan", "host"]
    part: Annotated[int, Field(ge=0)]  # the number of this machine among those of the cluster
    places: Mapping[StudyName, Address]
    slots: Mapping[StudyName, int]
    machines: Mapping[StudyName, StudyName]
    local: Address
    others: tuple[Address, ...]
    mtu: int
    port: Port  # of VXLAN's datagrams, or of the SSH servers
    vni: Annotated[int, Field(ge=0, lt=2**24)] = 0  # by which VXLAN tells networks apart

    @property
    def prefix(self) -> str:
        """The first three numbers of the nodes' addresses, where the network is vtax's own."""
        return next(iter(self.places.values())).rpartition(".")[0]
