"""A node's tap on the bridge of its cluster: when it is refused, who carries its frames."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from vtax.model.finding import Severity
from vtax.providers import network
from vtax.providers.qemu import bridge, tap
from vtax.providers.qemu.command import QemuOptions
from vtax.providers.qemu.descriptors import Number

ON = QemuOptions(network="tap")


def test_a_node_starts_through_its_tap() -> None:
    made = bridge.through("c1", "worker1", ("qemu", "-m", "1"))
    assert made[1:] == ("-I", "-S", str(bridge.SCRIPT), "/run/netns/vtax-c1", "bridge", "worker1", "qemu", "-m", "1")
    assert tap.DESCRIPTOR == int(Number.TAP) == 3


def test_the_kernels_request_has_forty_bytes() -> None:
    made = tap.request("worker1", struct.pack("H", tap.TAP))
    assert len(made) == 40
    assert made[:8] == b"worker1\0"
    assert made[16:18] == b"\x02\0"


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which a bridge can be made, with these devices."""
    for name in ("tun", "vhost"):
        (tmp_path / name).touch()
    monkeypatch.setattr(bridge, "TUN", tmp_path / "tun")
    monkeypatch.setattr(bridge, "VHOST", tmp_path / "vhost")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program, path: f"/sbin/{program}")
    monkeypatch.setattr(network, "impossible", lambda *devices: "")
    return tmp_path


def said(options: QemuOptions) -> list[str]:
    found = list(bridge.refused(options))
    assert all(one.severity is Severity.BLOCKER for one in found)
    return [f"{one.message} | {one.remedy}" for one in found]


def test_auto_is_the_bridge_where_it_can_be_made_and_else_the_switch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auto = QemuOptions(network="auto", nic="vmxnet3")
    assert bridge.settled(auto) == QemuOptions(network="tap", nic="vmxnet3")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert bridge.settled(auto) == QemuOptions(network="switch", nic="vmxnet3")
    assert bridge.settled(ON) == ON  # what the study names is refused, not replaced
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (root / "tun").unlink()
    assert bridge.settled(auto).network == "switch"


def test_root_with_a_tun_device_may(root: Path) -> None:
    assert said(ON) == said(QemuOptions()) == said(QemuOptions(network="tap", vhost="on")) == []


def test_others_may_not(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (only,) = said(ON)
    assert "needs root" in only
    assert 'network = "switch"' in only
    assert said(QemuOptions()) == []


def test_without_tun(root: Path) -> None:
    (root / "tun").unlink()
    (only,) = said(ON)
    assert "cannot be opened" in only
    assert "modprobe tun" in only


def test_without_the_programs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program, path: None if program == "ip" else "/sbin/sysctl")
    (only,) = said(ON)
    assert "apt-get install iproute2;" in only


def test_without_a_bridge_in_the_kernel(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "impossible", lambda *devices: f"no {' and '.join(devices)}")
    (only,) = said(ON)
    assert only.startswith('network = "tap": no bridge | as root: modprobe -a bridge;')
    assert bridge.settled(QemuOptions(network="auto")).network == "switch"


def test_vhost_that_cannot_be(root: Path) -> None:
    assert 'needs network = "tap"' in said(QemuOptions(vhost="on"))[0]
    assert "for virtio, not for vmxnet3" in said(QemuOptions(network="tap", nic="vmxnet3", vhost="on"))[0]
    (root / "vhost").unlink()
    assert "modprobe vhost_net" in said(QemuOptions(network="tap", vhost="on"))[0]
    assert said(ON) == [], "its absence is no error unless it was asked for"


def test_who_carries_the_frames(root: Path) -> None:
    assert bridge.vhost(ON, "kvm") is True
    assert bridge.vhost(ON, "tcg") is False
    assert bridge.vhost(QemuOptions(), "kvm") is False
    assert bridge.vhost(QemuOptions(network="tap", nic="vmxnet3"), "kvm") is False
    assert bridge.vhost(QemuOptions(network="tap", vhost="off"), "kvm") is False
    assert bridge.vhost(QemuOptions(network="tap", vhost="on"), "tcg") is True
    (root / "vhost").unlink()
    assert bridge.vhost(ON, "kvm") is False
