"""Clusters on several machines: which pairs of nodes cross the network between them, and what that network is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.model.nodes import EVERY_PAIR
from vtax.model.plan import Plan
from vtax.model.study import SPREAD
from vtax.planning.sharing import form
from vtax.report.records import ReportInput
from vtax.units import format_quantity
from vtax.wording import listed, shortened

EVERY = "every pair of nodes crosses machines"
KINDS = {"vxlan": "a VXLAN overlay made by vtax", "host": "the machines' own network"}


def pairs_sentence(plan: Plan) -> str:
    """Which pairs cross machines; "" where every cluster is on one."""
    if not plan.study.apart:
        return ""
    together = [_named(names) for names in _together(plan) if len(names) > 1]
    if not together:
        return EVERY
    alone = listed([f"{names} are on one machine" for names in together])
    return f"{alone}; every other pair of nodes crosses machines"


def _named(names: list[str]) -> str:
    return listed(names) if len(names) <= EVERY_PAIR else shortened(names)


def _together(plan: Plan) -> list[list[str]]:
    """The nodes of each machine; which machine that is may change from round to round, but not who shares one."""
    found: dict[str, list[str]] = {}
    for node, machine in plan.cells[0].placement.items():
        found.setdefault(machine, []).append(node)
    return list(found.values())


def rows(report: ReportInput) -> Iterator[tuple[str, str]]:
    """What the plan and the cells say of where nodes are, for the table of the plan."""
    study = report.plan.study
    if not study.apart:
        if study.nfs_used:
            yield "shared directory", form(study)
        return
    if study.place == SPREAD:
        yield "nodes", "one on each machine, changing places from round to round"
    elif not isinstance(study.place, str):
        where = {machine: [node for node in study.place if study.place[node] == machine] for machine in study.machines}
        yield "nodes", "; ".join(f"{_named(nodes)} on {machine}" for machine, nodes in where.items())
    yield "pairs", pairs_sentence(report.plan)
    yield "shared directory", form(study)
    known = [
        facts.values for cell in report.cells for facts in cell.facts if {"uplink", "on_machine"} <= facts.values.keys()
    ]
    uplinks = {str(values["on_machine"]): values["uplink"] for values in reversed(known)}
    for machine in (name for name in study.machines if name in uplinks):
        yield f"interface of {machine}", uplink_text(uplinks[machine])
    for environment in report.analysis.environments:
        cells = [cell for cell in report.cells if cell.environment == environment]
        values = next((one.values for cell in cells for one in cell.facts if "between_machines" in one.values), None)
        if values:
            kind = KINDS.get(str(values["between_machines"]), str(values["between_machines"]))
            yield f"network of {environment}", f"{kind}, packets of {values['between_machines_mtu']} bytes"


def uplink_text(link: Mapping[str, Any]) -> str:
    speed = link.get("speed_bits")
    driver = f" ({link['driver']})" if link.get("driver") else ""
    rate = format_quantity(speed, "bit/s") if speed else "unknown speed"
    return f"{link['address']} on {link['interface']}{driver}, {rate}, MTU {link['mtu']}"
