"""The process of a running machine, and which of its threads are virtual CPUs (VirtualBox calls them EMT)."""

from __future__ import annotations

import re
from pathlib import Path

from vtax.errors import ProvisionError

PROGRAM = "VBoxHeadless"
VIRTUAL_CPU = re.compile(r"^EMT(?:-([0-9]+))?$")


def machine(name: str) -> tuple[int, tuple[int, ...]]:
    """Process and virtual CPUs' threads, in order. Raises ProvisionError when there is no such process."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # gone meanwhile
        if runs(words, name):
            tasks = [(int(task.name), _name(task)) for task in (entry / "task").iterdir()]
            return int(entry.name), virtual_cpus(tasks)
    raise ProvisionError(f"no process of this machine runs {name}", remedy="has it ended? see its console log")


def runs(words: list[str], name: str) -> bool:
    """Whether a command line is that of the machine: `VBoxHeadless --comment NAME --startvm UUID`."""
    return Path(words[0]).name == PROGRAM and "--comment" in words and words[words.index("--comment") + 1] == name


def virtual_cpus(tasks: list[tuple[int, str]]) -> tuple[int, ...]:
    """Threads of virtual CPUs in their order, from number and name of every thread."""
    found = [(int(match[1] or 0), number) for number, name in tasks if (match := VIRTUAL_CPU.match(name))]
    return tuple(number for _, number in sorted(found))


def _name(task: Path) -> str:
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return ""
