"""A study's own image in containers: who can have it, how the engine shows it, what is then mounted inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from vtax.model.finding import Problem
from vtax.providers import overlay
from vtax.providers.base import WORKLOAD

PROCESS_RUNTIMES = ("runc", "crun")  # under which every process of a container is one of this machine


def problems(engine: str, runtime: str | None, changed_ids: Callable[[], str]) -> Sequence[Problem]:
    """What keeps nodes from having it; `changed_ids` says why users in a node are not those of this machine."""
    reason, remedy = "", "leave [image.workload] or this environment out"
    if os.geteuid() != 0:
        reason = f"{engine} needs root for an image of the study's own: it is mounted for every node"
        remedy = f"run vtax as root, or {remedy}"
    elif runtime not in (None, *PROCESS_RUNTIMES):
        reason = f"{engine} cannot show an image of the study's own to nodes under {runtime}, which hides mounts"
    elif changed := changed_ids():
        reason = f"{engine} cannot show an image of the study's own as it is: {changed}"
    return [Problem.blocker(reason, remedy)] if reason else ()


def flags(workload: Path) -> tuple[str, ...]:
    """What makes it appear in a node: its mounted tree to be written, the rest to be read. `workload` is what `overlay`
    made for the node."""
    tree = _mount(workload / overlay.ROOT, f"{WORKLOAD}/{overlay.ROOT}")
    described = (_mount(workload / name, f"{WORKLOAD}/{name}", ",readonly") for name in overlay.FILES)
    return (*tree, *(word for words in described for word in words))


def _mount(source: Path, target: str, more: str = "") -> tuple[str, str]:
    """A mount as engines read it: a line of CSV."""
    place = f"source={source}"
    quoted = '"' + place.replace('"', '""') + '"' if set(place) & set(',"') else place
    return "--mount", f"type=bind,{quoted},target={target}{more}"
