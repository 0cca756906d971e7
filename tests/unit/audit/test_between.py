"""N09, and what N02, C01, C06, C07 and T03 say of clusters on several machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from builders.audit_cases import HOST_FACTS, evidence, failed, passed, unknown
from vtax.audit import Evidence, between, environment, limits, machine, network
from vtax.model.finding import Outcome, Severity
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Cell
from vtax.model.study import MachineSpec

NAMES = ("a", "b", "c")
LINK: Mapping[str, Any] = {"address": "10.0.0.1", "interface": "eth0", "mtu": 1500, "speed_bits": 10**10, "driver": "x"}
CROSS = "packets of {} bytes cross unfragmented: worker1 to worker2"


def campaign(
    links: Mapping[str, Mapping[str, Any]] | None = None,
    kinds: Mapping[str, tuple[str, int]] | None = None,
    machines: Mapping[str, Mapping[str, Any]] | None = None,
    place: str | Mapping[str, str] = "spread",
    checked: bool = True,
) -> Evidence:
    """The campaign without a fault, with nodes on machines a, b and c, in turn."""
    base = evidence()
    nodes = [node.name for node in base.plan.shape.nodes]
    cells: list[Cell] = []
    records = []
    for cell, record in zip(base.plan.cells, base.cells, strict=True):
        turned = {node: NAMES[(number + cell.round) % 3] for number, node in enumerate(nodes)}
        where = turned if isinstance(place, str) else dict(place)
        cells.append(cell.model_copy(update={"placement": where}))
        kind, mtu = (kinds or {}).get(cell.environment, ("vxlan", 1450))
        told = {"between_machines": kind, "between_machines_mtu": mtu}
        facts = tuple(
            one.model_copy(
                update={
                    "values": {
                        **one.values,
                        **told,
                        "on_machine": where[one.node],
                        "uplink": {**LINK, **(links or {}).get(where[one.node], {})},
                    }
                }
            )
            for one in record.facts
        )
        known = {name: {**HOST_FACTS, "hostname": name, **(machines or {}).get(name, {})} for name in NAMES}
        checks = (*record.checks, *((CROSS.format(mtu),) if checked else ()))
        update = {"facts": facts, "machine_facts": known, "host_facts": {}, "checks": checks}
        records.append(record.model_copy(update=update))
    study = base.plan.study.model_copy(
        update={"machines": {name: MachineSpec(ssh=name) for name in NAMES}, "place": place}
    )
    able = {name: base.capabilities(name).model_copy(update={"shares_machine": False}) for name in base.environments}
    changed = {"study": study, "cells": tuple(cells), "capabilities": able}
    return replace(base, plan=base.plan.model_copy(update=changed), cells=tuple(records))


def messages(made: Evidence) -> list[str]:
    return [one.message for one in failed(between.between, made)]


def test_n09_is_about_several_machines() -> None:
    assert between.between.look(evidence()).outcome is Outcome.NOT_APPLICABLE


def test_n09_packets_as_large_as_the_network_carries() -> None:
    """Jumbo frames everywhere: the overlay's headers are too small to mention."""
    jumbo = {name: {"mtu": 9000} for name in NAMES}
    kinds = {"host": ("vxlan", 8950), "container": ("vxlan", 8950)}
    said = "\n".join(passed(between.between, campaign(jumbo, kinds)))
    assert "MTU of the interfaces between machines: 9000 on a, b, c" in said
    assert "host: a VXLAN overlay with packets of 8950 bytes, which cross unfragmented" in said


def test_n09_the_overlays_headers_have_a_remedy() -> None:
    (found,) = failed(between.between, campaign())
    assert found.severity is Severity.INFO
    assert found.message.startswith("50 bytes of every packet are the overlay's")
    assert "jumbo frames" in found.remedy and "mtu 9000" in found.remedy


def test_n09_an_overlay_against_the_machines_own_network() -> None:
    made = campaign(kinds={"host": ("host", 1500), "container": ("vxlan", 1450)})
    (found, _) = failed(between.between, made)
    assert (found.environment, found.severity) == ("container", Severity.INFO)
    assert found.message.startswith("container crosses machines by an overlay with packets of 1450 bytes, host by the")


def test_n09_ends_that_differ() -> None:
    made = campaign({"b": {"mtu": 9000, "speed_bits": 10**9}, "c": {"speed_bits": None, "driver": ""}})
    said = messages(made)
    assert "MTU of the interfaces between machines: 1500 on a, c; 9000 on b" in said
    assert "speed of the interfaces between machines: 10.00 Gbit/s on a; 1.000 Gbit/s on b; unknown on c" in said
    assert "driver of the interfaces between machines: x on a, b; a virtual device on c" in said
    assert {one.severity for one in failed(between.between, made)} == {Severity.WARNING, Severity.INFO}


def test_n09_packets_of_which_nothing_is_known() -> None:
    jumbo = {name: {"mtu": 9000} for name in NAMES}
    kinds = {"host": ("vxlan", 8950), "container": ("vxlan", 8950)}
    assert (
        "whether packets of the planned size cross"
        in unknown(between.between, campaign(jumbo, kinds, checked=False)).message
    )


def test_n02_pairs_that_cross_machines_and_pairs_that_do_not() -> None:
    nodes = [node.name for node in evidence().plan.shape.nodes]
    assert passed(network.one_host, campaign())[0].endswith("crosses machines")
    together = campaign(place={**dict.fromkeys(nodes, "b"), nodes[0]: "a"})
    found = failed(network.one_host, together)
    assert {one.severity for one in found} == {Severity.INFO}
    assert "stay on one machine" in found[0].message


def with_capacities(made: Evidence, *cpus: tuple[int, ...]) -> Evidence:
    rooms = {name: HostCapacity(cpu_ids=several, memory_bytes=2**36) for name, several in zip(NAMES, cpus, strict=True)}
    return replace(made, plan=made.plan.model_copy(update={"capacities": rooms}))


def test_c01_the_cpus_are_those_of_the_machine_that_has_the_node() -> None:
    """Each machine has its own numbers, and nodes change machines from round to round."""
    cpus = {name: tuple(range(start, start + 16)) for name, start in zip(NAMES, (0, 100, 200), strict=True)}
    made = with_capacities(campaign(), *cpus.values())
    wide = {node.name: node.cpus for node in made.plan.shape.nodes}

    def right(record: Any, skip: int) -> Any:
        facts = []
        for one in record.facts:
            first = cpus[one.values["on_machine"]][skip]
            allowed = f"{first}-{first + wide[one.node] - 1}"
            facts.append(one.model_copy(update={"values": {**one.values, "cpus_allowed": allowed}}))
        return record.model_copy(update={"facts": tuple(facts)})

    host = replace(made, cells=tuple(right(one, 0) for one in made.cells))
    assert not [one for one in failed_or_none(host) if "planned are" in one]
    wrong = replace(made, cells=tuple(right(one, 1) for one in made.cells))
    assert [one for one in failed_or_none(wrong) if "planned are" in one]


def failed_or_none(made: Evidence) -> list[str]:
    return [one.message for one in limits.not_applied.look(made).findings]


def test_t03_instructions_are_those_that_all_machines_have() -> None:
    """A node on the machine without AVX-512 lacks nothing that its host has."""
    flags = {"cpu_flags": ["avx2", "avx512f"]}
    made = campaign(machines={"a": flags, "b": {"cpu_flags": ["avx2"]}, "c": flags})
    for environment_name in ("host", "container"):
        records = [
            tuple(one.model_copy(update={"values": {**one.values, "cpu_flags": ["avx2"]}}) for one in cell.facts)
            for cell in made.cells
        ]
        cells = tuple(cell.model_copy(update={"facts": facts}) for cell, facts in zip(made.cells, records, strict=True))
        assert environment.lacking(replace(made, cells=cells), environment_name) == ("", frozenset())


def test_c07_the_policy_of_every_machine_is_read() -> None:
    same = {name: {"governor": "performance"} for name in NAMES}
    assert any("performance" in line for line in passed(machine.frequency_policy, campaign(machines=same)))
    made = campaign(machines=same)
    last = made.cells[-1]
    slow = {**last.machine_facts, "b": {**last.machine_facts["b"], "governor": "powersave"}}
    changed = replace(made, cells=(*made.cells[:-1], last.model_copy(update={"machine_facts": slow})))
    assert any("the frequency governor changed" in one.message for one in failed(machine.frequency_policy, changed))
