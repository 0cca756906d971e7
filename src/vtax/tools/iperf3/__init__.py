"""iperf3: throughput of TCP and UDP between two nodes."""

from vtax.tools.iperf3 import json_log_reader, log_reader
from vtax.tools.iperf3.benchmark import Iperf3
from vtax.tools.tool import LogFormat, Tool, never

TOOL = Tool(
    name="iperf3",
    benchmarks=(Iperf3(),),  # type: ignore[arg-type]
    logs=(LogFormat("iperf3", log_reader.read, never), LogFormat("iperf3 json", json_log_reader.read, never)),
    packages=("iperf3",),
    programs=("iperf3",),
    versions={"iperf3_version": "iperf3"},
    file_names={"protocol": {"tcp": "tcp", "udp": "udp"}},
)
