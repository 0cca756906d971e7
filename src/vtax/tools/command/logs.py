"""Result files of other benchmark programs as logs: hyperfine, pyperf and google-benchmark, one JSON document a run.

The reader is that of own workloads. Its first metric is the headline here, because no study says which one decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vtax.tools.reading import Reading, Section
from vtax.tools.tool import LogFormat, never

MARKS = {
    "hyperfine": ('"exit_codes"',),
    "pyperf": ('"perf_version"', '"pyperf_version"', '"calibrate_loops"'),
    "google-benchmark": ('"library_build_type"',),
}


def _read(name: str) -> Callable[[Section], Reading]:
    def read(section: Section) -> Reading:
        from vtax.tools.command.readers import READERS

        place = next(place for place, line in enumerate(section.lines) if line.text.startswith("{"))
        reader = READERS[name]
        reading = reader.read(section._replace(lines=section.lines[place:]), {})
        headline = reader.metrics[0].name
        reading.values = [
            one._replace(metric=one.metric.model_copy(update={"primary": one.metric.name == headline}))
            for one in reading.values
        ]
        return reading

    return read


def _having(several: str, *keys: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an object has a list of objects under `several`, the first of which has `keys`."""

    def whole(document: Mapping[str, Any]) -> bool:
        members = document.get(several)
        first = members[0] if isinstance(members, list) and members else None
        return isinstance(first, dict) and all(key in first for key in keys)

    return whole


WHOLE = {
    "hyperfine": _having("results", "command"),
    "pyperf": _having("benchmarks", "runs"),
    "google-benchmark": _having("benchmarks", "name"),
}
UNREAD = {r"^\s{0,40}\d[\d.eE+-]{0,40},?$": "values of single runs, which are in means and quantiles"}
FORMATS = tuple(
    LogFormat(name, _read(name), never, first="{", mark=marks, whole=WHOLE[name], unread=UNREAD)
    for name, marks in MARKS.items()
)
