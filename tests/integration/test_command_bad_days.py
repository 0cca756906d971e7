"""Own commands on bad days: floods of output, services that die or fill the disk. Each is a recorded failure that says
why, nothing grows without a limit, and the entry after it runs as if nothing had happened."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.store import Campaign

from .conftest import Vtax, finish, study

pytestmark = pytest.mark.integration
ENVIRONMENTS = ("host", "docker")
ENTRY = '[[benchmarks]]\nname = "command"\nlabel = "{label}"\nnodes = ["worker1"]\n{keys}\n'
ENTRIES = {
    "flood": 'command = ["head", "-c", "1000000000", "/dev/zero"]',
    "flood-in-setup": 'setup = [["sh", "-c", "yes >&2"]]\ncommand = ["true"]',
    "flooding-service": 'command = ["sleep", "60"]\nservices = [{ command = ["yes"] }]',
    "dying-service": 'command = ["sleep", "60"]\n'
    'services = [{ command = ["sh", "-c", "sleep 1; echo bye >&2; exit 3"] }]',
    "fine": 'command = ["true"]',
}
WHY = {
    "flood": "head -c 1000000000 /dev/zero on worker1 was ended: it printed more than 64 MiB",
    "flood-in-setup": "setup: sh -c 'yes >&2' on worker1 was ended: it printed more than 64 MiB",
    "flooding-service": "yes on worker1 was ended: it printed more than 64 MiB",
    "dying-service": "ended while it was needed, with exit code 3\nbye",
}


def write(directory: Path, environments: tuple[str, ...], entries: dict[str, str]) -> str:
    text = "".join(ENTRY.format(label=label, keys=keys) for label, keys in entries.items())
    path = directory / "own.toml"
    path.write_text(study(environments, text).replace("workers = 2", "workers = 1"))
    return str(path)


def test_floods_and_services_that_die(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    code, _, err = finish(vtax("run", write(tmp_path, ENVIRONMENTS, ENTRIES), "-o", "campaign"))
    assert code == 4, err
    trials = {(one.environment, one.label): one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    for environment in ENVIRONMENTS:
        assert trials[environment, "fine"].status is Status.OK
        for label, why in WHY.items():
            assert trials[environment, label].status is Status.FAILED
            assert why in trials[environment, label].failure
        for label in ("flooding-service", "dying-service"):  # the command is not waited for
            (ran,) = [step for step in trials[environment, label].steps if not step.background]
            assert ran.stopped
            assert ran.elapsed_s < 55
    assert sum(path.stat().st_size for path in (tmp_path / "campaign" / "trials").rglob("*")) < 30 * 2**20


@contextmanager
def mounted(state: Path, *options: str) -> Iterator[None]:
    """The nodes' files are on this file system."""
    subprocess.run(["mount", *options, "none", str(state)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(state)], check=True)


@pytest.fixture
def small_disk(state: Path) -> Iterator[None]:
    with mounted(state, "-t", "tmpfs", "-o", "size=96m"):
        yield


@pytest.fixture
def larger_disk(state: Path) -> Iterator[None]:
    """Room for an empty database and its log, and not for a gigabyte."""
    with mounted(state, "-t", "tmpfs", "-o", "size=256m"):
        yield


@pytest.fixture
def disk_without_direct_io(state: Path) -> Iterator[None]:
    """ramfs has none on any kernel; tmpfs has it since Linux 6.6."""
    with mounted(state, "-t", "ramfs"):
        yield


@pytest.mark.usefixtures("small_disk")
def test_a_service_that_fills_the_disk(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    entries = {
        "before": 'command = ["true"]',
        "fills": 'command = ["sleep", "60"]\ncleanup = [["rm", "{dir}/full"]]\n'
        'services = [{ command = ["sh", "-c", "cat /dev/zero >full"] }]',
        "after": 'command = ["true"]',
    }
    code, _, err = finish(vtax("run", write(tmp_path, ("host",), entries), "-o", "campaign"))
    assert code == 4, err
    trials = {one.label: one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    assert "No space left on device" in trials["fills"].failure
    assert {trials[label].status for label in ("before", "after")} == {Status.OK}


@pytest.mark.usefixtures("disk_without_direct_io")
def test_direct_io_that_the_file_system_refuses(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """The run fails with fio's own words, F03 says so, and the same file through the page cache is measured."""
    entries = """
[[benchmarks]]
workload = "fio-randread-4k"
values = { depth = 1, size = "8m" }
run = { seconds = 1 }

[[benchmarks]]
workload = "fio-randread-4k-buffered"
values = { size = "8m" }
run = { seconds = 1 }
"""
    (tmp_path / "direct.toml").write_text(study(("host",), entries).replace("workers = 2", "workers = 1"))
    code, _, err = finish(vtax("run", "direct.toml", "-o", "campaign"))
    assert code == 4, err
    trials = {one.label: one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    assert trials["fio-randread-4k-buffered"].status is Status.OK
    assert trials["fio-randread-4k"].status is Status.FAILED
    assert "does not support O_DIRECT" in trials["fio-randread-4k"].failure
    _, out, _ = finish(vtax("audit", "campaign"))
    assert "direct I/O was refused in 1 run" in " ".join(out.split())


DATABASE = """
[[benchmarks]]
workload = "pgbench"
packages = ["redis-server", "redis-tools", "postgresql-17"]  # those of test_servers.py: one root file system for both
values = { scale = 1, clients = 1 }

[benchmarks.run]
command = ["psql", "-c", "CREATE UNLOGGED TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 1e6)", "postgres"]
"""


@pytest.mark.usefixtures("larger_disk")
def test_a_disk_that_is_full_in_the_middle_of_a_transaction(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    (tmp_path / "full.toml").write_text(study(("host",), DATABASE).replace("workers = 2", "workers = 1"))
    code, _, err = finish(vtax("run", "full.toml", "-o", "campaign"))
    assert code == 4, err
    (trial,) = Campaign.open(tmp_path / "campaign").trials(texts=False)
    assert trial.status is Status.FAILED
    assert "No space left on device" in trial.failure
