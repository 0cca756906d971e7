"""Start a program with a tap of a cluster's bridge as file descriptor 3.

    python tap.py NAMESPACE BRIDGE NAME PROGRAM WORDS...

NAMESPACE is the file of the cluster's network namespace. The tap is in it, the program is not: QEMU's NAT and its SSH
port stay on this machine. The tap goes with the program, however that ends. Needs root. It imports nothing of vtax,
because starting it is part of every cell.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys

DESCRIPTOR = 3
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
TAP, NO_PACKET_HEADER, OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000  # the last lets frames of 64 KiB through, as virtio can
SIOCGIFINDEX, SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCBRADDIF = 0x8933, 0x8913, 0x8914, 0x89A2
UP = 0x1


def enter(path: str) -> None:
    """Go to the network namespace in this file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)


def request(name: str, value: bytes = b"") -> bytes:
    """The kernel's `struct ifreq`: 16 bytes of name, 24 of value."""
    return struct.pack("16s24s", name.encode(), value)


def tap(name: str, bridge: str) -> int:
    """A new tap on a bridge of the namespace that this process is in. Raises OSError."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, TUNSETIFF, request(name, struct.pack("H", TAP | NO_PACKET_HEADER | OFFLOAD_HEADER)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        index = fcntl.ioctl(control, SIOCGIFINDEX, request(name))[16:20]
        fcntl.ioctl(control, SIOCBRADDIF, request(bridge, index))
        (flags,) = struct.unpack("H", fcntl.ioctl(control, SIOCGIFFLAGS, request(name))[16:18])
        fcntl.ioctl(control, SIOCSIFFLAGS, request(name, struct.pack("H", flags | UP)))
    return descriptor


def main(namespace: str, bridge: str, name: str, *command: str) -> None:
    """Make the tap, come back, become the program."""
    home = f"/proc/{os.getpid()}/ns/net"
    back = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    enter(namespace)
    made = tap(name, bridge)
    enter(f"/proc/self/fd/{back}")
    if made == DESCRIPTOR:
        os.set_inheritable(made, True)
    else:
        os.dup2(made, DESCRIPTOR)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
