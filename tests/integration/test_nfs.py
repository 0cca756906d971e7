"""A shared directory by NFS between machines that share none: emulated guests with Debian's kernel are the machines."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.guests_lab import DIRECTORY, Guest, GuestsLab, guests_lab
from integration.test_machines import User
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = [pytest.mark.integration, pytest.mark.long]

WAIT_S = 900.0
FROZEN_S = 40.0  # longer than a machine may be silent
INTERRUPTED_S = 100.0  # less than programs wait for a server
TABLES = """\
name = "served"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "trial"
[environments.host]
provider = "host"
network = "host"
[environments.bridged]
provider = "host"
network = "bridge"
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
place = "spread"
{more}
"""
FILES = """
[[benchmarks]]
name = "iozone"
scopes = ["shared"]
file_sizes = ["1 MiB"]
record_sizes = ["64 KiB"]
tests = [0, 1]
"""
PING = """
[[benchmarks]]
name = "ping"
count = {count}
interval_s = 0.01
"""
# Most of the time it waits for the server.
DD = "dd if=/dev/zero of=written"
WRITES = f"""
[[benchmarks]]
name = "command"
label = "writes"
scopes = ["shared"]
command = ["sh", "-ec", "for i in $(seq 80); do {DD} bs=64k count=16 conv=fsync 2>/dev/null; done"]
"""
EXISTING = f"""\
name = "existing"
baseline = "host"
rounds = 1
[environments.host]
provider = "host"
network = "bridge"
[environments.cloud]
provider = "ssh"
nodes = {{ master = "a", worker1 = "b" }}
directory = "{DIRECTORY}"
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
"""
# Everything that a share is made of: notes, mounts, exports, the server with its daemon, its directory and its module.
LOOK = """
ls /run/vtax-nfs 2>/dev/null | grep -v lock
grep -o '/run/vtax-[^ ]*' /proc/self/mountinfo
ls -d /run/vtax-*-* 2>/dev/null
cat /var/lib/nfs/etab
cat /proc/fs/nfsd/threads 2>/dev/null
pgrep -a rpc.mountd
grep -w nfsd /proc/filesystems
find /srv/vtax/state/run -mindepth 1 -maxdepth 1 2>/dev/null
true
"""
# A server as an administrator has it, with a client on the other guest.
OTHER = """
modprobe nfsd && mount -t nfsd nfsd /proc/fs/nfsd && mkdir -p /srv/other && echo theirs >/srv/other/file
echo '/srv/other 10.214.0.0/24(ro,no_subtree_check)' >/etc/exports && exportfs -ra
rpc.mountd -N 3 && rpc.nfsd -N 3 4
"""
NO_MORE = """
exportfs -ua; rpc.nfsd 0; pkill rpc.mountd; rm /etc/exports; umount /proc/fs/nfsd; modprobe -r nfsd; true
"""


@pytest.fixture(scope="module")
def machines(image: Image, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestsLab]:
    with guests_lab(("a", "b"), image, cache, tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def user(machines: GuestsLab, image: Image, tmp_path: Path, state: Path) -> Iterator[User]:
    made = User(machines, Path(image.directory).parent.parent, tmp_path, state, WAIT_S)
    yield made
    made.end()
    for guest in machines.guests.values():
        guest.go_on()


def written(user: User, count: int = 5, rounds: int = 1, more: str = "", entries: str = PING + FILES) -> Path:
    tables = user.machines.tables(user.images)
    return user.written(TABLES.format(rounds=rounds, more=more) + entries.format(count=count) + tables)


def look(machines: GuestsLab) -> dict[str, str]:
    return {name: guest.inside(LOOK) for name, guest in machines.guests.items()}


def assert_nothing_is_left(user: User, machines: GuestsLab, study: Path) -> None:
    assert look(machines) == {"a": "", "b": ""}
    assert [guest.processes() for guest in machines.guests.values()] == [[], []]
    assert user.vtax("clean", "--machines", str(study), "--check").startswith("nothing is left behind")


def test_the_masters_machine_serves_a_directory_to_the_others(user: User, machines: GuestsLab) -> None:
    """Two rounds, so that each machine serves once; clusters of both environments at the same time."""
    study = written(user, rounds=2)
    said = " ".join(user.vtax("plan", str(study)).split())
    assert "/shared is served by the master's machine with NFS 4.2, because the machines share no directory" in said
    assert look(machines) == {"a": "", "b": ""}, "a plan changes nothing"
    user.vtax("run", str(study), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}
    campaign = Campaign.open(user.campaign)
    servers = set()
    for record in campaign.cells():
        assert "/shared is the same on all 2 nodes" in record.checks
        facts = {one.node: one.values for one in record.facts}
        assert facts["worker1"]["shared_filesystem"] == "nfs4"
        assert facts["master"]["shared_filesystem"] == "ext4"
        assert facts["worker1"]["shared_server"] == facts["master"]["on_machine"]
        servers.add(facts["worker1"]["shared_server"])
    assert servers == {"a", "b"}
    assert {one.target.directory for one in campaign.plan().work if one.label == "iozone"} == {
        "/shared/iozone.worker1.shared"
    }
    rows = {one["id"]: one for one in json.loads((user.campaign / "audit.json").read_text())["rows"]}
    assert rows["D05"]["outcome"] == "pass", rows["D05"]
    assert_nothing_is_left(user, machines, study)


def roles(user: User, machines: GuestsLab) -> tuple[str, str]:
    """The machine that serves and the one that mounts, once a trial runs."""

    def begun() -> bool:
        assert user.started is not None and user.started.poll() is None, user.log()
        return any("ping -n" in line for guest in machines.guests.values() for line in guest.processes())

    user.wait(begun)
    (server,) = (name for name, text in look(machines).items() if "rpc.mountd" in text)
    (client,) = set(machines.guests) - {server}
    return server, client


def test_all_of_it_is_killed_then_cleaned(user: User, machines: GuestsLab) -> None:
    study = written(user, count=100_000)
    process = user.start("run", str(study), "-o", str(user.campaign))
    server, client = roles(user, machines)
    seen = look(machines)
    to = machines.guests[client].address
    assert f"{to}(rw" in seen[server] and machines.guests[server].address not in seen[server]
    assert "vtax-" in seen[client] and "rpc.mountd" not in seen[client]
    for guest in machines.guests.values():
        guest.inside("pkill -9 -f 'vtax[.]running[.]agent'", check=False)  # first: they clean up
    process.send_signal(signal.SIGKILL)
    process.wait()
    listed = user.vtax("clean", "--machines", str(study), "--check", code=5)
    assert "export" in listed and "mount" in listed
    user.vtax("clean", "--machines", str(study))
    assert_nothing_is_left(user, machines, study)


def freeze_server(user: User, machines: GuestsLab) -> tuple[Guest, Guest]:
    """Stop all of the guest that serves the directory while a program of the other one writes into it. Returns both."""
    user.wait((user.campaign / "plan.json").exists)
    where = Campaign.open(user.campaign).plan().cells[0].placement
    server, client = machines.guests[where["master"]], machines.guests[where["worker1"]]

    def writing() -> bool:
        assert user.started is not None and user.started.poll() is None, user.log()
        return any(DD in line for line in client.processes())

    user.wait(writing)
    server.pause()
    return server, client


def test_a_server_that_freezes_for_a_while_costs_one_trial(user: User, machines: GuestsLab) -> None:
    """The program on the other machine gets an error, and both environments have new clusters when it is back."""
    study = written(user, rounds=2, entries=WRITES)
    process = user.start("run", str(study), "-o", str(user.campaign))
    server, client = freeze_server(user, machines)
    time.sleep(FROZEN_S)
    server.go_on()
    assert process.wait(timeout=WAIT_S) == 4, user.log()
    found = user.statuses()
    assert list(found.values()).count(Status.OK) == 3 and len(found) == 4, user.log()
    (lost,) = (one for one in Campaign.open(user.campaign).trials(texts=False) if one.status is not Status.OK)
    assert lost.status is Status.FAILED and lost.round == 1
    assert f"machine {server.name}" in lost.failure and f"machine {server.name} is back" in user.log()
    assert f"machine {client.name}" not in user.log()
    assert_nothing_is_left(user, machines, study)


def test_a_server_that_does_not_come_back_ends_the_campaign(user: User, machines: GuestsLab) -> None:
    """On the other machine nothing is left while it is frozen, and nothing on it when it is back."""
    study = written(user, rounds=2, entries=WRITES)
    process = user.start("run", str(study), "-o", str(user.campaign))
    server, client = freeze_server(user, machines)
    assert process.wait(timeout=WAIT_S) == 3, user.log()
    assert f"error: machine {server.name} did not come back, and every cluster needs it" in user.log()
    assert f"vtax run --resume {user.campaign}" in user.log()
    assert client.inside(LOOK) == "" and client.processes() == []
    assert list(user.statuses().values()) == [Status.FAILED]
    server.go_on()
    user.wait(lambda: look(machines)[server.name] == "" and server.processes() == [])
    assert_nothing_is_left(user, machines, study)


def test_ctrl_c_does_not_wait_for_a_server_that_is_frozen(user: User, machines: GuestsLab) -> None:
    """What waits for it on the other machine does not even end when it is killed: its mount is given up."""
    study = written(user, entries=WRITES)
    process = user.start("run", str(study), "-o", str(user.campaign))
    server, client = freeze_server(user, machines)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=INTERRUPTED_S) == 130, user.log()
    assert client.inside(LOOK) == "" and client.processes() == []
    server.go_on()
    user.wait(lambda: look(machines)[server.name] == "" and server.processes() == [])
    assert_nothing_is_left(user, machines, study)


def test_nodes_that_exist_already_have_it_too(user: User, machines: GuestsLab) -> None:
    study = user.written(EXISTING + FILES)
    said = user.vtax("doctor", "--machines", str(study))
    assert said.count("/shared by NFS: can serve and mount") == 2
    said = " ".join(user.vtax("plan", str(study)).split())
    assert "/shared of cloud is served by the master's machine with NFS 4.2, because the nodes share no" in said
    user.vtax("run", str(study), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK} and len(user.statuses()) == 2
    (cell,) = (one for one in Campaign.open(user.campaign).cells() if one.environment == "cloud")
    facts = {one.node: one.values for one in cell.facts}
    assert [facts[node]["shared_filesystem"] for node in ("master", "worker1")] == ["ext4", "nfs4"]
    assert facts["worker1"]["shared_server"] == "cloud-master"
    assert "/shared is the same on all 2 nodes" in cell.checks
    assert_nothing_is_left(user, machines, study)


def test_a_server_that_runs_already_stays_as_it_is(user: User, machines: GuestsLab) -> None:
    """Each machine has one, and the other is its client all the time."""
    study, guests = written(user), machines.guests
    try:
        for guest in guests.values():
            guest.inside(OTHER)
        for name, other in (("a", "b"), ("b", "a")):
            guests[name].inside(f"mkdir -p /mnt/other && mount -t nfs4 {guests[other].address}:/srv/other /mnt/other")
        before = look(machines)
        user.vtax("run", str(study), "-o", str(user.campaign))
        assert set(user.statuses().values()) == {Status.OK}
        assert look(machines) == before
        assert [guest.inside("cat /mnt/other/file") for guest in guests.values()] == ["theirs\n", "theirs\n"]
    finally:
        for guest in guests.values():
            guest.inside("umount -l -f /mnt/other", check=False)
        for guest in guests.values():
            guest.inside(NO_MORE)
    assert_nothing_is_left(user, machines, study)


def test_where_that_cannot_be_the_plan_says_why(user: User, machines: GuestsLab) -> None:
    """A port that something else has on one machine, and a program that is missing on the other."""
    a, b = machines.guests["a"], machines.guests["b"]
    a.inside(
        "setsid python3 -c 'import socket,time; s=socket.create_server((\"\",2049)); time.sleep(3600)' "
        ">/dev/null 2>&1 </dev/null & echo $! >/tmp/taken"
    )
    b.inside("mv /usr/sbin/mount.nfs4 /usr/sbin/not-mount.nfs4")
    try:
        said = " ".join(user.vtax("plan", str(written(user))).split())
    finally:
        b.inside("mv /usr/sbin/not-mount.nfs4 /usr/sbin/mount.nfs4")
        a.inside("kill $(cat /tmp/taken)")
    assert "machine a cannot serve: port 2049 is taken by another program" in said
    assert "machine b cannot mount: the program mount.nfs4 is not installed (apt-get install nfs-common)" in said
    assert "iozone is not run on shared" in said
    off = written(user, more="[shared]\nnfs = false\n")
    assert "NFS is turned off (nfs = false in [shared])" in " ".join(user.vtax("plan", str(off)).split())
