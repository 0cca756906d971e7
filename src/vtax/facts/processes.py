"""Processes of this machine: the tree below one, and the memory that they take from it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")


def parent_of(pid: int, proc: Path = PROC) -> int:
    """The process that started one; 0 when there is none, or it has ended."""
    try:
        return int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def program_of(pid: int, proc: Path = PROC) -> str:
    """The name of the program by its command line; "" when the process has ended."""
    try:
        return Path((proc / str(pid) / "cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace")).name
    except OSError:
        return ""


def tree(root: int, proc: Path = PROC) -> tuple[int, ...]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for place in proc.glob("[0-9]*"):
        children.setdefault(parent_of(int(place.name), proc), []).append(int(place.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return tuple(found)


def pss_bytes(pids: Iterable[int], proc: Path = PROC) -> int | None:
    """The memory of processes, of shared pages their part (PSS); None when one of them may not be looked at, or none
    is there. Kernel threads have none."""
    total = 0
    for pid in pids:
        try:
            text = (proc / str(pid) / "smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
        except OSError:
            return None
        sizes = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
        total += int(sizes[0]) * 1024 if sizes else 0
    return total or None
