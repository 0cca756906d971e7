"""Logs for tests of the importer: recorded outputs as text, put together and damaged as people and mpirun do it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from builders.recorded import DATA
from vtax.importing.campaign import import_logs
from vtax.importing.report import Report
from vtax.importing.request import Request
from vtax.importing.sections import cut
from vtax.tools import ranks, tools
from vtax.tools.reading import Line, Reading, Section, clean
from vtax.tools.trials import read_section

LOGS = {  # one for each reader: what vtax's own test runs printed
    "hpcc": DATA / "hpcc/trixie-two-nodes/hpccoutf.txt",
    "hpl": DATA / "hpl/trixie-sweep/hpccoutf.txt",
    "stress-ng 0.12": DATA / "stress-ng/0.12.06--bullseye-cpu-io/0-node1.stderr",
    "stress-ng 0.15": DATA / "stress-ng/0.15.06--bookworm-all/0-node1.stderr",
    "stress-ng 0.19": DATA / "stress-ng/0.19.02--trixie-workers-cpu/0-worker1.stdout",
    "sysbench cpu": DATA / "sysbench-cpu/1.0.20--trixie-node/0-worker1.stdout",
    "sysbench memory": DATA / "sysbench-memory/1.0.20--trixie-write/0-worker1.stdout",
    "sysbench fileio": DATA / "sysbench-fileio/1.0.20--trixie-rndrw/1-worker1.stdout",
    "iozone kB": DATA / "iozone/3.507--trixie-range/0-worker1.stdout",
    "iozone operations": DATA / "iozone/3.507--trixie-operations-direct-shared/0-worker1.stdout",
    "iozone blanks": DATA / "iozone/3.489--bookworm-blank-columns/0-node1.stdout",
    "iperf3 server": DATA / "iperf3/3.18--trixie-tcp/0-worker2.stdout",
    "iperf3 udp server": DATA / "iperf3/3.18--trixie-udp/0-worker2.stdout",
    "iperf3 json": DATA / "iperf3/3.18--trixie-tcp/1-worker1.stdout",
    "iperf3 udp json": DATA / "iperf3/3.18--trixie-udp/1-worker1.stdout",
    "ping": DATA / "ping/iputils-20240905--trixie/1-worker1.stdout",
    "stream": DATA / "stream/hpcc-1.5.0--trixie/stream.txt",
    **{  # the first of each format of a workload's tool
        format: case
        for tool in tools()
        if tool.workloads
        for case in sorted((DATA / "readers" / tool.name).glob("*/output"), reverse=True)
        for format in [f"{tool.name} {'json' if case.read_bytes().startswith(b'{') else 'text'}"]
    },
}
PAIRS = {  # two ranks of one run
    "stress-ng": (
        DATA / "stress-ng/0.19.02--trixie-workers-cpu/0-worker1.stdout",
        DATA / "stress-ng/0.19.02--trixie-workers-cpu/0-worker2.stdout",
    ),
    "sysbench cpu": (
        DATA / "sysbench-cpu/1.0.20--trixie-workers/0-worker1.stdout",
        DATA / "sysbench-cpu/1.0.20--trixie-workers/0-worker2.stdout",
    ),
}


SYSBENCH = LOGS["sysbench cpu"].read_bytes().decode()
CLIENT = """\
Connecting to host {host}, port 5201
[  5] local 10.0.0.2 port 40000 connected to {address} port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    0    400 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.16 GBytes  1.00 Gbits/sec    7             sender
[  5]   0.00-10.00  sec  1.16 GBytes  1.00 Gbits/sec                  receiver

iperf Done.
"""  # written by hand, in the layout of iperf 3.7 and later


class Taken(NamedTuple):
    """A value that was taken, without the line that it stands on."""

    benchmark: str
    metric: str
    value: float
    labels: tuple[tuple[str, str], ...]


def text_of(path: Path) -> str:
    return path.read_bytes().decode()


def lines_of(text: str) -> Iterable[Line]:
    for number, line in enumerate(text.split("\n"), start=1):
        rank, cleaned = clean(line)
        yield Line(number, rank, cleaned)


def sections(text: str) -> list[Section]:
    return list(cut(lines_of(text)))


def readings(text: str) -> list[Reading]:
    return [read_section(section) for section in sections(text)]


@cache
def taken(text: str) -> list[Taken]:
    """Every value that the importer takes from a text, as the campaign would have it."""
    return [
        Taken(reading.benchmark, metric.name, value, tuple(sorted(labels.items())))
        for reading in readings(text)
        for metric, value, labels, _ in ranks.combined(reading)
    ]


def refused(text: str) -> list[str]:
    """Why values were not taken."""
    return [refusal.reason for reading in readings(text) for refusal in reading.refusals]


def value_lines(text: str) -> set[int]:
    """The lines that values stand on, from 0."""
    return {value.line - 1 for reading in readings(text) for value in reading.values}


def mixed(one: Sequence[str], other: Sequence[str], turns: Sequence[int]) -> list[str]:
    """Lines of two ranks as mpirun mixes them: `turns` says how many of each come next, alternately."""
    queues = [list(one), list(other)]
    result: list[str] = []
    for place, count in enumerate(turns):
        queue = queues[place % 2]
        result += queue[:count]
        del queue[:count]
    return [*result, *queues[0], *queues[1]]


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def imported(tmp_path: Path, files: dict[str, str | bytes], **options: Any) -> Report:
    logs = put(tmp_path / "logs", files)
    request = Request(paths=(logs,), **{"environment": "vm", **options})
    return import_logs(request, tmp_path / "campaign")


def faster(text: str, rate: str) -> str:
    """The same log with another rate, so that it is another run."""
    lines = [f"    events per second:   {rate}" if "events per second" in line else line for line in text.split("\n")]
    return "\n".join(lines)
