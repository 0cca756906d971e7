"""Podman's configuration for our own calls."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from vtax.providers.podman.provider import Podman, containers_conf, undelegated
from vtax.transport import process


@pytest.fixture
def runc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("runc")
def test_a_small_machine_without_systemd() -> None:
    text = containers_conf(nofile=1024, nproc=4096, systemd=False, hybrid=True, netavark=True)
    assert text == (
        "[containers]\n"
        'default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
        "[network]\n"
        'network_backend = "netavark"\n'
        "[engine]\n"
        'cgroup_manager = "cgroupfs"\n'
        'events_logger = "file"\n'
        'runtime = "runc"\n'
    )
    assert tomllib.loads(text)["engine"]["runtime"] == "runc"


@pytest.mark.usefixtures("runc")
def test_a_machine_with_systemd_and_version_2() -> None:
    """An unlimited rlimit is -1, and not asked for."""
    text = containers_conf(nofile=1024, nproc=-1, systemd=True, hybrid=False, netavark=False)
    assert text == '[containers]\ndefault_ulimits = ["nofile=1024:1024"]\n[engine]\n'


def test_no_runtime_is_named_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "runtime" not in containers_conf(nofile=1024, nproc=1024, systemd=True, hybrid=True, netavark=False)


def test_podman_is_told_where_it_stands(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    environment = Podman(runtime).environment()
    place = runtime / "containers.conf"
    assert environment["CONTAINERS_CONF"] == str(place)
    assert "containers" in tomllib.loads(place.read_text())
    first = place.stat().st_ino
    Podman(runtime).environment()
    assert place.stat().st_ino == first  # the same text is not written again
    assert [path.name for path in runtime.iterdir()] == ["containers.conf"]


def test_podman_without_root_needs_delegated_controllers(tmp_path: Path) -> None:
    assert "cgroup version 1" in undelegated(tmp_path, 1000)[0]
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    assert "cpu, cpuset, memory, pids not delegated" in undelegated(tmp_path, 1000)[0]
    place = tmp_path / "user.slice/user-1000.slice/user@1000.service"
    place.mkdir(parents=True)
    (place / "cgroup.controllers").write_text("cpu memory pids\n")
    assert undelegated(tmp_path, 1000)[0].endswith("cpuset not delegated to this user")
    (place / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    assert undelegated(tmp_path, 1000) == ("", "")


@pytest.mark.parametrize(("there", "said"), [("iptables", ""), ("nft", ""), ("runc", "neither iptables nor nft")])
def test_podman_without_what_writes_its_networks_rules_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, said: str
) -> None:
    for program in ("podman", "ssh", "ssh-keygen", there):
        (tmp_path / program).write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setattr(process, "SYSTEM_PATH", ())
    podman = Podman(tmp_path / "run")
    assert podman.unavailable().startswith(said)
    assert bool(podman.unavailable()) == bool(said)
    assert "iptables nftables" in podman.install_hint
