"""fio: storage by block size, queue depth and pattern, with quantiles of its latency. It runs as a command."""

from __future__ import annotations

import string

from vtax.tools.command.workload import Workload
from vtax.tools.fio import text
from vtax.tools.fio.metrics import METRICS
from vtax.tools.fio.reader import read
from vtax.tools.tool import LogFormat, Tool


def starts_document(line: str) -> bool:
    return line.startswith("{")


TOOL = Tool(
    name="fio",
    benchmarks=(Workload("fio", "Storage", tuple(METRICS.values())),),
    logs=(
        LogFormat("fio", read, starts_document, first="{", mark='"fio version"'),
        LogFormat(
            "fio text",
            read,
            text.starts,
            first=string.ascii_letters + string.digits + "_-./",
            ends=text.ends,
            together=True,
        ),
    ),
    commands=("fio",),
    versions={"fio_version": "fio"},
    workloads=__name__,
)
