"""Messages between two sides: whole or not at all, bytes as they are, and an end when the other side is gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from vtax.machines.channel import Channel, Gone, Message


@pytest.fixture
def sides() -> Iterator[tuple[Channel, Channel]]:
    """Two sides of one connection."""
    (a_in, b_out), (b_in, a_out) = os.pipe(), os.pipe()
    yield Channel(a_in, a_out), Channel(b_in, b_out)
    for descriptor in (a_in, a_out, b_in, b_out):
        with suppress(OSError):
            os.close(descriptor)


def test_a_message_arrives_with_its_bytes(sides: tuple[Channel, Channel]) -> None:
    here, there = sides
    here.send({"ask": "x", "with": {"é": [1, None]}}, b"\n\0\xff")
    here.send({"ask": "y"})
    assert there.receive() == Message({"ask": "x", "with": {"é": [1, None]}}, b"\n\0\xff")
    assert there.receive() == Message({"ask": "y"}, b"")


def test_more_than_a_pipe_holds_arrives(sides: tuple[Channel, Channel]) -> None:
    here, there = sides
    content = os.urandom(3_000_000)
    sender = threading.Thread(target=here.send, args=({"file": "x"}, content))
    sender.start()
    assert there.receive().payload == content
    sender.join()


def test_beats_are_not_passed_on(sides: tuple[Channel, Channel]) -> None:
    here, there = sides
    here.send({"beat": True})
    here.send({"answer": 1})
    assert there.receive().content == {"answer": 1}


def test_a_closed_connection_is_noticed(sides: tuple[Channel, Channel]) -> None:
    here, there = sides
    os.close(here.writing)
    with pytest.raises(Gone, match="closed"):
        there.receive()


def test_half_a_message_is_none(sides: tuple[Channel, Channel]) -> None:
    here, there = sides
    os.write(here.writing, b'{"answer": 1, "bytes": 10}\n12345')
    os.close(here.writing)
    with pytest.raises(Gone, match="closed"):
        there.receive()


NO_MESSAGE = (
    *(b'{"answer": 1, "bytes": %s}' % claimed for claimed in (b"-1", b"1073741825", b"1e400", b'"5"', b"null", b"[]")),
    *(b"", b"[]", b"5", b"{}", b'{"answer": 1}', b"\xff\xfe", b"[" * 200_000, b"Welcome to this machine"),
)


@pytest.mark.parametrize("line", NO_MESSAGE, ids=lambda one: repr(one[:24]))
def test_what_is_no_message_ends_the_connection(sides: tuple[Channel, Channel], line: bytes) -> None:
    """Nothing of it is kept or waited for, and nothing that it says is an error of vtax."""
    here, there = sides
    sender = threading.Thread(target=os.write, args=(here.writing, line + b"\n" + b"x" * 100))
    sender.start()
    with pytest.raises(Gone, match=r"not a message|claims"):
        there.receive()
    sender.join()


def test_silence_ends_the_lease(sides: tuple[Channel, Channel]) -> None:
    _, there = sides
    there.lease_s = 0.0
    with pytest.raises(Gone, match="nothing was heard for 0 s"):
        there.receive()


def test_nobody_reads_any_more(sides: tuple[Channel, Channel]) -> None:
    here, there = sides
    os.close(there.reading)
    with pytest.raises(Gone, match="nothing can be sent: Broken pipe"):
        here.send({"ask": "x"})
