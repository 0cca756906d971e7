"""How nodes behind SSH are reached, and what makes them trust each other."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from vtax.cluster.access import is_free, write_ssh_config
from vtax.cluster.seed import known_hosts, seed
from vtax.errors import StoreError
from vtax.transport.ssh import SshTransport, banner_ready

NAMES = ("master", "worker1")
ADDRESSES = {"master": "10.0.0.10", "worker1": "10.0.0.11"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Keys as ssh-keygen leaves them: a private one, and a public one with a comment."""
    place = tmp_path / "keys"
    place.mkdir()
    for name in ("user", *NAMES):
        (place / name).write_text(f"PRIVATE {name}\n")
        (place / f"{name}.pub").write_text(f"ssh-ed25519 AAAA{name} vtax {name}\n")
    return place


# --- commands ------------------------------------------------------------------------------------------------------


def there(place: str) -> str:
    return f"{{ cd {place} 2>/dev/null || {{ mkdir -p {place} && cd {place}; }}; }} && "


def command(argv: tuple[str, ...], **env: str) -> tuple[str, ...]:
    return SshTransport(Path("/run/c1/ssh_config"), "worker1").command(argv, 30.0, "/scratch/t", env)


def test_a_command_in_its_directory_with_its_time_limit() -> None:
    assert command(("hpcc",)) == (
        "ssh",
        "-F",
        "/run/c1/ssh_config",
        "worker1",
        "--",
        there("/scratch/t") + "exec timeout -k 5 30 hpcc",
    )


@pytest.mark.parametrize(
    ("argv", "env", "remote"),
    [
        (("echo", "two words"), {}, "exec timeout -k 5 30 echo 'two words'"),
        (("sh", "-c", "echo $HOME; 'x'"), {}, """exec timeout -k 5 30 sh -c 'echo $HOME; '"'"'x'"'"''"""),
        (("hpcc",), {"B": "1 2", "A": "x"}, "exec timeout -k 5 30 env A=x 'B=1 2' hpcc"),
        (("hpcc", "*"), {}, "exec timeout -k 5 30 hpcc '*'"),
    ],
)
def test_words_stay_words_on_the_node(argv: tuple[str, ...], env: dict[str, str], remote: str) -> None:
    assert command(argv, **env)[-1] == there("/scratch/t") + remote


def test_a_directory_with_a_space() -> None:
    made = SshTransport(Path("c"), "n").command(("true",), 0.5, "/a b", {})
    assert made[-1] == there("'/a b'") + "exec timeout -k 5 0.5 true"


@pytest.mark.parametrize("made_before", [False, True])
def test_a_directory_that_is_there_needs_no_process(tmp_path: Path, made_before: bool) -> None:
    place = tmp_path / "a b"
    if made_before:
        place.mkdir()
    remote = SshTransport(Path("c"), "n").command(("pwd",), 5, str(place), {})[-1]
    shell = shutil.which("sh")
    assert shell is not None
    empty = {"PATH": "" if made_before else os.environ["PATH"]}  # `mkdir` would not be found; nor is `timeout`
    done = subprocess.run([shell, "-c", remote], capture_output=True, text=True, env=empty, check=False)
    assert "mkdir" not in done.stderr
    assert (done.stdout.strip() == str(place)) is not made_before
    assert place.is_dir()


def test_a_shell_for_a_person() -> None:
    node = SshTransport(Path("/run/c1/ssh_config"), "worker1")
    start = ("ssh", "-F", "/run/c1/ssh_config")
    assert node.shell((), terminal=True) == (*start, "-t", "worker1")
    assert node.shell(("ls", "a b"), terminal=False) == (*start, "-T", "worker1", "--", "ls 'a b'")


@pytest.mark.parametrize(
    ("text", "ready"), [(b"SSH-2.0-OpenSSH_10.0\r\n", True), (b"", False), (b"HTTP/1.1", False), (b"SSH-1.5-x", False)]
)
def test_only_a_banner_of_ssh_is_an_answer(text: bytes, ready: bool) -> None:
    assert banner_ready(text) is ready


# --- configuration -------------------------------------------------------------------------------------------------


def test_the_configuration_of_a_cluster(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # so that paths are short, whatever the temporary directory
    site = Path("site")
    site.mkdir()
    config = write_ssh_config(site, Path("keys"), {"master": 40001, "worker1": 40002})
    assert config.read_text() == (
        "Host master\n"
        "  HostName 127.0.0.1\n"
        "  Port 40001\n"
        "  HostKeyAlias master\n"
        "  ControlPath site/c-master\n"
        "\n"
        "Host worker1\n"
        "  HostName 127.0.0.1\n"
        "  Port 40002\n"
        "  HostKeyAlias worker1\n"
        "  ControlPath site/c-worker1\n"
        "\n"
        "Host *\n"
        "  User root\n"
        "  IdentityFile keys/user\n"
        "  IdentitiesOnly yes\n"
        "  UserKnownHostsFile site/known_hosts\n"
        "  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
        "  BatchMode yes\n"
        "  LogLevel ERROR\n"
        "  ControlMaster auto\n"
        "  ConnectTimeout 10\n"
        "  ControlPersist 120\n"
        "  ServerAliveInterval 5\n"
        "  ServerAliveCountMax 6\n"
        "  HashKnownHosts no\n"
    )
    assert config.stat().st_mode & 0o777 == 0o600
    assert (site / "known_hosts").read_text() == ("master ssh-ed25519 AAAAmaster\nworker1 ssh-ed25519 AAAAworker1\n")


def test_connections_to_nodes_that_are_paused_send_no_probes(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that is not answered would end them, and with them the commands that wait."""
    monkeypatch.chdir(tmp_path)
    Path("site").mkdir()
    text = write_ssh_config(Path("site"), Path("keys"), {"master": 40001}, paused=True).read_text()
    settings = dict(line.split(maxsplit=1) for line in text.partition("Host *\n")[2].splitlines())
    assert settings["ServerAliveInterval"] == "0"
    assert int(settings["ControlPersist"]) >= 3600
    assert "ServerAliveCountMax" not in settings


def test_a_directory_too_deep_for_control_sockets_is_refused(tmp_path: Path, keys: Path) -> None:
    deep = tmp_path / ("d" * 80) / ("e" * 20)
    deep.mkdir(parents=True)
    with pytest.raises(StoreError, match="too deep for SSH's control sockets") as caught:
        write_ssh_config(deep, keys, {"worker1": 40001})
    assert caught.value.exit_code == 3
    assert caught.value.remedy == "set XDG_STATE_HOME to a shorter path"
    assert list(deep.iterdir()) == []


# --- the seed ------------------------------------------------------------------------------------------------------


def test_known_hosts_of_the_nodes(keys: Path) -> None:
    assert known_hosts(keys, ADDRESSES) == (
        "master,10.0.0.10 ssh-ed25519 AAAAmaster\nworker1,10.0.0.11 ssh-ed25519 AAAAworker1\n"
    )


def test_the_seed_of_a_node(keys: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(seed(keys, "worker1", ADDRESSES, {"master": 2, "worker1": 1}))) as archive:
        entries = archive.getmembers()
        held = {}
        for entry in entries:
            stream = archive.extractfile(entry)
            assert stream is not None
            held[entry.name] = (oct(entry.mode), stream.read().decode())
    assert held == {
        "etc/ssh/ssh_host_ed25519_key": ("0o600", "PRIVATE worker1\n"),
        "etc/ssh/ssh_host_ed25519_key.pub": ("0o644", "ssh-ed25519 AAAAworker1 vtax worker1\n"),
        "etc/ssh/ssh_known_hosts": ("0o644", known_hosts(keys, ADDRESSES)),
        "root/.ssh/id_ed25519": ("0o600", "PRIVATE user\n"),
        "root/.ssh/authorized_keys": ("0o600", "ssh-ed25519 AAAAuser vtax user\n"),
        "root/.hushlogin": ("0o644", ""),
        "root/hostfile": ("0o644", "master slots=2\nworker1 slots=1\n"),
    }
    assert {(entry.uid, entry.gid) for entry in entries} == {(0, 0)}


def test_a_server_at_a_port_of_its_own_listens_on_its_own_address_only(keys: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(seed(keys, "worker1", ADDRESSES, {"worker1": 1}, port=20_222))) as archive:
        held = {entry.name: archive.extractfile(entry).read().decode() for entry in archive}  # type: ignore[union-attr]
    assert held["etc/ssh/sshd_config.d/port.conf"] == "ListenAddress 10.0.0.11:20222\n"
    assert held["etc/ssh/ssh_config.d/port.conf"] == "Host *\n  Port 20222\n"
    with tarfile.open(fileobj=io.BytesIO(seed(keys, "worker1", ADDRESSES, {"worker1": 1}))) as archive:
        assert not [name for name in archive.getnames() if name.endswith("port.conf")]


def test_nodes_with_loopback_addresses_of_their_own_are_reached_there(keys: Path, tmp_path: Path) -> None:
    at = {"master": "127.213.7.10", "worker1": "127.213.7.11"}
    text = write_ssh_config(tmp_path, keys, dict.fromkeys(NAMES, 20_222), at=at).read_text()
    assert "Host worker1\n  HostName 127.213.7.11\n  Port 20222\n" in text


def test_a_port_is_free_until_somebody_listens() -> None:
    with socket.socket() as server:
        server.bind(("127.213.0.1", 0))
        port = server.getsockname()[1]
        server.listen()
        assert not is_free("127.213.0.1", port)
        assert is_free("127.213.0.2", port)
