"""D01 to D08: units, caches, flushes and devices, from logs of iozone and sysbench and from facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import GIB, both, evidence, failed, logged, passed, recorded, unknown, value
from vtax.audit import Evidence, disk, files
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.tools.iozone import audit as iozone_audit

IOZONE = recorded("iozone", "3.507--trixie-range", "0-worker1.stdout")
DIRECT = recorded("iozone", "3.507--trixie-operations-direct-shared", "0-worker1.stdout")
FILEIO = recorded("sysbench-fileio", "1.0.20--trixie-rndrw", "1-worker1.stdout")
FILES = {
    name: (value("iozone", "throughput", 1e8, "byte/s", operation="write", file_bytes=str(2**27)),)
    for name in ("host", "container")
}


def iozone(text: str, size: int = 2**27, **more: Any) -> Evidence:
    each = (value("iozone", "throughput", 1e8, "byte/s", operation="write", file_bytes=str(size)),)
    return logged("iozone", both(text), values={"host": each, "container": each}, scope=Scope.NODE, **more)


def fileio(text: str, **more: Any) -> Evidence:
    return logged("sysbench-fileio", both(text), scope=Scope.NODE, **more)


def test_d01_what_the_numbers_of_iozone_are() -> None:
    assert "kBytes/sec" in passed(iozone_audit.unit, iozone(IOZONE))[0]
    assert "operations per second" in passed(iozone_audit.unit, iozone(DIRECT))[0]
    read_wrongly = DIRECT.replace("OPS Mode. Output is in operations per second.", "Output is in kBytes/sec")
    found = failed(iozone_audit.unit, iozone(read_wrongly))
    assert (found[0].severity, "ran with -O" in found[0].message) == (Severity.BLOCKER, True)
    assert "have no unit and are not used" in failed(iozone_audit.unit, iozone("64 4 1 2\n"))[0].message
    mixed = IOZONE.replace("\tOutput is in", "\tOPS Mode. Output is in operations per second.\n\tOutput is in")
    assert "several units: kBytes/sec, operations" in failed(iozone_audit.unit, iozone(mixed))[0].message
    assert unknown(iozone_audit.unit, iozone(""))


def test_d02_files_that_fit_into_memory() -> None:
    found = failed(files.page_cache, iozone(IOZONE))
    assert {one.severity for one in found} == {Severity.WARNING}  # in both, so the ratio is of the same thing
    assert "files up to 128 MiB, 2 GiB of memory, no O_DIRECT: reads and writes measure" in found[0].message
    assert "write" in found[0].labels["operation"]
    flushed = failed(
        files.page_cache, iozone(IOZONE.replace("\tOutput is", "\tInclude fsync in write timing\n\tOutput is"))
    )
    assert "write" not in flushed[0].labels["operation"]
    assert "read" in flushed[0].labels["operation"]


def test_d02_a_page_cache_in_one_environment_only() -> None:
    (found,) = failed(files.page_cache, logged("iozone", {"host": DIRECT, "container": IOZONE}, scope=Scope.NODE))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert found.message.endswith("; not so in host")


def test_d02_files_that_do_not() -> None:
    assert passed(files.page_cache, iozone(IOZONE, size=4 * GIB))
    assert "O_DIRECT" in passed(files.page_cache, iozone(DIRECT))[0]


def test_d02_a_host_that_caches_as_well() -> None:
    campaign = iozone(IOZONE, size=4 * GIB)
    specs = tuple(
        spec.model_copy(update={"options": {"cache": "writeback"}}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    cells = tuple(cell.model_copy(update={"host_facts": {"memory_total_bytes": 64 * GIB}}) for cell in campaign.cells)
    cached = replace(campaign, plan=campaign.plan.model_copy(update={"environments": specs}), cells=cells)
    (found,) = failed(files.page_cache, cached)
    assert (found.environment, "64 GiB of memory" in found.message) == ("container", True)


def test_d02_sysbench() -> None:
    found = failed(files.page_cache, fileio(FILEIO))
    assert "files up to 8 MiB" in found[0].message
    assert found[0].metrics == ("throughput_read",)  # writes are flushed, every 100 requests
    assert unknown(files.page_cache, fileio("sysbench 1.0.20\n"))


def test_d03_the_flush_in_the_timing() -> None:
    found = failed(files.flushed, iozone(IOZONE))
    assert (found[0].severity, "excludes the flush" in found[0].message) == (Severity.INFO, True)
    assert passed(files.flushed, iozone(DIRECT))
    mixed = logged("iozone", {"host": DIRECT, "container": IOZONE}, scope=Scope.NODE)
    said = [one.message for one in failed(files.flushed, mixed)]
    assert {one.severity for one in failed(files.flushed, mixed)} == {Severity.WARNING}
    assert any("fsync, close in host, nothing in container" in message for message in said)
    assert unknown(files.flushed, iozone(""))


def written(share: float) -> Evidence:
    """Direct tests, of whose 128 MiB the disks took a share."""
    campaign = iozone(DIRECT)
    taken = {"disk_written_bytes": share * 2**27}
    return replace(campaign, trials=tuple(one.model_copy(update={"host_counters": taken}) for one in campaign.trials))


def test_d06_bytes_that_never_reached_the_device() -> None:
    found = failed(disk.reached_device, written(0.1))
    assert (found[0].severity, "the disks took 10% of the bytes" in found[0].message) == (Severity.WARNING, True)
    mixed = written(1.2)
    lost = {one.id for one in mixed.trials if one.environment == "container"}
    trials = tuple(one for one in written(0.1).trials if one.id in lost)
    trials = (*(one for one in mixed.trials if one.id not in lost), *trials)
    (one,) = failed(disk.reached_device, replace(mixed, trials=trials))
    assert (one.severity, one.environment) == (Severity.BLOCKER, "container")
    assert passed(disk.reached_device, written(1.2))
    assert unknown(disk.reached_device, iozone(DIRECT))
    assert "see D02" in passed(disk.reached_device, iozone(IOZONE))[0]


def test_d06_sysbench() -> None:
    campaign = fileio(
        FILEIO,
        values={"container": (value("sysbench-fileio", "throughput_write", 1e6, "byte/s"),)},
        params={"time_s": 10},
    )
    trials = tuple(one.model_copy(update={"host_counters": {"disk_written_bytes": 2e6}}) for one in campaign.trials)
    found = failed(disk.reached_device, replace(campaign, trials=trials))
    assert [(one.environment, one.metrics) for one in found] == [("container", ("throughput_write",))]  # 2 of 10 MB


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"scratch_filesystem": "xfs"}, "the file system of /scratch is xfs in container, ext4 in host"),
        ({"scratch_options": "rw,sync"}, "the mount options of /scratch is rw,sync in container"),
        ({"scratch_scheduler": "bfq"}, "the I/O scheduler below /scratch is bfq in container"),
        ({"scratch_free_fraction": 0.01}, "/scratch in container has 1.0% of its space left"),
    ],
)
def test_d07_storage_that_is_set_up_differently(facts: dict[str, object], words: str) -> None:
    same = {
        "scratch_filesystem": "ext4",
        "scratch_options": "rw,relatime",
        "scratch_scheduler": "none",
        "scratch_free_fraction": 0.5,
    }
    (found,) = failed(disk.storage_setup, iozone(IOZONE, facts={"host": same, "container": {**same, **facts}}))
    assert (found.severity, found.environment) == (Severity.WARNING, "container")
    assert words in found.message
    assert passed(disk.storage_setup, iozone(IOZONE, facts={"host": same, "container": same}))
    assert unknown(disk.storage_setup, iozone(IOZONE))


def test_d08_a_disk_that_is_memory() -> None:
    same = {"scratch_filesystem": "ext4"}
    memory = {"host": same, "container": {"scratch_filesystem": "tmpfs"}}
    (found,) = failed(disk.disk_in_memory, iozone(IOZONE, facts=memory))
    assert (found.severity, found.message) == (Severity.BLOCKER, "/scratch in container is tmpfs; not so in host")
    alike = {name: {"scratch_filesystem": "tmpfs"} for name in ("host", "container")}
    assert {one.severity for one in failed(disk.disk_in_memory, iozone(IOZONE, facts=alike))} == {Severity.WARNING}
    assert passed(disk.disk_in_memory, iozone(IOZONE, facts={"host": same, "container": same}))
    assert unknown(disk.disk_in_memory, iozone(IOZONE))


def test_rows_about_disks_do_not_apply_without_a_disk_benchmark() -> None:
    assert disk.host_cache.look(evidence()).seen == ("no sysbench-fileio or iozone or fio in this campaign",)
