"""Outputs that vtax does not read say so, and what to give instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.logs import SYSBENCH, imported

YAML = "---\nsystem-info:\n      stress-ng-version: 0.15.06\nmetrics:\n    - stressor: cpu\n      bogo-ops: 1000\n"
MEMTIER = "Writing results to stdout\n[RUN #1] Preparing benchmark client...\nALL STATS\nSets    1000.00 0.5\n"
IPERF2 = "-----\nServer listening on TCP port 5001\n[  4]  0.0-10.0 sec  10.9 GBytes  9.38 Gbits/sec\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3;fio-3.33;randread;0;0;1048576;104857;26214;10000\n" * 2, "fio's terse output"),
        (YAML, "stress-ng writes with --yaml"),
        (MEMTIER, "the output of memtier_benchmark"),
        (IPERF2, "iperf 2"),
    ],
)
def test_what_is_known_but_not_read(tmp_path: Path, text: str, reason: str) -> None:
    report = imported(tmp_path, {"a.txt": text, "good.txt": SYSBENCH + text, "more.txt": text + SYSBENCH})
    found = {file.file: [(reason in run.left_out, run.count > 0) for run in file.runs] for file in report.files}
    assert found["a.txt"] == [(True, False)]
    assert (False, True) in found["good.txt"]
    assert found["more.txt"] == [(True, False), (False, True)]
