"""A learning Ethernet switch in user space: the cluster's own network, without any right on this machine.

    python switch.py vtax.campaign=CAMPAIGN SOCKET USER

USER is the number of a user to become, or "-". QEMU's `-netdev stream` sends every frame over a Unix socket with its
length before it (four bytes, big end first). The socket belongs to one user alone. The switch returns when it listens,
continues in the background, and ends with its last client, so that it never outlives its cluster. It imports nothing of
vtax: starting it is part of every cell.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from pathlib import Path

LENGTH = 4
LARGEST = 2**17  # of a frame, with offloads; more means that the stream is out of step
READ = 2**18
BACKLOG = 2**22  # bytes that wait for a client that does not read; then frames are dropped, as switches do
KEEP = "-"  # no other user
NOBODY_S = 60.0  # how long it waits for a first client


def frames(stream: bytes) -> tuple[list[bytes], bytes]:
    """The whole frames in a stream, each with its length before it, and what is left. Raises ValueError."""
    found, start = [], 0
    while len(stream) - start >= LENGTH:
        size = int.from_bytes(stream[start : start + LENGTH], "big")
        if size > LARGEST:
            raise ValueError(f"a frame of {size} bytes")
        end = start + LENGTH + size
        if len(stream) < end:
            break
        found.append(stream[start:end])
        start = end
    return found, stream[start:]


class Switch:
    """Which client has which address, learnt from what it sends; and what each client is still to be sent."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.unread: dict[socket.socket, bytes] = {}
        self.unsent: dict[socket.socket, bytearray] = {}
        self.places: dict[bytes, socket.socket] = {}

    def add(self, client: socket.socket) -> None:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
        self.unread[client], self.unsent[client] = b"", bytearray()
        self.selector.register(client, selectors.EVENT_READ)

    def drop(self, client: socket.socket) -> None:
        self.selector.unregister(client)
        del self.unread[client], self.unsent[client]
        self.places = {address: place for address, place in self.places.items() if place is not client}
        client.close()

    def receive(self, client: socket.socket) -> None:
        """Read what a client sends, and pass its frames on."""
        try:
            read = client.recv(READ)
            whole, self.unread[client] = frames(self.unread[client] + read)
        except BlockingIOError:
            return
        except (OSError, ValueError):
            read = b""
        if not read:
            self.drop(client)
            return
        for frame in whole:
            self.forward(client, frame)
        for other in [one for one, waiting in self.unsent.items() if waiting]:
            self.send(other)

    def forward(self, client: socket.socket, frame: bytes) -> None:
        """To the place of its destination, or to all when that is not known, or is meant for all (lowest bit of the
        first byte)."""
        destination, source = frame[LENGTH : LENGTH + 6], frame[LENGTH + 6 : LENGTH + 12]
        if len(source) < 6:
            return
        self.places[source] = client
        known = None if destination[0] & 1 else self.places.get(destination)
        for other in [known] if known is not None else list(self.unsent):
            if other is not client and len(self.unsent[other]) < BACKLOG:
                self.unsent[other] += frame

    def send(self, client: socket.socket) -> None:
        """Send what waits for a client, as much as it takes now."""
        waiting = self.unsent[client]
        try:
            while waiting:
                del waiting[: client.send(waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(client)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if waiting else 0)
        if self.selector.get_key(client).events != wanted:
            self.selector.modify(client, wanted)

    def step(self, timeout_s: float | None) -> bool:
        """Serve the clients that are ready. Returns whether any was."""
        ready = self.selector.select(timeout_s)
        for key, events in ready:
            client = key.fileobj
            assert isinstance(client, socket.socket)
            if client is self.listener:
                self.add(client.accept()[0])
            if client in self.unread and events & selectors.EVENT_WRITE:
                self.send(client)
            if client in self.unread and events & selectors.EVENT_READ:
                self.receive(client)
        return bool(ready)

    def serve(self) -> None:
        """Run until the last client has left, or none came."""
        came = False
        while self.step(None if self.unread else NOBODY_S):
            if came and not self.unread:
                return
            came = came or bool(self.unread)


def listen(path: Path) -> socket.socket:
    """A socket that only its owner reaches. Raises OSError when the path is taken or too long."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(mask)
    listener.listen(64)
    return listener


def main(path: Path, user: str) -> None:
    """Listen, go to the background, serve, as a user who can do nothing else. The socket's file stays."""
    listener = listen(path)
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    if user != KEEP:
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.chdir("/")
    Switch(listener).serve()


if __name__ == "__main__":
    main(Path(sys.argv[2]), sys.argv[3])  # the first argument is there to be seen in the list of processes
