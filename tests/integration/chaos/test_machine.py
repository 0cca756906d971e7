"""The machine fails vtax: its disk is full, its memory is used up, its clock is set, its Docker daemon is killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from vtax.model.cluster import Image
from vtax.providers.container.engine import image_note
from vtax.store import Campaign

from ..conftest import CPU
from ..namespaces import new_name
from ..test_bad_days import running, write
from .campaigns import DERIVED, complete, continued, derived, never_reported, reported, small
from .conftest import Begin
from .harness import KILLS, Chaos, digests, rounds, share

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.long]
long = pytest.mark.long
MIB = 2**20
FULL = re.compile(r"No space left on device|MiB free", re.ASCII)


# --- a full disk -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(place: Path, **limits: int) -> Iterator[None]:
    """A file system of its own at `place`."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options(limits), "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def resize(place: Path, **limits: int) -> None:
    subprocess.run(["mount", "-o", f"remount,{options(limits)}", str(place)], check=True)


def options(limits: dict[str, int]) -> str:
    return ",".join((*(f"{name}={value}" for name, value in limits.items()), "mode=700"))


def inodes(place: Path) -> int:
    used = os.statvfs(place)
    return used.f_files - used.f_ffree


@pytest.mark.parametrize(
    "where", ["campaign", pytest.param("state", marks=long), pytest.param("temporary", marks=long)]
)
def test_no_more_files(where: str, chaos: Begin, tmp_path: Path) -> None:
    """The disk has room for a few more files each time, so the file that cannot be made is another one each time, from
    the first to the last of the report. What is finished stays, and the same command goes on in the end."""
    disk = tmp_path / "disk"
    disk.mkdir()
    one = chaos(f"full disk: {where}")
    path = write(tmp_path, small(["host"], rounds=1))
    place = {"campaign": disk, "state": one.state, "temporary": one.temporary}[where]
    one.campaign = disk / "c"
    step = max(1, 10 // KILLS)
    with small_disk(place, size=400 * MIB, nr_inodes=inodes_at_first(one)):
        for _ in range(200):
            began = one.start(*continued(one, path))
            code = began.code()
            one.check()
            if code == 0:
                break
            assert code == 3, began.told(code)
            assert FULL.search(began.text()), began.told(code)
            assert "Traceback" not in began.text()
            one.note("refused", where)
            resize(place, nr_inodes=inodes(place) + step if one.in_time() else 10**6)
        resize(place, nr_inodes=10**6)
        complete(one)
        reported(one, 0)
        one.clean()


def inodes_at_first(one: Chaos) -> int:
    return 1 + one.random.randrange(3)


def test_no_more_bytes_for_a_report(chaos: Begin, tmp_path: Path) -> None:
    """Each file of a report is the old one or the new one, wherever the disk was full, and the next report is right."""
    one = chaos("full disk: bytes of a report")
    one.finish("import", str(logs(tmp_path)), "--environment", "host", "--into", str(one.campaign))
    whole = never_reported(one)
    one.finish("report", str(whole))
    expected = derived(whole)
    disk = tmp_path / "disk"
    for _ in rounds(one, 1.0):
        with small_disk(disk, size=64 * MIB):
            shutil.copytree(one.campaign, disk / "c")
            room = one.random.choice((2**15, 2**18, 2 * MIB))
            resize(disk, size=used(disk) + one.random.randrange(4096, room))
            began = one.start("report", str(disk / "c"))
            code = began.code()
            assert code in (0, 3), began.told(code)
            assert code == 0 or FULL.search(began.text()), began.told(code)
            if code != 0:
                one.note("refused", "report")
            for name in DERIVED:
                assert not (disk / "c" / name).exists() or (disk / "c" / name).read_bytes() == expected[name]
            assert digests(disk / "c") == digests(one.campaign)
            resize(disk, size=64 * MIB)
            one.finish("report", str(disk / "c"))
            assert derived(disk / "c") == expected


def test_no_more_bytes_for_an_import(chaos: Begin, tmp_path: Path) -> None:
    """An import that the disk has no room for is as if it had not begun."""
    one = chaos("full disk: bytes of an import")
    source, disk = logs(tmp_path), tmp_path / "disk"
    words = ("import", str(source), "--environment", "host", "--into")
    one.finish(*words, str(one.campaign))
    room = sum(path.stat().st_size + 4096 for path in one.campaign.rglob("*"))
    for _ in rounds(one, 1.0):
        with small_disk(disk, size=one.random.randrange(8192, room)):
            began = one.start(*words, str(disk / "c"))
            code = began.code()
            assert code in (0, 3), began.told(code)
            assert code == 0 or FULL.search(began.text()), began.told(code)
            if code != 0:
                one.note("refused", "import")
            assert (code == 0) is (disk / "c" / "plan.json").exists()
            resize(disk, size=64 * MIB)
            if code != 0:
                one.finish(*words, str(disk / "c"))
            assert digests(disk / "c") == digests(one.campaign)


@long
def test_no_more_bytes_for_an_image_build(chaos: Begin, tmp_path: Path) -> None:
    """A build that the disk has no room for removes what it wrote."""
    disk = tmp_path / "disk"
    with small_disk(disk, size=6 * 2**30):
        one = chaos("full disk: image build", limit_s=900, cache=disk)
        for _ in rounds(one, 0.06):
            began = one.start("image", "build")
            time.sleep(one.random.uniform(4.0, 20.0))  # the whole takes 40 s where nothing else runs
            fill(disk)
            code = began.code()
            assert code == 3, began.told(code)
            one.note("refused", "image build")
            assert list(disk.rglob(".building-*")) == []
            resize(disk, size=6 * 2**30)
            one.clean()


def fill(disk: Path) -> None:
    """Leave no room on it, while something writes to it."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return resize(disk, size=max(MIB, used(disk)))
        except subprocess.CalledProcessError:  # more was written meanwhile: no file system is made smaller than it is
            assert time.monotonic() < deadline


def used(place: Path) -> int:
    disk = os.statvfs(place)
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def logs(tmp_path: Path) -> Path:
    """A folder of logs."""
    place = tmp_path / "logs"
    place.mkdir()
    for number, source in enumerate(sorted((Path(__file__).parents[2] / "data").glob("*/*/0-worker1.stdout"))):
        shutil.copyfile(source, place / f"{number}.txt")
    return place


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[Path]:
    """A control group whose memory is limited, empty at the end."""
    root = Path("/sys/fs/cgroup")
    parent = root if (root / "cgroup.controllers").exists() else root / "memory"
    place = parent / f"chaos-{uuid4().hex[:8]}"
    place.mkdir()
    yield place
    for line in (place / "cgroup.procs").read_text().split():
        os.kill(int(line), signal.SIGKILL)
    time.sleep(0.2)
    place.rmdir()


def limit(memory: Path, size: int) -> None:
    version_1 = (memory / "memory.limit_in_bytes").exists()
    (memory / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(size))


@long
def test_out_of_memory(chaos: Begin, tmp_path: Path, memory: Path) -> None:
    """The kernel kills vtax because its memory does not suffice, at a random moment of a campaign or of its report."""
    one = chaos("out of memory")
    path = write(tmp_path, small(["host"]))
    one.before = ("sh", "-c", f'echo $$ >{memory}/cgroup.procs; exec "{sys.executable}" -m vtax "$@"', "sh")
    while one.more(share(0.5), "run", "run --resume"):
        limit(memory, 2**40)  # all of it while the study is planned: vtax refuses one that does not fit
        began = one.start(*continued(one, path))
        while not Campaign(one.campaign).running() and began.process.poll() is None:
            time.sleep(0.01)
        time.sleep(one.random.uniform(0.0, 6.0))
        with contextlib.suppress(OSError):  # what is used cannot be taken away
            limit(memory, used_memory(memory) + one.random.randrange(MIB, 16 * MIB))
        code = began.code()
        if code == -signal.SIGKILL:
            one.note("kill", began.name, "alone")
        one.check()
        assert code in (0, -signal.SIGKILL), began.told(code)
        if code == 0:
            complete(one)
            one.again()
        elif one.random.random() < 0.5:
            one.clean()
    limit(memory, 2**40)
    one.finish(*continued(one, path))
    complete(one)
    reported(one, 0)
    one.clean()


def used_memory(memory: Path) -> int:
    version_1 = (memory / "memory.usage_in_bytes").exists()
    return int((memory / ("memory.usage_in_bytes" if version_1 else "memory.current")).read_text())


GREEDY = """
[[benchmarks]]
name = "sysbench-memory"
block_size = "512 MiB"
time_s = 2
nodes = ["worker1"]
"""


@long
def test_a_benchmark_that_needs_more_memory_than_its_node_has(chaos: Begin, tmp_path: Path) -> None:
    """The kernel ends it, and no other program: a recorded failure, and the rest of the campaign goes on."""
    one = chaos("out of memory: a benchmark")
    text = small(["host"], GREEDY + CPU.format(seconds=1), rounds=1).replace('memory = "512 MiB"', 'memory = "256 MiB"')
    began = one.start("run", str(write(tmp_path, text)), "-o", str(one.campaign))
    code = began.code()
    assert code == 4, began.told(code)
    one.check()
    trials = {trial.label: trial for trial in Campaign.open(one.campaign).trials()}
    assert {name: trial.status for name, trial in trials.items()} == {"sysbench-memory": "failed", "sysbench-cpu": "ok"}
    assert "137" in trials["sysbench-memory"].failure
    one.clean()


# --- clock -----------------------------------------------------------------------------------------------------------


def test_the_clock_is_set_while_a_campaign_runs(chaos: Begin, tmp_path: Path) -> None:
    """Back and forth by hours, in the middle of trials and between a kill and the resumption: durations are right, and
    trials are still known to have run in the planned order."""
    one = chaos("clock jumps")
    clock = tmp_path / "clock"
    clock.write_text("0")
    one.environment["CLOCK"] = str(clock)
    one.before = (sys.executable, str(Path(__file__).with_name("jumping.py")))
    path = write(tmp_path, small(["host"]))
    jumps = iter((-3600, 86400, -86400 * 365, 3600))
    began = one.start(*continued(one, path))
    wait_for_trials(one, 1)
    clock.write_text(str(next(jumps)))
    wait_for_trials(one, 2)
    clock.write_text(str(next(jumps)))
    wait_for_trials(one, 3)
    assert one.end(began, 0.0)
    clock.write_text(str(next(jumps)))
    one.clean()
    began = one.start(*continued(one, path))
    wait_for_trials(one, 5)
    clock.write_text(str(next(jumps)))
    began.good()
    one.check()
    assert "behind the last trial" in began.text()
    complete(one)
    trials = Campaign.open(one.campaign).trials(texts=False)
    assert max(trial.elapsed_s for trial in trials) < 60
    assert trials[-1].started - trials[0].started < 600
    order = next(row for row in json.loads((one.campaign / "audit.json").read_text())["rows"] if row["id"] == "R02")
    assert order["outcome"] == "pass", order
    reported(one, 0)
    one.clean()


def wait_for_trials(one: Chaos, count: int) -> None:
    deadline = time.monotonic() + 60
    while len({path.parent for path in digests(one.campaign)}) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- a Docker daemon -------------------------------------------------------------------------------------------------


class Daemon:
    """A Docker daemon of this test alone, in a network namespace of its own."""

    def __init__(self, top: Path) -> None:
        self.top, self.namespace = top, new_name("docker")
        self.socket, self.pid = top / "docker.sock", top / "pid"
        self.entered = ("nsenter", f"--net=/run/netns/{self.namespace}")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it answers: again where it gives up, as a service manager would."""
        deadline = time.monotonic() + 120
        self._start()
        while subprocess.run(self.client("version"), capture_output=True, check=False).returncode != 0:
            assert time.monotonic() < deadline, (self.top / "log").read_text()[-3000:]
            time.sleep(0.2)
            if self.process is not None and self.process.poll() is not None:
                self._start()

    def _start(self) -> None:
        self.pid.unlink(missing_ok=True)
        with (self.top / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(*self.entered, "dockerd", "--bridge", "none", "--host", f"unix://{self.socket}"),
                    *("--data-root", str(self.top / "data"), "--exec-root", str(self.top / "exec")),
                    *("--pidfile", str(self.pid)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
            )

    def client(self, *words: str) -> list[str]:
        return ["docker", "--host", f"unix://{self.socket}", *words]

    def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(60)


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory, image: Image) -> Iterator[Daemon]:
    one = Daemon(tmp_path_factory.mktemp("d"))
    note = image_note("docker", image)  # which the usual daemon's image has to fit again
    known = note.read_text() if note.exists() else ""
    subprocess.run(["ip", "netns", "add", one.namespace], check=True)
    subprocess.run(["ip", "-n", one.namespace, "link", "set", "lo", "up"], check=True)
    one.start()
    yield one
    left = subprocess.run(one.client("ps", "-aq"), capture_output=True, text=True, check=False).stdout
    one.end(signal.SIGTERM)
    for pid in running(str(one.top)):  # containerd, where its daemon was killed
        os.kill(pid, signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", one.namespace], check=True)
    for line in Path("/proc/mounts").read_text().splitlines():
        if str(one.top) in line:
            subprocess.run(["umount", line.split()[1]], check=False)
    shutil.rmtree(one.top)
    note.write_text(known)  # of the image in the usual daemon; without one it is imported again
    assert left == ""


@long
def test_the_docker_daemon_is_killed_and_started_again(chaos: Begin, tmp_path: Path, daemon: Daemon) -> None:
    """At any moment of a campaign: what fails is recorded or ends the campaign, what was finished stays, and nothing of
    the daemon's containers is left."""
    one = chaos("restarts of the Docker daemon", limit_s=300)
    one.environment["DOCKER_HOST"] = f"unix://{daemon.socket}"
    one.before = (*daemon.entered, sys.executable, "-m", "vtax")
    path = write(tmp_path, small(["docker"]))
    up = one.start("up", "docker", "--study", str(path))  # which imports the root file system
    up.good()
    one.finish("down", "docker")
    for _ in rounds(one, 0.2):
        began = one.start(*continued(one, path))
        with contextlib.suppress(subprocess.TimeoutExpired):
            began.process.wait(one.random.uniform(1.0, 12.0))
        daemon.end(one.random.choice((signal.SIGKILL, signal.SIGTERM)))
        one.note("refused", "daemon")
        time.sleep(one.random.uniform(0.0, 3.0))
        daemon.start()
        code = began.code()
        assert code in (0, 3, 4), began.told(code)
        assert "Traceback" not in began.text(), began.told(code)
        one.check()
        one.clean()
        if code in (0, 4):
            assert (one.campaign / "report" / "index.html").exists()
            one.again()
    one.again()
    one.finish(*continued(one, path))
    complete(one)
    one.clean()
    left = subprocess.run(daemon.client("images", "-q"), capture_output=True, text=True, check=True).stdout.split()
    assert len(left) == 1, "the root file system"
