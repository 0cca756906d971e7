"""Result files of other benchmark programs as logs: hyperfine, pyperf and google-benchmark, one JSON document a run.

The reader is that of own workloads. Its first metric is the headline here, because no study says which one decides.
"""

from __future__ import annotations

from collections.abc import Callable

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


FORMATS = tuple(LogFormat(name, _read(name), never, first="{", mark=marks) for name, marks in MARKS.items())
