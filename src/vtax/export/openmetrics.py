"""OpenMetrics text: measurements as gauges, for Prometheus and whatever else reads it (OpenMetrics 1.0)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vtax.model.measurement import Measurement

UNITS = {  # base unit -> the suffix that the format requires
    "flop/s": "flops_per_second",
    "byte/s": "bytes_per_second",
    "bit/s": "bits_per_second",
    "update/s": "updates_per_second",
    "op/s": "operations_per_second",
    "1/s": "per_second",
    "s": "seconds",
    "byte": "bytes",
}
OWN_LABELS = ("environment", "round", "trial", "iteration", "warmup", "entry")


def exposition(measurements: Sequence[Measurement]) -> str:
    """All measurements, one family per metric, ending with `# EOF`. Names keep letters, digits and `_`."""
    families: dict[tuple[str, str], list[Measurement]] = {}
    for item in measurements:
        families.setdefault((_family(item), item.unit), []).append(item)
    lines = []
    for (family, unit), items in sorted(families.items()):
        lines.append(f"# TYPE {family} gauge")
        if unit in UNITS:
            lines.append(f"# UNIT {family} {UNITS[unit]}")
        lines.append(f"# HELP {family} {_escaped(f'{items[0].metric} of {items[0].benchmark}, {items[0].direction}')}")
        lines += [f"{family}{{{_labels(item)}}} {item.value!r}" for item in items]
    return "\n".join([*lines, "# EOF", ""])


def _family(item: Measurement) -> str:
    suffix = f"_{UNITS[item.unit]}" if item.unit in UNITS else ""
    return _name(f"vtax_{item.benchmark}_{item.metric}{suffix}")


def _labels(item: Measurement) -> str:
    own = (item.environment, str(item.round), item.trial, str(item.iteration), str(item.warmup).lower(), item.label)
    pairs = dict(zip(OWN_LABELS, own, strict=True)) | ({"machine": item.machine} if item.machine else {})
    for name, value in sorted(item.labels.items()):
        key = _name(name)
        while key in pairs:
            key = f"label_{key}"
        pairs[key] = value
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items())


def _name(text: str) -> str:
    """A name of the format: letters, digits and `_`, no digit first, no reserved `__` in front."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text).lstrip("_")
    return name if name and not name[0].isdigit() else f"n{name}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
