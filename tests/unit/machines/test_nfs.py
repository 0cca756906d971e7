"""A directory by NFS on one machine: what is needed, what is made, and that all of it goes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.nfs import DAEMON, HEADER, FakeMachine
from vtax.errors import CommandError, ProvisionError
from vtax.machines.nfs_kernel import cannot_mount, cannot_serve
from vtax.paths import Paths
from vtax.running import leftovers
from vtax.store import alive

NAME, LABEL = "vtax-0123abcd-00000001", "89abcdef"
PLACE = f"/run/{NAME}"
OTHER_NAME, OTHER_LABEL = "vtax-0123abcd-00000002", "89abcde0"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path, monkeypatch)


def files(machine: FakeMachine) -> set[str]:
    """Everything below the directories in which something is made, but for empty ones."""
    places = [machine.root / name for name in ("run", "vtax", "var/lib/nfs")]
    found = {str(path.relative_to(machine.root)) for place in places for path in place.rglob("*")}
    return found - {"run/vtax-nfs", "run/vtax-nfs/lock", "vtax/run", f"vtax/run/{LABEL}", "var/lib/nfs/etab"}


def serve(machine: FakeMachine, label: str = LABEL, name: str = NAME) -> None:
    machine.shares.serve(label, name, ("10.0.0.2", "10.0.0.3"))


# --- what is needed


def able(machine: FakeMachine) -> tuple[str, str]:
    return cannot_serve(machine.root / "vtax", machine.root), cannot_mount(machine.root)


def test_a_machine_with_all_of_it_can_serve_and_mount(machine: FakeMachine) -> None:
    assert able(machine) == ("", "")
    assert set(machine.log) == {
        "modprobe --dry-run --quiet nfsd",
        "modprobe --dry-run --quiet nfsv4",
    }  # changes nothing
    machine.write("proc/filesystems", "nodev\tnfs4\nnodev\tnfsd\n")  # built in, or loaded
    machine.modules.clear()
    assert able(machine) == ("", "")


def without(name: str) -> Callable[[FakeMachine], None]:
    return lambda machine: machine.installed.discard(name)


def written(path: str, text: str) -> Callable[[FakeMachine], None]:
    return lambda machine: machine.write(path, text)


MAY_NOT = "it takes root with the right to mount (log in as root)"


@pytest.mark.parametrize(
    ("change", "serve", "mount"),
    [
        (lambda machine: machine.modules.discard("nfsd"), "its kernel has no module nfsd", ""),
        (lambda machine: machine.modules.discard("nfsv4"), "", "its kernel has no module nfsv4"),
        (without("modprobe"), "its kernel has no module nfsd", "its kernel has no module nfsv4"),
        (
            without("exportfs"),
            "the program exportfs is not installed (apt-get install nfs-kernel-server)",
            "",
        ),
        (
            without("mount.nfs4"),
            "",
            "the program mount.nfs4 is not installed (apt-get install nfs-common)",
        ),
        (written("proc/self/status", "CapEff:\t00000000a80425fb\n"), MAY_NOT, MAY_NOT),  # of a container
        (written("proc/self/uid_map", "0 100000 65536\n"), MAY_NOT, MAY_NOT),  # of a user namespace
        (
            written("proc/net/tcp", HEADER + "0: 00000000:0801 00000000:0000 0A\n"),
            "port 2049 is taken by another program",
            "",
        ),
        (written("proc/net/tcp", HEADER + "0: 0100000A:0801 00000000:0000 01\n"), "", ""),  # a connection, not a server
        (
            written("var/lib/nfs/etab", "/srv\t*(rw)\n"),
            "exports of an NFS server that does not run are in /var/lib/nfs/etab (exportfs -ua removes them)",
            "",
        ),
        (written("var/lib/nfs/etab", f"{PLACE}\t10.0.0.2(rw)\n"), "", ""),  # vtax's own, of before a reboot
        (lambda machine: machine.other_server(), "", ""),
        (
            lambda machine: machine.other_server(versions="+3 +4 -4.1 -4.2\n"),
            "the NFS server that runs there does not speak version 4.2",
            "",
        ),
        (
            lambda machine: machine.other_server(export="/srv\t*(rw,fsid=0,sync)\n"),
            "the NFS server that runs there has a root of its own (fsid=0), outside of which nothing is seen",
            "",
        ),
    ],
)
def test_what_is_missing_is_said(
    machine: FakeMachine, change: Callable[[FakeMachine], None], serve: str, mount: str
) -> None:
    change(machine)
    assert able(machine) == (serve, mount)


def test_an_ordinary_user_can_do_neither(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert able(machine) == (MAY_NOT, MAY_NOT)


@pytest.mark.parametrize("kind", ["overlay", "nfs4", "fuse.sshfs"])
def test_what_cannot_be_exported_is_not_served(machine: FakeMachine, kind: str) -> None:
    place = machine.root / "with space"
    place.mkdir()
    machine.mount(str(place).replace(" ", "\\040"), kind)
    assert cannot_serve(place / "vtax", machine.root).startswith(f"the file system of {place}/vtax is ")
    assert cannot_serve(machine.root / "vtax", machine.root) == ""


# --- what is made, and removed


def test_a_directory_is_exported_to_the_other_machines_alone_and_goes(machine: FakeMachine) -> None:
    before = machine.read("proc/filesystems")
    serve(machine)
    first, second = machine.read("var/lib/nfs/etab").splitlines()
    assert first.startswith(f"{PLACE}\t10.0.0.2(rw,") and second.startswith(f"{PLACE}\t10.0.0.3(rw,")
    assert len(first.partition("fsid=")[2].rstrip(")")) == 32
    assert machine.read("proc/fs/nfsd/threads") == "8\n" and machine.read("proc/fs/nfsd/v4_end_grace") == "Y"
    assert machine.points() == [PLACE, "/proc/fs/nfsd"]
    assert (machine.root / f"vtax/run/{LABEL}/{NAME}").stat().st_mode & 0o777 == 0o700
    machine.shares.release(LABEL)
    assert (machine.read("var/lib/nfs/etab"), machine.read("proc/fs/nfsd/threads")) == ("", "0\n")
    assert machine.points() == [] and machine.killed == [DAEMON] and files(machine) == set()
    assert machine.read("proc/filesystems") == before
    assert machine.read("proc/fs/nfsd/versions") == "+3 +4 +4.1 +4.2"  # as before the server was started
    done = list(machine.log)
    machine.shares.release(LABEL)
    assert machine.log == done


def test_the_server_goes_with_the_last_export(machine: FakeMachine) -> None:
    serve(machine)
    serve(machine, OTHER_LABEL, OTHER_NAME)
    assert machine.log.count("rpc.mountd -N 3") == 1
    machine.shares.release(LABEL)
    assert machine.read("proc/fs/nfsd/threads") == "8\n" and machine.killed == []
    assert PLACE not in machine.points() and "exportfs -f" in machine.log
    machine.shares.release(OTHER_LABEL)
    assert machine.read("proc/fs/nfsd/threads") == "0\n" and machine.killed == [DAEMON]
    assert machine.points() == []


def test_a_server_of_somebody_else_stays_as_it_is(machine: FakeMachine) -> None:
    machine.other_server()
    before = {
        name: machine.read(name) for name in ("proc/fs/nfsd/threads", "proc/fs/nfsd/versions", "proc/filesystems")
    }
    serve(machine)
    assert machine.read("var/lib/nfs/etab").startswith("/srv\t*(rw,sync)\n" + PLACE)
    machine.shares.release(LABEL)
    assert {name: machine.read(name) for name in before} == before
    assert machine.read("var/lib/nfs/etab") == "/srv\t*(rw,sync)\n"
    assert machine.points() == ["/proc/fs/nfsd"] and machine.killed == [] and files(machine) == set()
    assert not any(line.startswith(("rpc.", "modprobe")) for line in machine.log)


def test_a_server_that_others_use_since_stays(machine: FakeMachine) -> None:
    serve(machine)
    machine.done(["exportfs", "-i", "-o", "ro", "10.0.0.9:/srv"])
    machine.shares.release(LABEL)
    assert machine.read("proc/fs/nfsd/threads") == "8\n" and machine.killed == []
    assert machine.read("var/lib/nfs/etab").startswith("/srv\t10.0.0.9") and files(machine) == set()


def test_a_daemon_that_ran_before_is_used_and_stays(machine: FakeMachine) -> None:
    machine.process(99)
    serve(machine)
    machine.shares.release(LABEL)
    assert "rpc.mountd -N 3" not in machine.log and machine.killed == []
    assert machine.read("proc/fs/nfsd/threads") == "0\n"


def test_processes_of_others_are_not_killed(machine: FakeMachine) -> None:
    """Not the daemon of a container with a network of its own, whether it was there before or came since."""
    machine.process(98, network="net:[2]")
    serve(machine)
    machine.process(97, network="net:[2]")
    machine.process(96, name="rpc.statd")
    machine.shares.release(LABEL)
    assert machine.killed == [DAEMON]


def test_after_a_reboot_the_server_of_somebody_else_is_not_stopped(machine: FakeMachine) -> None:
    """Where notes outlive it: /run is not in memory everywhere."""
    serve(machine)
    machine.write("proc/sys/kernel/random/boot_id", "2e4d\n")
    machine.write("var/lib/nfs/etab", "")
    machine.shares.release(LABEL)
    assert machine.read("proc/fs/nfsd/threads") == "8\n" and machine.killed == [] and files(machine) == set()


@pytest.mark.parametrize(
    "step", ["mount --bind", "modprobe nfsd", "mount -t nfsd", "rpc.mountd", "rpc.nfsd -N", "exportfs"]
)
def test_what_fails_half_way_leaves_nothing(machine: FakeMachine, step: str) -> None:
    before = machine.read("proc/filesystems")
    machine.fails = {step}
    with pytest.raises(CommandError):
        serve(machine)
    machine.fails = set()
    machine.shares.release(LABEL)
    assert machine.points() == [] and files(machine) == set() and machine.read("var/lib/nfs/etab") == ""
    assert machine.read("proc/fs/nfsd/threads") in ("", "0\n") and machine.read("proc/filesystems") == before
    assert machine.killed == ([DAEMON] if "rpc.mountd -N 3" in machine.log and step != "rpc.mountd" else [])


def test_a_directory_is_mounted_and_goes(machine: FakeMachine) -> None:
    machine.shares.mount(LABEL, NAME, "10.0.0.1")
    (line,) = machine.log
    assert line.startswith("mount -t nfs4 -o vers=4.2,") and line.endswith(f" 10.0.0.1:{PLACE} {PLACE}")
    assert "softerr" in line, "a server that is gone is an error, not a program that waits for ever"
    machine.shares.release(LABEL)
    assert machine.points() == [] and files(machine) == set()
    assert machine.log[1:] == [f"umount -i -c {PLACE}"]


def test_a_server_that_does_not_answer_any_more_keeps_nothing_mounted(machine: FakeMachine) -> None:
    machine.shares.mount(LABEL, NAME, "10.0.0.1")
    machine.stuck = {PLACE}
    machine.shares.release(LABEL)
    assert machine.log[1:] == [f"umount -i -c {PLACE}", f"umount -i -c -f -l {PLACE}"] and machine.points() == []


def test_a_program_that_waits_for_a_server_that_is_gone_is_ended(machine: FakeMachine) -> None:
    """No signal ends it, but an answer does, if only an error."""
    machine.shares.mount(LABEL, NAME, "10.0.0.1")
    machine.shares.mount(OTHER_LABEL, OTHER_NAME, "10.0.0.1")
    asked: list[str] = []

    def destroy(label: str) -> None:
        asked.append(label)
        if PLACE in machine.points():
            raise ProvisionError("its control group cannot be removed")

    machine.shares.ended(LABEL, destroy)
    assert asked == [LABEL, LABEL] and machine.log[2:] == [f"umount -i -c -f -l {PLACE}"]
    assert machine.points() == [f"/run/{OTHER_NAME}"], "what another cluster has stays"
    machine.shares.release(LABEL)
    assert [one.name for one in machine.shares.leftovers()] == [f"/run/{OTHER_NAME}"]


def test_nodes_that_stay_without_such_a_directory_are_an_error_at_once(machine: FakeMachine) -> None:
    """On the machine that serves it no program waits for another one."""
    serve(machine)
    asked: list[str] = []

    def destroy(label: str) -> None:
        asked.append(label)
        raise ProvisionError("its control group cannot be removed")

    with pytest.raises(ProvisionError, match="control group"):
        machine.shares.ended(LABEL, destroy)
    assert asked == [LABEL] and PLACE in machine.points()


def test_what_cannot_be_unmounted_stays_noted(machine: FakeMachine) -> None:
    machine.shares.mount(LABEL, NAME, "10.0.0.1")
    machine.fails = {"umount"}
    with pytest.raises(ProvisionError, match="cannot be unmounted"):
        machine.shares.release(LABEL)
    assert [one.name for one in machine.shares.leftovers()] == [PLACE]


def test_a_closed_port_is_said_before_a_mount_is_tried(machine: FakeMachine) -> None:
    machine.closed = "Connection refused"
    with pytest.raises(ProvisionError) as raised:
        machine.shares.mount(LABEL, NAME, "10.0.0.1")
    assert raised.value.message == "the NFS server at 10.0.0.1 cannot be reached: Connection refused"
    assert "TCP port 2049" in raised.value.remedy and machine.log == []
    machine.shares.release(LABEL)
    assert files(machine) == set()


def test_a_mount_that_is_refused_says_what_to_open(machine: FakeMachine) -> None:
    machine.fails = {"mount -t nfs4"}
    with pytest.raises(ProvisionError) as raised:
        machine.shares.mount(LABEL, NAME, "10.0.0.1")
    assert f"10.0.0.1:{PLACE} cannot be mounted" in str(raised.value) and "TCP port 2049" in raised.value.remedy
    machine.shares.release(LABEL)
    assert files(machine) == set()


# --- after a crash


def test_what_a_crash_left_is_listed_with_its_owner(machine: FakeMachine) -> None:
    serve(machine)
    machine.shares.mount(OTHER_LABEL, OTHER_NAME, "10.0.0.1")
    found = machine.shares.leftovers()
    assert [(one.provider, one.kind, one.name, one.campaign, one.elsewhere) for one in found] == [
        ("nfs", "export", PLACE, LABEL, ""),
        ("nfs", "mount", f"/run/{OTHER_NAME}", OTHER_LABEL, ""),
    ]
    mine = machine.shares
    mine.runtime = machine.root / "another"
    assert {one.elsewhere for one in mine.leftovers()} == {str(machine.root / "vtax/run")}


def test_a_note_that_is_not_vtaxs_own_is_nobodys(machine: FakeMachine) -> None:
    serve(machine)
    bad = '{"name": "vtax-0123abcd-00000003", "label": "../../etc", "runtime": "/"}'
    machine.write("run/vtax-nfs/vtax-0123abcd-00000003", bad)
    machine.write("run/vtax-nfs/vtax-0123abcd-00000004", "{")
    assert len(machine.shares.leftovers()) == 1


def test_an_export_of_before_a_reboot_goes_when_a_server_starts(machine: FakeMachine) -> None:
    machine.write("var/lib/nfs/etab", f"/run/{OTHER_NAME}\t10.0.0.7(rw)\n")
    serve(machine)
    assert "10.0.0.7" not in machine.read("var/lib/nfs/etab")


def test_clean_removes_it_unless_it_is_used(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(machine.root / "cache", machine.root / "vtax")
    monkeypatch.setattr(leftovers, "Shares", lambda runtime: machine.shares)
    monkeypatch.setattr(leftovers, "all_providers", lambda runtime: {})
    serve(machine)
    with alive(paths.runtime / LABEL):
        assert leftovers.leftovers(paths) == []
    found = leftovers.leftovers(paths)
    assert ("nfs", "export", PLACE) in [(one.provider, one.kind, one.name) for one in found]
    assert leftovers.clean(found, paths) == []
    assert machine.points() == [] and files(machine) == {"vtax/clean.lock"} and leftovers.leftovers(paths) == []
