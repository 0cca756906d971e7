"""What machines say of their networks, and what their parts of a cluster are told: no option, no path of others."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from vtax.model.link import Interconnect, Interface, Link, Uplink
from vtax.model.study import MachineSpec

NAMES = ("-o", "a b", "a/b", "x" * 16, "", "a\nb", "\x1b[31m")


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_an_interface_is_no_option(name: str) -> None:
    with pytest.raises(ValidationError):
        Interface(name=name, mtu=1500, addresses=())
    with pytest.raises(ValidationError):
        Uplink(address="192.0.2.1", interface=name, mtu=1500)


@pytest.mark.parametrize("name", ["eth0", "enp3s0f0np0", "eth0.100", "br-0123456789a", "bond0", "ib0@x"])
def test_names_that_linux_gives_are_taken(name: str) -> None:
    assert Interface(name=name, mtu=1500, addresses=()).name == name


def link(shared: str) -> Link:
    between = Interconnect(kind="vxlan", uplinks={}, mtu=1450, port=4789, prefix="10.213.1")
    return Link(machine="a", interconnect=between, places={}, slots={}, machines={}, shared=shared)


@pytest.mark.parametrize(
    "place", ["/etc", "/", "/srv/vtax-", "/srv/vtax-0123456z", "vtax-01234567", "/a:/b/vtax-01234567"]
)
def test_only_a_cluster_s_own_directory_is_shared_and_removed(place: str) -> None:
    with pytest.raises(ValidationError):
        link(place)
    assert link("/srv/vtax-01234567").shared == "/srv/vtax-01234567"
    assert link("/vtax-01234567-89abcdef").shared == "/vtax-01234567-89abcdef"


@pytest.mark.parametrize("field", ["directory", "address", "shared"])
@pytest.mark.parametrize("text", ["--help", "-o", "x", "a\nb", "../x", "$(id)"])
def test_a_stored_machine_has_no_other_text_than_a_study_s(field: str, text: str) -> None:
    with pytest.raises(ValidationError):
        MachineSpec.model_validate({"ssh": "a", field: text})
