"""iozone's throughput mode (`-t`): what all its processes reach together."""

from __future__ import annotations

import re

from vtax.tools.iozone.lines import Split
from vtax.tools.iozone.metrics import HEADLINES, KIB, OPERATIONS, PRIMARY, THROUGHPUT
from vtax.tools.reading import Reading, Value, agree

CHILDREN = re.compile(r"^Children see throughput for (\d{1,6}) ([a-z -]{3,30}?) = (\d{1,15}\.\d\d) (kB|KB|ops)/sec$")
PER_PROCESS = re.compile(r"^Avg throughput per process = (\d{1,15}\.\d\d) (kB|KB|ops)/sec$")
EACH = re.compile(r"^Each process writes a (\d{1,12}) [kK]Byte file in (\d{1,9}) [kK]Byte records$")
TOGETHER = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "reverse readers": "backward_read",
    "stride readers": "stride_read",
    "random readers": "random_read",
    "mixed workload": "random_mix",
    "random writers": "random_write",
    "pwrite writers": "pwrite",
    "pread readers": "pread",
    "fwriters": "fwrite",
    "freaders": "fread",
}


def throughput(reading: Reading, lines: list[Split]) -> None:
    """What all processes together reach, where their mean confirms it."""
    sizes = (0, 0)
    seen: set[tuple[str, str, tuple[int, int]]] = set()
    for place, one in enumerate(lines):
        if found := EACH.match(one.joined):
            sizes = (int(found[1]) * KIB, int(found[2]) * KIB)
        if (found := CHILDREN.match(one.joined)) is None:
            continue
        processes, name = found[1], TOGETHER.get(found[2], found[2].replace(" ", "_"))
        means = [m for after in lines[place + 1 : place + 7] if (m := PER_PROCESS.match(after.joined))]
        total = float(found[3])
        if len(means) != 1 or not agree(total, float(means[0][1]) * int(processes), 1e-4) or means[0][2] != found[4]:
            reading.refuse(one.line.number, name, "the mean per process is missing, or does not confirm it")
            continue
        key = (name, processes, sizes)
        if key in seen or reading.ranks > 1:
            reading.values = [v for v in reading.values if (v.labels["operation"], v.labels["processes"]) != key[:2]]
            reading.refuse(one.line.number, name, "it appears more than once")
            continue
        seen.add(key)
        labels = {"operation": name, "processes": processes}
        if sizes[0]:
            labels |= {"file_bytes": str(sizes[0]), "record_bytes": str(sizes[1])}
        metric = PRIMARY if name in HEADLINES else THROUGHPUT
        if total <= 0:
            reading.refuse(one.line.number, name, "nothing was measured")
        elif found[4] == "ops":
            reading.values.append(Value(OPERATIONS, total, one.line.number, labels))
        else:
            reading.values.append(Value(metric, total * KIB, one.line.number, labels))
    if sizes[0]:
        reading.facts["file_bytes"] = sizes[0]
