"""What goes wrong with virtual machines while a campaign runs: recorded, cleaned up, nothing left. Real machines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vtax import pipeline
from vtax.model.trial import TrialRecord
from vtax.paths import Paths
from vtax.providers import network as networks
from vtax.providers.qemu.processes import processes
from vtax.store import Campaign

from .conftest import CPU, PING, Vtax, finish, labels_of, study
from .test_bad_days import left, running, wait_for, write

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.long]
UP_S = 400  # for three machines on a busy machine without KVM
SECOND = CPU.format(seconds=1).replace("time_s", 'label = "second"\ntime_s')
IOZONE = """
[[benchmarks]]
name = "iozone"
scopes = ["{scope}"]
nodes = ["worker1"]
file_sizes = ["256 MiB"]
record_sizes = ["1 MiB"]
tests = [0, 1]
include_flush = true
"""


def on_machines(benchmarks: str, options: str = "", seed: int = 3) -> str:
    """A study of one environment of virtual machines."""
    text = study(["qemu"], benchmarks, seed=seed)
    return text.replace('provider = "qemu"\n', f'provider = "qemu"\nallow_emulation = true\n{options}')


def label_of(campaign: Path) -> str:
    return labels_of(campaign)["qemu"]


def processes_of(label: str) -> dict[str, int]:
    """Node -> the process of its machine; "" is the switch."""
    return {one.node: one.pid for one in processes() if one.campaign == label}


def on_node(places: Paths, label: str, node: str, script: str) -> subprocess.CompletedProcess[str]:
    """A command on a node of a campaign that is running, by the campaign's own configuration."""
    config = places.runtime / label / "qemu" / "ssh_config"
    return subprocess.run(
        ["ssh", "-F", str(config), node, script], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def judged(campaign: Path, name: str) -> TrialRecord:
    """A trial as it counts: one whose output was refused has failed."""
    return next(one for one in pipeline.measurements(campaign)[1] if one.label == name)


def nothing_left(places: Paths, campaign: Path) -> None:
    label = label_of(campaign)
    assert left(places, campaign) == []
    assert not running(f"vtax-{label}-")
    assert not (places.runtime / label).exists()
    assert label not in {one.label for one in networks.found()}


def test_a_guest_that_panics_during_a_trial(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """The machine ends at once, the trial is a recorded failure, the rest of the cell goes on with new machines, and
    the console of the first keeps what its kernel said."""
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, on_machines(CPU.format(seconds=20) + SECOND))), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.sysbench-cpu.*.tmp/*stdout", UP_S)
    label = label_of(campaign)
    victim = processes_of(label)["worker1"]
    on_node(places, label, "worker1", "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")
    code, _, err = finish(process, 600)
    assert code == 4, err
    assert victim not in processes_of(label).values()
    assert {one.label: one.status for one in Campaign.open(campaign).trials()} == {
        "sysbench-cpu": "failed",
        "second": "ok",
    }
    console = (campaign / "cells" / "r001-qemu.1.worker1.console.log").read_text()
    assert "Kernel panic - not syncing: sysrq triggered crash" in console
    assert (campaign / "cells" / "r001-qemu.2.worker1.console.log").exists()
    nothing_left(places, campaign)


def test_the_server_of_the_shared_directory_is_gone(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """What works on it is ended two minutes later, and the trial's record says why. Nothing hangs."""
    campaign = tmp_path / "c"
    text = on_machines(IOZONE.format(scope="shared"))
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp/*stdout", UP_S)
    while not next(campaign.glob("trials/*/.*.tmp/*stdout")).read_text().rstrip().endswith(("freread", "1024")):
        assert process.poll() is None
        time.sleep(0.1)  # until it writes
    began = time.monotonic()
    stopped = on_node(places, label_of(campaign), "master", "rpc.nfsd 0")
    assert stopped.returncode == 0, stopped.stderr
    code, _, err = finish(process, 500)
    assert code == 4, err
    assert 60 < time.monotonic() - began < 450
    record = judged(campaign, "iozone")
    assert record.status == "failed", record.failure
    assert "the server of /shared does not answer any more" in record.failure
    console = (campaign / "cells" / "r001-qemu.1.worker1.console.log").read_text()
    assert "the server of /shared does not answer" in console
    nothing_left(places, campaign)


@pytest.fixture
def small_disk(state: Path) -> Iterator[Path]:
    """The state directory, where the machines' disks are, on a file system of 120 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m,mode=700", "none", str(state)], check=True)
    yield state
    subprocess.run(["umount", str(state)], check=True)


def test_the_hosts_disk_is_full_while_a_machine_writes(
    small_disk: Path, vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    """The guest gets the error of the host's disk, instead of being stopped until somebody comes."""
    campaign = tmp_path / "c"
    text = on_machines(IOZONE.format(scope="node"))
    code, _, err = finish(vtax("run", str(write(tmp_path, text)), "-o", str(campaign)), 900)
    assert code == 4, err
    record = judged(campaign, "iozone")
    assert record.status == "failed", record.failure
    told = (campaign / "trials" / record.id / "0.worker1.stderr").read_text()
    assert told.startswith("fsync: "), (told, record.failure)
    nothing_left(places, campaign)


def rules_of_ours() -> list[str]:
    """What the packet filter of this machine's own namespace says of clusters' networks."""
    saved = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return [
        line for line in saved.splitlines() if re.search(r"vtax|10\.214\.|physdev|-[io] (bridge|master|worker)", line)
    ]


def test_two_campaigns_at_once_on_bridges(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """Same names and addresses of nodes, and no collision: each has a network namespace and ports of its own, and no
    rule of this machine's packet filter, whatever container engines put there, is needed or made."""
    text = on_machines(CPU.format(seconds=4) + PING, 'network = "tap"\n')
    path = write(tmp_path, text.replace('memory = "512 MiB"', 'memory = "384 MiB"'))
    campaigns = [tmp_path / "a", tmp_path / "b"]
    both = [vtax("run", str(path), "-o", str(campaign)) for campaign in campaigns]
    for process, campaign in zip(both, campaigns, strict=True):
        wait_for(process, campaign, "campaign.json", 60)
    labels = {label_of(campaign) for campaign in campaigns}
    deadline = time.monotonic() + UP_S
    while not all(set(processes_of(label)) == {"master", "worker1", "worker2"} for label in labels):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert labels <= {one.label for one in networks.found()}
    assert rules_of_ours() == []
    for process, campaign in zip(both, campaigns, strict=True):
        code, _, err = finish(process, 900)
        assert code == 0, err
        facts = {one.node: one.values for one in Campaign.open(campaign).cells()[0].facts}
        assert {values["vm_network"] for values in facts.values()} == {"tap"}
        assert {values["vm_vhost"] for values in facts.values()} <= {True, False}
        nothing_left(places, campaign)


@pytest.mark.parametrize("network", ["switch", "tap"])
def test_killed_outright_and_cleaned(network: str, vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """kill -9 of vtax with three machines up: they go on, `vtax clean` finds them by their label and ends them; no
    process, socket, tap or directory is left."""
    campaign = tmp_path / "c"
    text = on_machines(CPU.format(seconds=30), f'network = "{network}"\n')
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp", UP_S)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    label = label_of(campaign)
    items = left(places, campaign)
    assert sum(item.startswith("process ") for item in items) == (4 if network == "switch" else 3), items
    assert (f"network namespace vtax-{label}" in items) is (network == "tap")
    code, out, err = finish(vtax("clean"), 60)
    assert code == 0, out + err
    nothing_left(places, campaign)
