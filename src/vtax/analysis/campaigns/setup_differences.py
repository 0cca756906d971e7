"""What is not the same in two campaigns: the work, the root file system, tools, nodes, facts of machine and nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vtax.analysis.campaigns.records import SetupDifference
from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.plan import Plan, Work

# Facts that are another number at every reading, and so say nothing about a campaign.
MOVING = (
    "load",
    "psi_",
    "memory_available",
    "cpu_mhz",
    "cpu_throttled",
    "cpu_periods",
    "interfaces",
    "uptime",
    "disk_",
)
NOT_WORK = frozenset({"timeout_s"})  # a limit, not what is done
VALUE_CHARACTERS = 120  # characters of a value
ABSENT = "absent"


@dataclass(frozen=True)
class Setup:
    """A campaign as it was recorded; `about` is its campaign.json."""

    directory: str
    plan: Plan
    about: Mapping[str, Any]
    cells: tuple[CellRecord, ...]


@dataclass(frozen=True)
class Recorded(Setup):
    """A campaign as it was recorded and analysed."""

    analysis: Analysis


def setup_differences(a: Setup, b: Setup, environments: Sequence[str]) -> tuple[SetupDifference, ...]:
    """Everything that differs, what forbids a comparison first."""
    found = [
        *_in_one_only(a.plan, b.plan, environments),
        *_work(a.plan, b.plan, environments),
        *_study(a.plan, b.plan, environments),
        *_image(a.about, b.about),
        *_facts("machine: ", "", *(_stable([cell.host_facts for cell in side.cells]) for side in (a, b))),
    ]
    for name in environments:
        found += _facts("nodes: ", name, *(_stable(_node_facts(side.cells, name)) for side in (a, b)))
    return tuple(sorted(dict.fromkeys(found), key=lambda item: item.severity.rank))


def _in_one_only(a: Plan, b: Plan, environments: Sequence[str]) -> Iterable[SetupDifference]:
    """What one campaign has alone, so that nothing of it is compared: environments, entries, and work of the others."""
    specs = [{spec.name: spec.provider for spec in plan.environments} for plan in (a, b)]
    entries = [{spec.label: spec.name for spec in plan.study.benchmarks} for plan in (a, b)]
    for name in sorted(specs[0].keys() ^ specs[1].keys()):
        yield _warning(f"environment {name}", specs[0].get(name), specs[1].get(name))
    for label in sorted(entries[0].keys() ^ entries[1].keys()):
        yield _warning(f"benchmark entry {label}", entries[0].get(label), entries[1].get(label))
    both = entries[0].keys() & entries[1].keys()
    for name in environments:
        nodes = [
            {work.id: work.target.names for work in plan.work if work.environment == name and work.label in both}
            for plan in (a, b)
        ]
        for key in sorted(nodes[0].keys() ^ nodes[1].keys()):
            yield _warning(f"work {key}, on nodes", nodes[0].get(key), nodes[1].get(key), name)


def _work(a: Plan, b: Plan, environments: Sequence[str]) -> Iterable[SetupDifference]:
    """Other work is another measurement: a blocker for the entry, in the environment where it differs."""
    for name in environments:
        mine, other = ({work.id: work for work in plan.work if work.environment == name} for plan in (a, b))
        for key in sorted(mine.keys() & other.keys()):
            yield from _params(mine[key], other[key])


def _params(mine: Work, other: Work) -> Iterable[SetupDifference]:
    pairs = {
        "benchmark": (mine.benchmark, other.benchmark),
        "nodes": (mine.target.names, other.target.names),
        **{
            key: (mine.params.get(key), other.params.get(key))
            for key in sorted({*mine.params, *other.params} - NOT_WORK)
        },
    }
    for what, (one, two) in pairs.items():
        if one != two:
            yield SetupDifference(
                what=f"work of {mine.id}: {what}",
                a=value_text(one),
                b=value_text(two),
                severity=Severity.BLOCKER,
                environment=mine.environment,
                label=mine.label,
            )


def _study(a: Plan, b: Plan, environments: Sequence[str]) -> Iterable[SetupDifference]:
    entries = [{spec.label: spec for spec in plan.study.benchmarks} for plan in (a, b)]
    pairs: dict[str, tuple[object, object]] = {
        "version of vtax": (a.vtax_version, b.vtax_version),
        "baseline": (a.study.baseline, b.study.baseline),
        "margin": (a.study.margin, b.study.margin),
        "settle_s": (a.study.settle_s, b.study.settle_s),
        "what alternates in a round": (a.interleave, b.interleave),
        "machines": (tuple(a.study.machines), tuple(b.study.machines)),
        "place of the nodes": (a.study.place, b.study.place),
    }
    for label in sorted(entries[0].keys() & entries[1].keys()):
        mine, other = entries[0][label], entries[1][label]
        pairs[f"iterations of {label}"] = (mine.iterations, other.iterations)
        pairs[f"warm-ups of {label}"] = (mine.warmup, other.warmup)
    shapes = [{node.name: node for node in plan.shape.nodes} for plan in (a, b)]
    for node in sorted({*shapes[0], *shapes[1]}):
        for what in ("cpus", "memory_bytes", "cpu_ids"):
            pairs[f"{what} of {node}"] = (
                getattr(shapes[0].get(node), what, None),
                getattr(shapes[1].get(node), what, None),
            )
    specs = [{spec.name: spec for spec in plan.environments} for plan in (a, b)]
    for name in environments:
        mine_, other_ = specs[0][name], specs[1][name]
        pairs[f"provider of {name}"] = (mine_.provider, other_.provider)
        for key in sorted({*mine_.options, *other_.options}):
            pairs[f"{key} of {name}"] = (mine_.options.get(key), other_.options.get(key))
    return (_warning(what, one, two) for what, (one, two) in pairs.items() if one != two)


def _image(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterable[SetupDifference]:
    one, two = a["image"], b["image"]
    if one.get("digest") != two.get("digest"):
        yield _warning("sha256 of the root file system", one.get("digest"), two.get("digest"))
    mine, other = _own_digest(one), _own_digest(two)
    if mine != other:
        yield _warning("sha256 of the own image", mine, other)
    mine, other = one.get("versions") or {}, two.get("versions") or {}
    for package in sorted({*mine, *other}):
        if mine.get(package) != other.get(package):
            yield _warning(f"package {package}", mine.get(package), other.get(package))


def _own_digest(image: Mapping[str, Any]) -> Any:
    own = image.get("workload")
    return own.get("digest") if isinstance(own, Mapping) else None


def _facts(prefix: str, environment: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterable[SetupDifference]:
    """Facts that did not change inside either campaign and are not the same in both."""
    for name in sorted(a.keys() & b.keys()):
        if a[name] == b[name]:
            continue
        if isinstance(a[name], dict) and isinstance(b[name], dict):
            for key in sorted({*a[name], *b[name]}):
                if a[name].get(key) != b[name].get(key):
                    yield _warning(f"{prefix}{name} {key}", a[name].get(key), b[name].get(key), environment)
        elif isinstance(a[name], list) and isinstance(b[name], list):
            gone = [item for item in a[name] if item not in b[name]]
            new = [item for item in b[name] if item not in a[name]]
            yield _warning(f"{prefix}{name}, in one only", gone, new, environment)
        else:
            yield _warning(f"{prefix}{name}", a[name], b[name], environment)


def _stable(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Facts that every record has with the same value."""
    if not several:
        return {}
    first = several[0]
    return {
        name: value
        for name, value in first.items()
        if not name.startswith(MOVING) and all(other.get(name) == value for other in several[1:])
    }


def _node_facts(cells: Sequence[CellRecord], environment: str) -> list[Mapping[str, Any]]:
    return [facts.values for cell in cells if cell.environment == environment for facts in cell.facts]


def _warning(what: str, a: object, b: object, environment: str = "") -> SetupDifference:
    return SetupDifference(
        what=what, a=value_text(a), b=value_text(b), severity=Severity.WARNING, environment=environment
    )


def value_text(value: object) -> str:
    if value is None:
        return ABSENT
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 3]}..."
