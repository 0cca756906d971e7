"""A study's own image on nodes of the host: for root mounted on this machine, for an ordinary user in namespaces.

These namespaces are held open by a process of the cluster that only waits, so the mounts last as long as the cluster,
and commands enter them. It is found like every process of a host environment, by its command line; when it is ended,
the mounts are gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from vtax.errors import ProvisionError
from vtax.model.cluster import Workload
from vtax.model.finding import Problem
from vtax.providers import overlay
from vtax.providers.base import LABEL, Commands, Site
from vtax.transport import process

OPTIONS = f"userxattr,{overlay.MOUNT_OPTIONS}"  # an ordinary user may not write the kernel's own attributes
MOUNTED = "mounted"
READY_S, POLL_S, REMOVE_S = 20.0, 0.02, 300.0
SCRIPT = f"""\
site=$3 options=$4 shared=$5
shift 5
for name; do
  cd "$site/$name"
  mount -t overlay -o "$options" vtax workload/root
  for place in {" ".join(overlay.OWN)} "$shared" /etc; do
    [ -d "workload/root$place" ] || mkdir "workload/root$place"
  done
  [ -e workload/root/etc/hosts ] || : >workload/root/etc/hosts
done
cd /
echo {MOUNTED}
read -r never <"$site/hold"
"""
PROBE = """\
mount -t tmpfs none /tmp
cd /tmp
mkdir -p lower layer/upper layer/work root
mount -t overlay -o "$1" none root
"""


def problems() -> Sequence[Problem]:
    """What keeps nodes from having it for this user, by trying."""
    if os.geteuid() == 0:
        return ()
    words = (*process.as_root_here(), "--mount", "sh", "-ec", PROBE, "sh", OPTIONS)
    result = process.run(words, timeout_s=READY_S, env=process.system_environment())
    if result.exit_code == 0:
        return ()
    said = (result.stderr.strip().splitlines() or ["no message"])[0]
    reason = f"this user cannot mount an image of the study's own (Linux 5.11 or later is required): {said}"
    return [Problem.blocker(reason, "run vtax as root, or leave [image.workload] or this environment out")]


def commands(site: Site, provider: str, names: Sequence[str], shared_path: str) -> Commands:
    """What mounts the image for the sets of nodes with these names."""
    if os.geteuid() != 0:
        return (held(site, names, shared_path),)
    return tuple(overlay.command(site.directory / name, site.campaign, provider) for name in names)


def held(site: Site, names: Sequence[str], shared_path: str) -> tuple[str, ...]:
    """What mounts the image for an ordinary user, and waits."""
    known = (site.image.enter, f"{LABEL}={site.campaign}", site.image.directory, str(site.directory))
    namespaces = (*process.as_root_here(), "--mount", "--propagation", "private")
    return ("setsid", "--fork", *namespaces, "sh", "-ec", SCRIPT, *known, OPTIONS, shared_path, *names)


def make(
    site: Site,
    image: Workload,
    provider: str,
    names: Sequence[str],
    shared_path: str,
    holder: Callable[[Site], int | None],
) -> None:
    """Mount the image for the sets of nodes with these names; `holder` finds the process that waits. Raises UsageError
    or ProvisionError."""
    if os.geteuid() == 0:
        for name in names:
            overlay.make(site.directory / name, site.campaign, provider, image, shared_path)
        return
    for name in names:
        overlay.prepare(site.directory / name, image, shared_path)
    os.mkfifo(site.directory / "hold", mode=0o600)
    log, deadline = site.directory / "image.log", time.monotonic() + READY_S
    started = held(site, names, shared_path)
    process.run(started, timeout_s=READY_S, env=process.system_environment(), stdout=log, stderr=log, check=True)
    while (waits := holder(site) is not None) and time.monotonic() < deadline:
        if log.read_text(errors="replace").splitlines()[-1:] == [MOUNTED]:
            return
        time.sleep(POLL_S)
    raise ProvisionError(
        f"the image cannot be mounted for {names[0]}{': it takes too long' if waits else ''}",
        detail=log.read_text(errors="replace").strip(),
        remedy="run vtax as root, or use an environment of virtual machines",
    )


def remove_files(runtime: Path, campaign: str) -> None:
    """Remove what only root of an ordinary user's namespaces can: programs in an image have other users, whose files
    are of subordinate ids. Fine when there is nothing."""
    nodes = sorted({str(layer.parent) for layer in (runtime / campaign).glob("*/*/layer")})
    shared = sorted({str(Path(node).with_name("shared")) for node in nodes})
    if nodes and os.geteuid() != 0:
        process.run((*process.as_root_here(), "rm", "-rf", "--", *nodes, *shared), timeout_s=REMOVE_S, check=True)


def entered(holder: int | None) -> tuple[str, ...]:
    """What runs a command in the namespaces of that process, as its root; PID stands for it in the plan."""
    return ("nsenter", "--preserve-credentials", "--user", "--mount", f"--target={holder or 'PID'}")
