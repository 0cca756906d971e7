"""What text and JSON of iperf3 have in common: both ends of the connections, and what was tested."""

from __future__ import annotations

import re

from vtax.tools.commands import option, words_of
from vtax.tools.reading import Reading

SHORTEST_S = 0.1
DEFAULT_UDP = 2.0**20  # bit/s of each stream over UDP where none was asked for
RATE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([KMGT]?)(?:/\d{1,9})?")
DECIMAL = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
End = tuple[str, str]  # address and port


def connected(reading: Reading, ours: End, theirs: End) -> None:
    """Addresses and ports of both ends of the first stream; `side` of the facts says which is which."""
    client, server = (ours, theirs) if reading.facts["side"] == "client" else (theirs, ours)
    reading.nodes = (client[0], server[0])
    reading.facts |= {
        "client_address": client[0],
        "server_address": server[0],
        "connection": " ".join(sorted([":".join(client), ":".join(server)])),
    }


def describe(reading: Reading, protocol: str, reverse: bool, streams: int) -> None:
    """What was measured; the requested rate of UDP from the command, where one is there."""
    reading.params = {"protocol": protocol, "streams": streams}
    client, server = reading.nodes
    reading.facts |= {"protocol": protocol, "reverse": reverse, "streams": streams}
    reading.direction = f"{client}>{server} {'reverse' if reverse else 'forward'}"
    command = reading.facts.get("command")
    if isinstance(command, str):
        asked = option(words_of(command), "-b", "--bitrate", "--bandwidth")
        reading.facts.setdefault("bitrate_asked", asked or ("default" if protocol == "udp" else "unlimited"))
        each = DEFAULT_UDP if not asked and protocol == "udp" else None
        if found := RATE.fullmatch(asked):
            each = float(found[1]) * DECIMAL[found[2]]
        if each:
            reading.facts.setdefault("requested_bit_s", each * streams)


def labels_of(reading: Reading) -> dict[str, str]:
    client, server = reading.nodes
    direction = "reverse" if reading.facts.get("reverse") else "forward"
    return {"client": client, "server": server, "protocol": str(reading.facts["protocol"]), "direction": direction}
