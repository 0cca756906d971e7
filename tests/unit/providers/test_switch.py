"""The switch, over pairs of sockets: who gets which frame, and what happens to those who do not read or babble."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from vtax.providers.qemu import switch as module
from vtax.providers.qemu.switch import Switch, frames, listen

ALL = b"\xff" * 6
ADDRESSES = [bytes([0x52, 0x54, 0, 0, 0, number]) for number in range(3)]


def frame(destination: bytes, source: bytes, content: bytes = b"hello") -> bytes:
    body = destination + source + b"\x08\x00" + content
    return len(body).to_bytes(4, "big") + body


class Net:
    """A switch with three clients."""

    def __init__(self, path: Path) -> None:
        self.listener = listen(path)
        self.switch = Switch(self.listener)
        self.clients: list[socket.socket] = []
        for _ in range(3):
            ours, theirs = socket.socketpair()
            self.clients.append(ours)
            self.switch.add(theirs)

    def send(self, number: int, content: bytes) -> None:
        self.clients[number].sendall(content)
        self.settle()

    def settle(self) -> None:
        while self.switch.step(0):
            pass

    def received(self, number: int) -> bytes:
        client = self.clients[number]
        client.setblocking(False)
        try:
            return client.recv(2**20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        for client in [*self.clients, *list(self.switch.unread)]:
            client.close()
        self.switch.selector.close()
        self.listener.close()


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    made = Net(tmp_path / "s")
    yield made
    made.close()


def test_frames_are_cut_out_of_a_stream() -> None:
    one, two = frame(ALL, ADDRESSES[0]), frame(ALL, ADDRESSES[1], b"x" * 1500)
    for cut in range(len(one + two) + 1):
        whole, rest = frames((one + two)[:cut])
        assert b"".join(whole) + rest == (one + two)[:cut]
        assert whole == [part for part, end in ((one, len(one)), (two, len(one + two))) if end <= cut]


def test_a_frame_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="frame of"):
        frames(b"\xff\xff\xff\xff")


def test_what_is_meant_for_all_goes_to_all_others(net: Net) -> None:
    hello = frame(ALL, ADDRESSES[0])
    net.send(0, hello)
    assert [net.received(number) for number in range(3)] == [b"", hello, hello]


def test_an_address_is_learnt_from_what_it_sends(net: Net) -> None:
    net.send(1, frame(ALL, ADDRESSES[1]))
    for number in range(3):
        net.received(number)
    secret = frame(ADDRESSES[1], ADDRESSES[0], b"only for one")
    net.send(0, secret)
    assert [net.received(number) for number in range(3)] == [b"", secret, b""]


def test_an_unknown_address_is_looked_for_everywhere(net: Net) -> None:
    lost = frame(ADDRESSES[2], ADDRESSES[0])
    net.send(0, lost)
    assert [net.received(number) for number in range(3)] == [b"", lost, lost]


def test_a_frame_in_pieces(net: Net) -> None:
    hello = frame(ALL, ADDRESSES[0])
    net.send(0, hello[:7])
    assert net.received(1) == b""
    net.send(0, hello[7:])
    assert net.received(1) == hello


def test_a_client_that_leaves_is_forgotten(net: Net) -> None:
    net.send(1, frame(ALL, ADDRESSES[1]))
    net.clients[1].close()
    net.settle()
    assert len(net.switch.unread) == 2
    assert ADDRESSES[1] not in net.switch.places
    net.received(2)
    again = frame(ADDRESSES[1], ADDRESSES[0])
    net.send(0, again)
    assert net.received(2) == again


def test_a_client_that_talks_nonsense_is_dropped(net: Net) -> None:
    net.send(0, b"\xff\xff\xff\xff nonsense")
    assert len(net.switch.unread) == 2
    hello = frame(ALL, ADDRESSES[1])
    net.send(1, hello)
    assert net.received(2) == hello


def test_a_client_that_does_not_read_loses_frames_and_nobody_else_does(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACKLOG", 2**16)
    for one in net.switch.unread:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**14)
    large = frame(ALL, ADDRESSES[0], b"x" * 1400)
    got = 0
    for _ in range(500):
        net.send(0, large)
        got += len(net.received(2))
    assert got == 500 * len(large), "the one that reads gets everything"
    assert max(map(len, net.switch.unsent.values())) <= 2**16 + len(large)


def test_the_socket_is_its_owners_alone(tmp_path: Path) -> None:
    listener = listen(tmp_path / "switch")
    try:
        assert stat.S_IMODE((tmp_path / "switch").stat().st_mode) == 0o600
    finally:
        listener.close()


def test_it_ends_with_its_last_client(tmp_path: Path) -> None:
    listener = listen(tmp_path / "switch")
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(str(tmp_path / "switch"))
        client.sendall(frame(ALL, ADDRESSES[0]))
        client.close()
        switch = Switch(listener)
        switch.serve()
        assert not switch.unread
        switch.selector.close()
    finally:
        client.close()
        listener.close()
