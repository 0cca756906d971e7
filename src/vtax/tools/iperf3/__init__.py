"""iperf3: throughput of TCP and UDP between two nodes."""

from vtax.tools.iperf3 import json_log_reader, log_reader, logs
from vtax.tools.iperf3.benchmark import Iperf3
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="iperf3",
    benchmarks=(Iperf3(),),  # type: ignore[arg-type]
    logs=(
        LogFormat("iperf3", log_reader.read, logs.starts, first="CA", titles=logs.titles),
        LogFormat(
            "iperf3 json",
            json_log_reader.read,
            logs.starts_document,
            first="{",
            ends=logs.ends_document,
            together=True,
            mark='"test_start"',
        ),
    ),
    packages=("iperf3",),
    programs=("iperf3",),
    commands=("iperf",),
    versions={"iperf3_version": "iperf3"},
    file_names={"protocol": {"tcp": "tcp", "udp": "udp"}},
)
