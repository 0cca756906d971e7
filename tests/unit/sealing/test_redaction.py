"""What names a machine, a person or a place in a network does not get into a sealed campaign; all numbers do."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from builders.logs import LOGS, put, text_of
from builders.small import IMAGE, MACHINE, PRINTED, SAYS, as_fast, new_campaign, planned, store, study
from fakes.cluster import FakeProvider
from vtax.errors import UsageError
from vtax.importing.campaign import import_logs
from vtax.importing.request import Request
from vtax.model.study import MachineSpec
from vtax.planning.plan import make_plan
from vtax.sealing.check import State, check
from vtax.sealing.names import HOSTNAMES, USERS, Replacing, hosts_in, users_in
from vtax.sealing.opening import as_campaign
from vtax.sealing.redaction import Here, _kept, _learn
from vtax.sealing.seal import Sealed, Wanted, seal
from vtax.store import Campaign

PING = """\
alice@node7:~$ ping -c 100 10.20.30.41
PING 10.20.30.41 (10.20.30.41) 56(84) bytes of data.
64 bytes from 10.20.30.41: icmp_seq=1 ttl=64 time=0.041 ms

--- 10.20.30.41 ping statistics ---
100 packets transmitted, 100 received, 0% packet loss, time 99000ms
rtt min/avg/max/mdev = 0.031/0.042/0.091/0.010 ms
"""


def replaced(text: str, **learned: str) -> str:
    replacing = Replacing()
    for word in learned.values():
        replacing.learn(HOSTNAMES, word)
    return replacing.text(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("from 10.1.2.3 to 10.1.2.4", "from 198.18.0.1 to 198.18.0.2"),
        ("10.1.2.3/24 and again 10.1.2.3:5201", "198.18.0.1/24 and again 198.18.0.1:5201"),
        ("fe80::1c2:3ff:fe04:506 dev eth0", "2001:db8::1 dev eth0"),
        ("link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff", "link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff"),
        ("id 6f9619ff-8b86-d011-b42d-00cf4fc964ff", "id 00000000-0000-4000-8000-000000000001"),
        ('"Serial Number: PF2ABC3D"', '"Serial Number: serial-1"'),
        ('"product_serial": "PF2ABC3D"', '"product_serial": "serial-1"'),
        ('"serial": 12345678', '"serial": 99999999'),
        ("wwn-0x5002538f00000000", "serial-1"),
    ],
)
def test_what_names_something_is_replaced(text: str, shown: str) -> None:
    assert replaced(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1 ::1 0.0.0.0 255.255.255.0",  # the same on every machine
        "12:34:56 and 2026-11-23T15:22:34Z",
        "libmpi.so.40.30.3 6.1.0-13-amd64 1.2.3",
        "rtt min/avg/max/mdev = 0.031/0.042/0.091/0.010 ms",
        "std::vector<int> x::y",
        "serial: 0.12 s",
    ],
)
def test_what_names_nothing_stays(text: str) -> None:
    assert replaced(text) == text


def test_names_are_replaced_as_whole_words_in_any_case() -> None:
    shown = replaced("node7 NODE7 node70 xnode7 node7-eth0 node7.example.org", host="node7.example.org")
    assert shown == "host-2 host-2 node70 xnode7 host-2-eth0 host-1"


def test_names_of_files_join_words_by_underscores() -> None:
    """Words without a digit may be parts of names of vtax's own, such as `events_rate`."""
    assert replaced("tcp_node02_node03_in.txt", one="node02", other="node03") == "tcp_host-1_host-2_in.txt"
    assert replaced("tcp_alpha_in.txt rate_alpha", one="alpha") == "tcp_alpha_in.txt rate_alpha"


def test_a_stressor_that_is_called_like_the_machine_stays(tmp_path: Path) -> None:
    """A machine may be called `vm` or `cpu`, and so are tests of stress-ng."""
    put(tmp_path / "logs", {"memory.txt": text_of(LOGS["stress-ng 0.15"])})
    import_logs(Request((tmp_path / "logs",), environment="box"), tmp_path / "campaign")
    made = seal(tmp_path / "campaign", tmp_path / "x.zip", Wanted(redact=Here(host="cpu", user="someone")))
    assert "cpu" in made.stayed
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("log.txt")]
        assert b" cpu" in archive.read(name)


def test_where_names_are_found() -> None:
    text = (
        "[bob@login1 ~]$ uname -a\nLinux storage3.lab 6.1.0-13-amd64 #1 SMP\n"
        "[node4:01234] MCW rank 0\nConnecting to host server9, port 5201\n/home/carol/run.sh\n"
    )
    assert set(hosts_in(text)) == {"login1", "storage3.lab", "node4", "server9"}
    assert set(users_in(text)) == {"bob", "carol"}


def imported(tmp_path: Path) -> Campaign:
    logs = tmp_path / "logs"
    (logs / "vm").mkdir(parents=True)
    (logs / "vm" / "node7-ping.txt").write_text(PING)
    (logs / "vm" / "wide.txt").write_bytes(PING.replace("alice", "dave").replace("0.042", "0.043").encode("utf-16"))
    import_logs(Request(paths=(logs,), environment="vm", layout="", benchmark="", baseline=""), tmp_path / "theirs")
    return Campaign.open(tmp_path / "theirs")


def redacted(campaign: Campaign, *words: str) -> tuple[Sealed, Path]:
    file = campaign.directory.with_name("redacted.zip")
    here = Here("sealing-host", "mallory", "/srv/people/mallory", words)
    return seal(campaign.directory, file, Wanted(redact=here)), file


def everything(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as read:
        return {name: read.read(name) for name in read.namelist()}


def test_an_import_loses_its_names_and_keeps_its_numbers(tmp_path: Path) -> None:
    made, file = redacted(imported(tmp_path))
    for name, content in everything(file).items():
        text = content.decode("utf-16" if content[:2] == b"\xff\xfe" else "utf-8")
        for secret in ("alice", "dave", "node7", "10.20.30.41"):
            assert secret not in text, name
            assert secret not in name
    assert made.manifest.redacted == {"addresses": 1, "host names": 1, "user names": 2}
    assert check(file).holds
    with as_campaign(file) as (campaign, readings):
        values = {
            round(m.value * 1e6, 3) for one in readings.all(campaign.trials(texts=False)) for m in one.measurements
        }
    assert {42.0, 43.0} <= values  # both means, in microseconds


def test_a_run_of_ones_own_keeps_its_plan_before_its_runs(tmp_path: Path) -> None:
    """What is redacted is in the plan, too: its new hash is in all records then."""
    made = new_campaign(tmp_path / "mine", {name: FakeProvider(name, tmp_path / "run") for name in ("host", "box")})
    store(made, {trial: as_fast(PRINTED, 1.0, n) for n, trial in enumerate(planned(made.plan()))})
    plan = made.plan().sha256
    for path in [made.directory / "campaign.json", *made.directory.rglob("record.json")]:
        text = path.read_text()
        path.write_text(text.rstrip()[:-1] + f', "plan_sha256": "{plan}"}}' if "plan_sha256" not in text else
                        text.replace('"plan_sha256": ""', f'"plan_sha256": "{plan}"'))  # fmt: skip
    (made.directory / "study.toml").write_text("# by mallory on sealing-host\n")
    first = planned(made.plan())[0]
    with (made.directory / "trials" / first / SAYS).open("a") as stream:
        stream.write("# kept in /srv/people/mallory/data of tiger\n")
    sealed, file = redacted(made, "small", "tiger")  # the study's own name stays
    text = b"\n".join(everything(file).values()).decode()
    for secret in ("mallory", "sealing-host", "tiger"):
        assert secret not in text
    assert sealed.stayed == ("small",)
    assert {one.what: one.state for one in check(file).claims}["plan before runs"] is State.HOLDS


def test_a_redaction_that_would_change_a_number_is_refused(tmp_path: Path) -> None:
    made = imported(tmp_path)
    with pytest.raises(UsageError, match="a number would change"):
        redacted(made, "rtt")  # without this word, the line is not ping's any more
    assert not made.directory.with_name("redacted.zip").exists()


def test_digits_alone_are_never_a_name() -> None:
    replacing = Replacing()
    replacing.learn(USERS, "1092")
    assert replacing.text("events per second: 1092.04") == "events per second: 1092.04"


def test_where_the_machines_of_a_study_are_is_replaced_and_their_names_stay(tmp_path: Path) -> None:
    providers = {"host": FakeProvider("host", tmp_path), "box": FakeProvider("box", tmp_path)}
    machines = {"a": MachineSpec(ssh="ssh://lab@node17.example.org:22"), "oak": MachineSpec(ssh="node18")}
    wanted = study().model_copy(update={"machines": machines})
    plan = make_plan(wanted, MACHINE, providers, capacities=dict.fromkeys(machines, MACHINE))
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": {}}
    campaign = Campaign.create(tmp_path / "campaign", b"name = 'small'\n", plan, about)
    replacing = Replacing(_kept(plan))
    _learn(replacing, Here(), campaign, tmp_path / "nothing")
    assert replacing.name("oak at node18, a at lab@node17") == "oak at host-3, a at user-1@host-2"
