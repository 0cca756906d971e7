"""The monitor socket of a running QEMU: the threads of its virtual CPUs, and the port that leads to SSH."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vtax.errors import ProvisionError

ANSWER_S = 20.0
FORWARD = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s")


def ask(path: Path, command: str, arguments: Mapping[str, Any] | None = None, *, answer_s: float = ANSWER_S) -> Any:
    """The answer to one command. Raises ProvisionError when QEMU is gone or refuses."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(answer_s)
            connection.connect(str(path))
            with connection.makefile("rw") as stream:
                for line in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": dict(arguments or {})}):
                    stream.write(json.dumps(line) + "\n")
                    stream.flush()
                    answer = _answer(stream)
    except (OSError, ValueError) as error:
        raise ProvisionError(f"QEMU's monitor {path} does not answer: {error}", remedy="has QEMU ended?") from error
    if "error" in answer:
        raise ProvisionError(f"QEMU refuses {command}: {answer['error'].get('desc', '')}")
    return answer["return"]


def _answer(stream: Any) -> dict[str, Any]:
    """The next answer; greetings and events are passed over."""
    for line in stream:
        message: dict[str, Any] = json.loads(line)
        if "return" in message or "error" in message:
            return message
    raise OSError("it closed the connection")


def forwarded_port(text: str) -> int:
    """The loopback port in `info usernet`. Raises ProvisionError when there is none."""
    found = FORWARD.search(text)
    if found is None:
        raise ProvisionError("QEMU forwards no port to the master", detail=text)
    return int(found[1])


def threads(path: Path) -> tuple[int, ...]:
    """The threads of the virtual CPUs, in order."""
    return tuple(
        thread for _, thread in sorted((one["cpu-index"], one["thread-id"]) for one in ask(path, "query-cpus-fast"))
    )
