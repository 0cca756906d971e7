"""What goes wrong while a campaign runs: recorded, cleaned up, nothing earlier lost. Real processes, really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from vtax.errors import EnvironmentMissing
from vtax.paths import Paths
from vtax.running import lease, leftovers
from vtax.store import Campaign
from vtax.transport import process

from .conftest import CPU, PING, Vtax, finish, labels_of, study

pytestmark = pytest.mark.integration


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def wait_for(process: subprocess.Popen[str], path: Path, pattern: str, timeout_s: float = 90) -> None:
    """Until a file of that pattern exists: `trials/*/.*.tmp` while a trial runs."""
    deadline = time.monotonic() + timeout_s
    while not list(path.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"no {pattern} in {path}"
        time.sleep(0.05)


def left(places: Paths, campaign: Path) -> list[str]:
    """What a campaign has left behind, by its labels."""
    labels = labels_of(campaign).values()
    return [f"{item.kind} {item.name}" for item in leftovers.labelled(places) if item.campaign in labels]


def running(word: str) -> list[int]:
    """Processes whose command line has `word`."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (place / "cmdline").read_bytes().replace(b"\0", b" "):
                found.append(int(place.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("host", signal.SIGHUP),
        ("docker", signal.SIGINT),
        pytest.param("host", signal.SIGINT, marks=pytest.mark.long),
        pytest.param("docker", signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_an_interrupt_cleans_up_and_resume_finishes(
    name: str, number: int, vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    text = study([name], CPU.format(seconds=4) + CPU.format(seconds=5).replace("time_s", 'label = "second"\ntime_s'))
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/[!.]*/record.json")
    wait_for(process, campaign, "trials/*/.*.tmp")
    process.send_signal(number)
    began = time.monotonic()
    for again in (signal.SIGINT, signal.SIGHUP):  # while it cleans up
        time.sleep(0.1)
        process.send_signal(again)
    code, _, err = finish(process, 30)
    assert code == 130, err
    assert time.monotonic() - began < 15
    assert left(places, campaign) == []
    assert len(Campaign.open(campaign).trials()) == 1
    first = Campaign.open(campaign).trials()[0]
    code, out, err = finish(vtax("run", "--resume", str(campaign)))
    assert code == 0, err
    trials = Campaign.open(campaign).trials()
    assert len(trials) == 2
    assert first in trials, "what was done is not done again"
    assert (campaign / "report" / "index.html").exists()
    assert "report: " in out
    assert left(places, campaign) == []


@pytest.mark.parametrize("name", ["host", pytest.param("docker", marks=pytest.mark.long), "podman"])
def test_after_kill_9_clean_finds_everything(name: str, vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, study([name], CPU.format(seconds=9)))), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp")
    time.sleep(1)
    process.kill()
    process.communicate()
    assert left(places, campaign) != []
    code, out, err = finish(vtax("clean", "--check"))
    assert code == 5, out + err
    leftovers.clean([item for item in leftovers.leftovers(places) if item.campaign in out], places)
    assert left(places, campaign) == []
    assert running("--time=9 ") == []
    code, _, err = finish(vtax("run", "--resume", str(campaign)))
    assert code == 0, err
    assert len(Campaign.open(campaign).trials()) == 1


WORKER = """
import os, signal, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from vtax.transport.process import end_with

with ProcessPoolExecutor(1, get_context("fork"), end_with, (os.getpid(),)) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_that_measure_the_clock_end_with_vtax() -> None:
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + 10
    while Path(f"/proc/{int(done.stdout)}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_groups_of_a_session_end_with_it_at_once(tmp_path: Path) -> None:
    """`timeout` makes a group of its own, and what enters the host waits for its command without passing signals on."""
    words = "['timeout', '60', 'sleep', '59']"
    waits = f"import signal, subprocess; signal.signal(15, lambda *_: None); subprocess.run({words})"
    out = tmp_path / "out"
    started = process.start([sys.executable, "-c", waits], stdout=out, stderr=tmp_path / "err")
    deadline = time.monotonic() + 20
    while not (own := [pid for pid in running("sleep 59") if os.getsid(pid) == started.process.pid]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    began = time.monotonic()
    started.stop()
    assert time.monotonic() - began < process.TERM_GRACE_S / 2
    assert not set(own) & set(running("sleep 59"))


def test_a_node_that_dies_during_a_trial(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    text = study(["docker"], CPU.format(seconds=6) + PING)
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.sysbench-cpu*.tmp")
    label = labels_of(campaign)["docker"]
    subprocess.run(["docker", "kill", f"vtax-{label}-worker1"], check=True, capture_output=True)
    code, out, err = finish(process)
    assert code == 4, err
    trials = {trial.label: trial for trial in Campaign.open(campaign).trials()}
    assert trials["sysbench-cpu"].status == "failed"
    assert trials["ping"].status == "ok", "the rest of the cell goes on, on a fresh cluster"
    cells = Campaign.open(campaign).cells()
    assert [cell.instance for cell in cells] in ([1, 2], [1])
    assert any("no longer answered" in cell.failure for cell in cells)
    assert "sysbench-cpu" in (campaign / "report" / "index.html").read_text()
    assert "report: " in out
    assert left(places, campaign) == []


def test_a_tool_that_is_killed_is_a_recorded_failure(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, study(["host"], CPU.format(seconds=11) + PING))), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.sysbench-cpu*.tmp")
    deadline = time.monotonic() + 10
    while not (found := [pid for pid in running("--time=11 ") if "sysbench" in Path(f"/proc/{pid}/comm").read_text()]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(found[0], signal.SIGKILL)
    code, _, err = finish(process)
    assert code == 4, err
    trial = Campaign.open(campaign).trials()[0]
    assert trial.status == "failed"
    assert "137" in trial.failure
    assert left(places, campaign) == []


def test_no_daemon(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    path = write(tmp_path, study(["docker"], PING))
    code, _, err = finish(vtax("run", str(path), "-o", "c", DOCKER_HOST="unix:///nonexistent/docker.sock"))
    assert code == 3
    assert "docker does not answer" in err
    assert "next: " in err
    assert not (tmp_path / "c").exists()


def test_without_docker_containers_run_under_podman(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    text = study(["host", "box"], CPU.format(seconds=1)).replace('provider = "box"', 'provider = "container"')
    path = write(tmp_path, text)
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    code, _, err = finish(vtax("run", str(path), "-o", "c", **nowhere))
    assert code == 0, err
    plan = Campaign.open(tmp_path / "c").plan()
    assert [(spec.name, spec.provider) for spec in plan.environments] == [("host", "host"), ("box", "podman")]
    assert {trial.environment for trial in Campaign.open(tmp_path / "c").trials()} == {"host", "box"}


def test_environments_that_do_not_work_are_left_out_when_asked(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    path = write(tmp_path, study(["host", "docker", "podman"], CPU.format(seconds=1)))
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    code, _, err = finish(vtax("run", str(path), "-o", "c", "--available", **nowhere))
    assert code == 0, err
    assert "environment docker is left out: docker does not answer" in err
    assert any("docker is left out" in line for line in Campaign.open(tmp_path / "c").plan().left_out)


def test_a_full_disk_stops_the_campaign_and_loses_nothing(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "none", str(disk)], check=True)
    try:
        entries = "".join(CPU.format(seconds=1).replace("time_s", f'label = "n{i}"\ntime_s') for i in range(8))
        path = write(tmp_path, study(["host"], entries))
        process = vtax("run", str(path), "-o", str(disk / "c"))
        wait_for(process, disk / "c", "trials/*/*/record.json")
        (disk / "filler").write_bytes(b"x" * (70 * 2**20))
        code, _, err = finish(process)
        assert code == 3, err
        assert "MiB free" in err
        assert "--resume" in err
        done = len(Campaign.open(disk / "c").trials())
        assert 1 <= done < 8
        assert left(places, disk / "c") == []
        (disk / "filler").unlink()
        code, _, err = finish(vtax("run", "--resume", str(disk / "c")))
        assert code == 0, err
        assert len(Campaign.open(disk / "c").trials()) == 8
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_two_processes_do_not_run_one_campaign(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    first = vtax("run", str(write(tmp_path, study(["host"], CPU.format(seconds=4)))), "-o", str(campaign))
    wait_for(first, campaign, "trials/*/.*.tmp")
    code, _, err = finish(vtax("run", "--resume", str(campaign)))
    assert code == 2
    assert "another process" in err
    assert finish(first)[0] == 0


@pytest.mark.alone  # it keeps every other campaign out
def test_the_machine_of_a_campaign_from_elsewhere_is_left_alone(vtax: Vtax, tmp_path: Path) -> None:
    """Then it runs, and what comes from elsewhere meanwhile is refused."""
    path, campaign = write(tmp_path, study(["host"], CPU.format(seconds=4))), tmp_path / "c"
    with ExitStack() as other:
        lease.hold(other, "ann@there, /campaigns/x, process 1", 0.0)
        code, _, err = finish(vtax("run", str(path), "-o", str(campaign)))
        assert code == 3
        assert "this machine is being used by another campaign: ann@there, /campaigns/x, process 1" in err
    process = vtax("run", "--resume", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp")
    with ExitStack() as other, pytest.raises(EnvironmentMissing, match="one that was started on the machine itself"):
        lease.hold(other, "ann@there", 0.0)
    code, _, err = finish(process)
    assert code == 0, err


def test_a_cluster_for_a_person(vtax: Vtax, places: Paths) -> None:
    code, out, err = finish(vtax("up", "docker"))
    assert code == 0, err
    assert "docker is up" in out
    assert finish(vtax("up", "docker"))[0] == 2
    code, out, _ = finish(vtax("status"))
    assert code == 0
    assert out.count("answers") == 3
    code, out, err = finish(vtax("exec", "docker", "worker2", "--", "sh", "-c", "hostname; exit 7"))
    assert (code, out) == (7, "worker2\n"), err
    code, _, err = finish(vtax("exec", "docker", "worker9", "--", "true"))
    assert code == 2
    assert "master, worker1, worker2" in err
    code, out, err = finish(vtax("down", "docker"))
    assert code == 0, err
    assert finish(vtax("status", "--json"))[1].strip() == "[]"
