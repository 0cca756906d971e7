"""A `kubectl` that is a real program: it answers what a test says, and records how it was called."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = """\
#!{python}
import json, re, sys
from pathlib import Path

place, line = Path({place!r}), " ".join(sys.argv[1:])
stdin = sys.stdin.read() if "--filename=-" in line else ""
with (place / "calls").open("a") as log:
    log.write(json.dumps([line, stdin]) + "\\n")
for number, (pattern, code, out, err, times) in enumerate(json.loads((place / "answers").read_text())):
    used = place / f"used-{{number}}"
    count = len(used.read_text()) if used.exists() else 0
    if re.search(pattern, line) and (times is None or count < times):
        used.write_text("x" * (count + 1))
        sys.stdout.write(out)
        sys.stderr.write(err)
        sys.exit(code)
sys.stderr.write(f"the test has no answer to: {{line}}\\n")
sys.exit(70)
"""
Answer = tuple[str, int, str, str, int | None]


class FakeKubectl:
    """Puts the program into a directory, for the search path. The first answer whose pattern is found counts."""

    def __init__(self, place: Path) -> None:
        self.place, self.given = place, list[Answer]()
        program = place / "kubectl"
        program.write_text(PROGRAM.format(python=sys.executable, place=str(place)))
        program.chmod(0o755)
        self._write()

    def answer(self, pattern: str, out: object = "", *, code: int = 0, err: str = "", times: int | None = None) -> None:
        text = out if isinstance(out, str) else json.dumps(out)
        self.given.append((pattern, code, text, err, times))
        self._write()

    def _write(self) -> None:
        (self.place / "answers").write_text(json.dumps(self.given))

    @property
    def calls(self) -> list[str]:
        return [line for line, _ in self._calls()]

    def created(self) -> list[Mapping[str, Any]]:
        """The objects of all documents that were given to `kubectl create`."""
        return [one for line, text in self._calls() if "create" in line for one in json.loads(text)["items"]]

    def _calls(self) -> Sequence[tuple[str, str]]:
        log = self.place / "calls"
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


def machine(name: str, **status: Any) -> dict[str, Any]:
    """A machine of a cluster, ready, as `kubectl get nodes` describes it."""
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "allocatable": {"cpu": "2", "memory": "4Gi"},
            "capacity": {"cpu": "2", "memory": "4194304Ki"},
            "nodeInfo": {"bootID": "b", "kernelVersion": "6.1"},
            **status,
        },
    }


def pod(name: str, on: str = "n1", **status: Any) -> dict[str, Any]:
    """A pod that is ready."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"nodeName": on},
        "status": {
            "phase": "Running",
            "qosClass": "Guaranteed",
            "podIP": "10.1.0.1",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
            "containerStatuses": [{"state": {"running": {}}, "restartCount": 0}],
            **status,
        },
    }
