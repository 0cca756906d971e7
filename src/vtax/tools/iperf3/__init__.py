"""iperf3: throughput of TCP and UDP between two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.iperf3 import logs
from vtax.tools.iperf3.benchmark import Iperf3
from vtax.tools.iperf3.reader import read, read_error, read_log
from vtax.tools.tool import LogFormat, Tool
from vtax.tools.unread import unread


def _audit() -> tuple[Row, ...]:
    from vtax.tools.iperf3 import audit

    return rows_of(audit)


if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.iperf3.figures import FIGURES

    return FIGURES


MARKS = ('"test_start"', '"version":\t"iperf 3', '"version": "iperf 3', '"version":"iperf 3')

TOOL = Tool(
    name="iperf3",
    benchmarks=(Iperf3(),),
    logs=(
        LogFormat(
            "iperf3",
            read_log,
            logs.starts,
            first="CA",
            titles=logs.titles,
            essential=read,
            unread={
                r"omitted\)": "intervals of iperf3 that were omitted",
                r"\[[ \d]{1,8}\].{0,100}/sec": "rates of single streams of iperf3, or of the other side",
            },
        ),
        LogFormat("iperf3 error", read_error, logs.starts_error, first="i", outside=True),
        LogFormat("iperf3 json-stream error", read_error, logs.starts_stream_error, first="{", outside=True),
        unread(
            "iperf 2 server",
            "iperf3",
            "S",
            r"Server listening on (?:TCP|UDP) port \d",
            "this is iperf 2, which vtax does not read",
        ),
        LogFormat(
            "iperf3 json", read_log, logs.starts_document, first="{", mark=MARKS, whole=logs.whole, essential=read
        ),
        LogFormat(
            "iperf3 json-stream",
            read_log,
            logs.starts_stream,
            first="{",
            begins=logs.starts_stream,
            ends=logs.ends_stream,
            together=True,
            essential=read,
        ),
    ),
    packages=("iperf3",),
    programs=("iperf3",),
    commands=("iperf",),
    versions={"iperf3_version": "iperf3"},
    audit=_audit,
    file_names={"protocol": {"tcp": "tcp", "udp": "udp"}},
    figures=_figures,
)
