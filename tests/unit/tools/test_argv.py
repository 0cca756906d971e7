"""The exact command lines of every benchmark, so that a change of what is measured cannot pass unseen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from vtax.launchers.mpirun import Mpirun
from vtax.model.nodes import NodeShape, Role, Scope, Target
from vtax.model.plan import Step
from vtax.tools import benchmarks

PING = "ping -n"
SYSBENCH_FILES = "sysbench fileio --file-num=128 --file-total-size=2147483648"
CASES: tuple[tuple[str, Scope, Mapping[str, Any], tuple[str, ...]], ...] = (
    ("ping", Scope.PAIRS, {}, (f"{PING} -q -c 1 -W 5 worker1", f"{PING} -c 100 -i 0.02 worker1")),
    ("ping", Scope.PAIRS, {"count": 7, "interval_s": 1}, (f"{PING} -q -c 1 -W 5 worker1", f"{PING} -c 7 -i 1 worker1")),
    ("sysbench-cpu", Scope.NODE, {}, ("sysbench cpu --threads=4 --time=10 --events=0 --cpu-max-prime=20000 run",)),
    (
        "sysbench-cpu",
        Scope.CLUSTER,  # the nodes run the same command, so the smallest one decides
        {"time_s": 60, "max_prime": 10_000},
        ("sysbench cpu --threads=2 --time=60 --events=0 --cpu-max-prime=10000 run",),
    ),
    (
        "sysbench-memory",
        Scope.NODE,
        {},
        (
            "sysbench memory --threads=4 --time=10 --events=0 --memory-block-size=1024 "
            "--memory-total-size=107374182400 --memory-oper=write --memory-access-mode=seq run",
        ),
    ),
    (
        "sysbench-memory",
        Scope.NODE,
        {"block_size": "8 KiB", "total_size": "10 GiB", "operation": "read", "access": "rnd", "threads": 2},
        (
            "sysbench memory --threads=2 --time=10 --events=0 --memory-block-size=8192 "
            "--memory-total-size=10737418240 --memory-oper=read --memory-access-mode=rnd run",
        ),
    ),
    (
        "sysbench-fileio",
        Scope.NODE,
        {},
        (
            f"{SYSBENCH_FILES} prepare",
            f"{SYSBENCH_FILES} --file-test-mode=rndrw --file-block-size=16384 --file-fsync-freq=100 "
            "--file-fsync-end=on --threads=4 --time=10 --events=0 run",
            f"{SYSBENCH_FILES} cleanup",
        ),
    ),
    (
        "sysbench-fileio",
        Scope.SHARED,
        {"mode": "seqwr", "files": 2, "total_size": "1 GiB", "direct": True, "fsync_every": 0, "fsync_end": False},
        (
            "sysbench fileio --file-num=2 --file-total-size=1073741824 prepare",
            "sysbench fileio --file-num=2 --file-total-size=1073741824 --file-test-mode=seqwr --file-block-size=16384 "
            "--file-fsync-freq=0 --file-fsync-end=off --file-extra-flags=direct --threads=4 --time=10 --events=0 run",
            "sysbench fileio --file-num=2 --file-total-size=1073741824 cleanup",
        ),
    ),
    (
        "stress-ng",
        Scope.NODE,
        {},
        (
            "stress-ng --cpu 4 --cpu-method matrixprod --timeout 60s --metrics --verbose",
            "stress-ng --vm 4 --vm-bytes 536870912 --vm-method flip --timeout 60s --metrics --verbose",
            "stress-ng --io 4 --timeout 60s --metrics --verbose",
            "stress-ng --hdd 4 --hdd-bytes 1073741824 --hdd-write-size 65536 --timeout 60s --metrics --verbose",
        ),
    ),
    (
        "stress-ng",
        Scope.CLUSTER,
        {"stressors": ["vm"], "time_s": 2, "vm_bytes": "64 MiB", "vm_method": "write64"},
        ("stress-ng --vm 2 --vm-bytes 67108864 --vm-method write64 --timeout 2s --metrics --verbose",),
    ),
    (
        "iozone",
        Scope.NODE,
        {},
        ("iozone -a -n 64k -g 524288k -y 4k -q 16384k -i 0 -i 1 -i 2 -i 3 -i 4 -i 5 -i 6 -i 7 -f iozone.tmp",),
    ),
    (
        "iozone",
        Scope.SHARED,
        {
            "file_sizes": ["1 MiB", "16 MiB"],
            "record_sizes": ["4 KiB", "1 MiB"],
            "tests": [0, 1],
            "direct": True,
            "include_flush": True,
            "include_close": True,
            "operations_mode": True,
        },
        ("iozone -s 1024k -s 16384k -r 4k -r 1024k -i 0 -i 1 -I -e -c -O -f iozone.tmp",),
    ),
    (
        "iperf3",
        Scope.PAIRS,
        {},
        (
            "iperf3 -s -1 -p 5201 --forceflush",
            "iperf3 -c worker1 -p 5201 -J --connect-timeout 5000 -t 10 -O 1 -P 1 -i 1",
        ),
    ),
    (
        "iperf3",
        Scope.PAIRS,
        {"protocol": "udp", "reverse": True, "parallel": 2, "omit_s": 0, "window_bytes": "1 MiB", "port": 5999},
        (
            "iperf3 -s -1 -p 5999 --forceflush",
            "iperf3 -c worker1 -p 5999 -J --connect-timeout 5000 -t 10 -O 0 -P 2 -i 1 -u -b 3000000000 -w 1048576 -R",
        ),
    ),
)


def target(scope: Scope) -> Target:
    """An unequal cluster: a master of 4 CPUs and a worker of 2."""
    master = NodeShape(
        name="master", role=Role.MASTER, cpus=4, cpu_ids=(0, 1, 2, 3), memory_bytes=2**32, disk_bytes=2**33
    )
    worker = NodeShape(name="worker1", role=Role.WORKER, cpus=2, cpu_ids=(4, 5), memory_bytes=2**31, disk_bytes=2**33)
    nodes = (master,) if scope in (Scope.NODE, Scope.SHARED) else (master, worker)
    return Target(scope=scope, nodes=nodes, directory="/var/tmp/trial")


def steps(name: str, scope: Scope, params: Mapping[str, Any]) -> tuple[Step, ...]:
    benchmark = benchmarks()[name]
    resolved = benchmark.resolve(benchmark.params.model_validate(params), target(scope))
    return benchmark.steps(resolved, target(scope), Mpirun(interface="eth0"))


@pytest.mark.parametrize(("name", "scope", "params", "lines"), CASES, ids=lambda value: str(value)[:40])
def test_the_command_lines(name: str, scope: Scope, params: Mapping[str, Any], lines: tuple[str, ...]) -> None:
    assert tuple(" ".join(step.argv) for step in steps(name, scope, params)) == lines


def test_a_cluster_runs_the_same_command_on_all_nodes_at_the_same_time() -> None:
    (step,) = steps("sysbench-cpu", Scope.CLUSTER, {})
    assert step.nodes == ("master", "worker1")


def test_the_iperf3_server_waits_in_the_background_on_the_second_node() -> None:
    server, client = steps("iperf3", Scope.PAIRS, {})
    assert (server.nodes, server.background, server.ready) == (("worker1",), True, "Server listening on")
    assert (client.nodes, client.background) == (("master",), False)
    assert server.timeout_s > client.timeout_s > 10


@pytest.mark.parametrize(
    ("params", "interval"),
    [({"time_s": 1}, "0.1"), ({"time_s": 3}, "0.3"), ({"time_s": 60}, "1"), ({"time_s": 1, "interval_s": 0.5}, "0.5")],
)
def test_a_short_run_of_iperf3_is_reported_in_ten_intervals(params: Mapping[str, Any], interval: str) -> None:
    _, client = steps("iperf3", Scope.PAIRS, params)
    assert client.argv[client.argv.index("-i") + 1] == interval
    benchmark = benchmarks()["iperf3"]
    resolved = benchmark.resolve(benchmark.params.model_validate(params), target(Scope.PAIRS))
    assert resolved.interval_s == float(interval)  # as the plan has it


def test_a_step_may_take_longer_than_what_it_is_told_to_run() -> None:
    for name, scope, params, _ in CASES:
        benchmark = benchmarks()[name]
        resolved = benchmark.resolve(benchmark.params.model_validate(params), target(scope))
        allowed = sum(step.timeout_s for step in benchmark.steps(resolved, target(scope), Mpirun(interface="eth0")))
        assert 0 < benchmark.estimate_s(resolved, target(scope)) < allowed


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("ping", {"count": 0}),
        ("sysbench-cpu", {"threads": "all"}),
        ("sysbench-cpu", {"threads": 0}),
        ("sysbench-cpu", {"primes": 3}),
        ("sysbench-memory", {"block_size": "1 KB"}),
        ("sysbench-memory", {"block_size": 1.5}),
        ("sysbench-memory", {"block_size": True}),
        ("sysbench-memory", {"operation": "none"}),
        ("sysbench-fileio", {"mode": "combined"}),
        ("stress-ng", {"stressors": []}),
        ("stress-ng", {"stressors": ["matrix"]}),
        ("stress-ng", {"stressors": ["cpu", "cpu"]}),
        ("stress-ng", {"vm_bytes": "80%"}),
        ("stress-ng", {"hdd_write_size": "8 MiB"}),
        ("stress-ng", {"cpu_method": "--all"}),
        ("iozone", {"file_sizes": ["1 MiB"]}),
        ("iozone", {"file_sizes": ["4 KiB"], "record_sizes": ["8 KiB"]}),
        ("iozone", {"file_min": 1000}),
        ("iozone", {"file_min": "1 GiB"}),
        ("iozone", {"tests": [1]}),
        ("iozone", {"tests": [0, 8]}),
        ("iozone", {"tests": [0, 0]}),
        ("iperf3", {"bitrate": 0}),
        ("iperf3", {"protocol": "sctp"}),
        ("iperf3", {"port": 80}),
        ("iperf3", {"interval_s": 0.05}),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(name: str, params: Mapping[str, Any]) -> None:
    with pytest.raises(ValidationError):
        benchmarks()[name].params.model_validate(params)
