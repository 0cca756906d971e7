"""F01 to F03, and rows about disks, on what fio printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from builders.audit_cases import as_imported, both, failed, logged, only, passed, recorded, unknown, value
from vtax.audit import Evidence, files
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.model.trial import Status
from vtax.tools.fio import audit

PARAMS = {"command": ["fio"], "metrics": [{"reader": "fio", "primary": ["read_iops"]}]}
BUFFERED = recorded("readers/fio", "3.39--trixie", "output")  # psync, size=4m, no direct
DIRECT = BUFFERED.replace('"size" : "4m"', '"size" : "4m", "direct" : "1"').replace('"psync"', '"libaio"')


def fio(text: str, **more: Any) -> Evidence:
    return logged("fio", both(text), params=PARAMS, scope=Scope.NODE, **more)


def test_the_texts_are_what_they_are_taken_for() -> None:
    assert '"ioengine" : "psync"' in BUFFERED
    assert '"direct"' in DIRECT


def test_f01_a_queue_that_has_no_effect() -> None:
    assert passed(audit.queue_depth, fio(BUFFERED))[0].endswith("psync, iodepth=1")
    deep = BUFFERED.replace('"size" : "4m"', '"size" : "4m", "iodepth" : "32"')
    found = failed(audit.queue_depth, fio(deep))
    assert "psync, iodepth=32: psync has one block at a time" in found[0].message
    assert failed(audit.queue_depth, fio(deep.replace('"psync"', '"libaio"')))[0].message.endswith(
        "libaio on buffered files has one block at a time"
    )
    assert passed(audit.queue_depth, fio(DIRECT.replace('"size" : "4m"', '"size" : "4m", "iodepth" : "32"')))
    assert unknown(audit.queue_depth, fio(""))


def test_f01_is_asked_of_logs_too() -> None:
    text = recorded("readers/fio", "3.33--bookworm-text", "output").replace("ioengine=libaio", "ioengine=psync")
    (first, *_) = failed(audit.queue_depth, as_imported(fio(text)))
    assert "psync, iodepth=8" in first.message


def test_f02_a_guest_that_is_faster_than_its_host() -> None:
    slow = (value("fio", "read_iops", 1000.0, "1/s"),)
    fast = (value("fio", "read_iops", 2200.0, "1/s"),)
    one = only(failed(audit.faster_than_host, fio(DIRECT, provider="qemu", values={"host": slow, "container": fast})))
    assert one.message == "fio: container has read_iops 2.2 times that of host, past its page cache"
    assert (one.severity, one.metrics) == (Severity.BLOCKER, ("read_iops",))
    assert passed(audit.faster_than_host, fio(DIRECT, provider="qemu", values={"host": slow, "container": slow}))
    shared_kernel = fio(DIRECT, values={"host": slow, "container": fast})
    assert not audit.faster_than_host.look(shared_kernel).findings  # a container has no disk of its own


def test_f03_direct_io_that_is_refused() -> None:
    campaign = fio(DIRECT)
    assert len(passed(audit.direct_refused, campaign)) == 2
    refused = "fio: looks like your file system does not support direct=1/buffered=0"
    trials = tuple(
        one.model_copy(update={"status": Status.FAILED, "failure": refused}) if one.environment == "container" else one
        for one in campaign.trials
    )
    one = only(failed(audit.direct_refused, replace(campaign, trials=trials)))
    assert one.message == "fio in container: direct I/O was refused in 6 runs"
    assert "-buffered" in one.remedy
    full = "fio --direct=1 on worker1: exit code 1\nfio: io_u error on file x: No space left on device: write"
    others = tuple(one.model_copy(update={"status": Status.FAILED, "failure": full}) for one in campaign.trials)
    assert not audit.direct_refused(replace(campaign, trials=others))


def test_d02_a_file_that_fits_into_memory_measures_the_page_cache() -> None:
    found = failed(files.page_cache, fio(BUFFERED, values=dict.fromkeys(("host", "container"), VALUES)))
    assert "fio in container: files up to 4 MiB, 2 GiB of memory, no O_DIRECT" in found[1].message
    assert set(found[1].metrics) == {"read_iops", "write_latency_p99"}
    assert {one.severity for one in found} == {Severity.WARNING}
    assert passed(files.page_cache, fio(DIRECT))


VALUES = (value("fio", "read_iops", 1.0, "1/s"), value("fio", "write_latency_p99", 1.0, "s"))
