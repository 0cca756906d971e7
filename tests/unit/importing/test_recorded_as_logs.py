"""Every recorded output of a workload's tool, read as a log of others: the values worked out by hand for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.logs import imported, readings, text_of
from builders.recorded import DATA
from vtax.tools import log_formats, tools

READABLE = {tool.name for tool in tools() if tool.logs} | set(log_formats())
OUTPUTS = sorted(
    path for path in (DATA / "readers").glob("*/*/output") if path.parent.parent.name in READABLE | {"hyperfine"}
)


def known_metrics(name: str) -> set[str]:
    """What logs of a tool may give: other metrics are those that a study declares for its own use."""
    return {metric.name for tool in tools() for one in tool.benchmarks if one.name == name for metric in one.metrics}


@pytest.mark.parametrize("output", OUTPUTS, ids=[f"{one.parent.parent.name} {one.parent.name}" for one in OUTPUTS])
def test_a_log_has_the_values_of_the_output(output: Path) -> None:
    every = [value for reading in readings(text_of(output)) for value in reading.values]
    assert every
    assert not any(label.startswith(" ") for value in every for label in value.labels.values())
    taken = {value.metric.name for value in every} | known_metrics(output.parent.parent.name)
    for one in json.loads((output.parent / "expected.json").read_text()):
        alike = [value.value for value in every if value.metric.name == one["metric"]]
        assert one["metric"] not in taken or pytest.approx(one["value"], rel=1e-6) in alike, one


def test_each_is_imported_whole(tmp_path: Path) -> None:
    """Each is a log of its own, and none of them ends the import."""
    report = imported(tmp_path, {f"{n:03d}.txt": text_of(path) for n, path in enumerate(OUTPUTS)})
    assert len(report.files) == len(OUTPUTS)
    assert [file.file for file in report.files if not file.taken and "same bytes" not in file.reason] == []
