"""The user that QEMU and the switch of a cluster run as where vtax is root: one that exists for this cluster alone.

It is in no list of users and owns nothing, so a guest that breaks out of QEMU reaches what everybody reaches. Only root
can be it, so a process of this user is one that vtax started, whatever its command line says.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from vtax.model.finding import Problem
from vtax.model.names import is_campaign_id
from vtax.providers.qemu.command import Accelerator

FIRST = 0x78000000  # above all ranges of users, services, domains and subordinate ids, below what is reserved
COUNT = 2**26
KVM = Path("/dev/kvm")
MAPS = (Path("/proc/self/uid_map"), Path("/proc/self/gid_map"))
SHOWN = "USER"  # in a plan, where the label is not known


def number_of(label: str) -> int:
    """The user of the cluster with this label."""
    return FIRST + int(label[-8:], 16) % COUNT


def words(label: str, accel: Accelerator) -> str:
    """User, and the group that may use KVM, as `confined` takes them; "" for this process's own user."""
    if os.geteuid() != 0 or kept(accel):
        return ""
    group = _group_of_kvm() if accel == "kvm" else None
    user = str(number_of(label)) if is_campaign_id(label) else SHOWN
    return user if group is None else f"{user}:{group}"


def kept(accel: Accelerator) -> str:
    """Why QEMU stays root here; "" where it does not, or never was."""
    if os.geteuid() != 0:
        return ""
    if not all(_maps(path.read_text()) for path in MAPS):
        return "this container has no users beyond its own"
    if accel == "kvm" and not _is_open_to_others():
        return f"only root may open {KVM}"
    return ""


def sentence(label: str, accel: Accelerator) -> str:
    """Who runs QEMU, for the record of a cell."""
    reason = kept(accel)
    if reason:
        return f"QEMU runs as root: {reason}"
    chosen = words(label, accel)
    return f"QEMU runs as user {chosen.partition(':')[0]}, who owns nothing" if chosen else "QEMU runs as vtax's user"


def problems(name: str, accel: Accelerator) -> Iterator[Problem]:
    """What the plan says about an environment whose QEMU stays root."""
    reason = kept(accel)
    if reason:
        remedy = f"as root: chgrp kvm {KVM}; chmod 660 {KVM}" if accel == "kvm" else "run vtax outside the container"
        yield Problem.info(f"{name}: QEMU runs as root, because {reason}", remedy)


def is_ours(label: str, uid: int) -> bool:
    """Whether a process of this user can belong to a cluster of ours with this label."""
    mine = os.geteuid()
    return uid == mine or (mine == 0 and is_campaign_id(label) and uid == number_of(label))


def _maps(text: str) -> bool:
    """Whether the ids that we give exist in a user namespace; `text` is its map: inside, outside and count a line."""
    lines = [[int(word) for word in line.split()] for line in text.splitlines()]
    return any(first <= FIRST and first + count >= FIRST + COUNT for first, _, count in lines)


def _is_open_to_others() -> bool:
    mode = KVM.stat().st_mode if KVM.exists() else 0
    return all(mode & bit for bit in (stat.S_IROTH, stat.S_IWOTH)) or _group_of_kvm() is not None


def _group_of_kvm() -> int | None:
    """The group that may use KVM, other than root's; None where there is none."""
    about = KVM.stat() if KVM.exists() else None
    if about is None or about.st_gid == 0:
        return None
    return about.st_gid if all(about.st_mode & bit for bit in (stat.S_IRGRP, stat.S_IWGRP)) else None
