"""Messages between vtax and its agent on a machine: a line of JSON each, and as many raw bytes as the line says.

A line feed follows these bytes: a way that passes on whole lines, as srun does, holds nothing back then.

Each side sends a beat every few seconds. A side that hears nothing for a lease believes that the other one is gone: the
agent then removes what it made, so that nothing keeps running on a machine whose owner has died or is cut off.
"""

from __future__ import annotations

import json
import math
import os
import select
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

BEAT_S = 3.0
LEASE_S = 20.0
CLOSE_S = 2.0
CHUNK = 2**20
LINE_BYTES = 2**28  # of a message, without its payload
PAYLOAD_BYTES = 2**30  # a trial of several steps, each of which printed as much as is read of it
BEAT = "beat"
END = b"\n"  # of the bytes


class Message(NamedTuple):
    """What was said: a table, and the bytes that came with it."""

    content: Mapping[str, Any]
    payload: bytes = b""


def _finite(text: str) -> float:
    """A number of a message. Raises ValueError for one that is not finite: no file of a campaign may have it."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"not a number: {text}")
    return number


class Gone(Exception):
    """The other side closed the channel, or was silent for the whole lease."""


class Channel:
    """One side of a connection, over two file descriptors. Any thread may send; one receives."""

    def __init__(self, reading: int, writing: int, lease_s: float = LEASE_S) -> None:
        self.reading, self.writing, self.lease_s = reading, writing, lease_s
        self.held = bytearray()
        self.heard = time.monotonic()
        self.sending = threading.Lock()
        self.over = threading.Event()

    def keep_alive(self) -> None:
        """Send beats from now on, until the channel is closed."""
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self.over.wait(BEAT_S):
            try:
                self.send({BEAT: True})
            except Gone:
                return

    def send(self, content: Mapping[str, Any], payload: bytes = b"") -> None:
        """Raises Gone when nobody reads any more."""
        line = json.dumps({**content, "bytes": len(payload)}).encode() + b"\n"
        with self.sending:
            if self.over.is_set():
                raise Gone("the connection was closed")
            left = memoryview(line + payload + (END if payload else b""))
            while left:
                try:
                    left = left[os.write(self.writing, left) :]
                except OSError as error:
                    raise Gone(f"nothing can be sent: {error.strerror}") from error

    def receive(self, until: float = math.inf) -> Message:
        """The next message that is not a beat, waited for `until` then (of the monotonic clock), whatever beats come
        meanwhile. Raises Gone, also for what is no message: a machine may say anything."""
        while True:
            try:
                content = json.loads(self._line(until), parse_constant=_finite, parse_float=_finite)
                claimed = content.pop("bytes")
            except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
                raise Gone("what was heard is not a message") from None
            payload = self._exactly(claimed, until)
            if payload:
                self._exactly(len(END), until)
            if BEAT not in content:
                return Message(content, payload)

    def _line(self, until: float) -> bytes:
        searched = 0
        while (end := self.held.find(b"\n", searched)) < 0:
            searched = len(self.held)
            if searched > LINE_BYTES:
                raise Gone("a message is too long")
            self._more(until)
        line = bytes(self.held[:end])
        del self.held[: end + 1]
        return line

    def _exactly(self, count: Any, until: float) -> bytes:
        if not isinstance(count, int) or not 0 <= count <= PAYLOAD_BYTES:
            raise Gone(f"a message claims {count!r:.40} bytes")
        while len(self.held) < count:
            self._more(until)
        found = bytes(self.held[:count])
        del self.held[:count]
        return found

    def _more(self, until: float) -> None:
        """Wait for bytes, no longer than the lease, and not after `until`. A process that was stopped meanwhile looks
        before it gives up."""
        waiting = select.poll()
        waiting.register(self.reading, select.POLLIN)
        now, silent = time.monotonic(), self.heard + self.lease_s
        if not waiting.poll(1000 * max(0.0, min(silent, until) - now)) or now > until + self.lease_s:
            why = f"nothing was heard for {self.lease_s:g} s" if silent < until else "it is there, and does not answer"
            raise Gone(why)
        try:
            chunk = os.read(self.reading, CHUNK)
        except OSError as error:
            raise Gone(f"nothing can be read: {error.strerror}") from error
        if not chunk:
            raise Gone("the connection was closed")
        self.heard = time.monotonic()
        self.held += chunk

    def close(self) -> None:
        """Send nothing from now on: the descriptors may soon be those of other files. A message that nobody takes is
        not waited for."""
        mine = self.sending.acquire(timeout=CLOSE_S)
        self.over.set()
        if mine:
            self.sending.release()
