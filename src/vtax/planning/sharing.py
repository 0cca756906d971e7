"""What the shared directory of clusters on several machines is: theirs already, or NFS from the master's machine, or
none."""

from __future__ import annotations

from vtax.machines.sharing import lacking
from vtax.model.study import Study
from vtax.planning.on_machines import Agents
from vtax.planning.placement import placements
from vtax.wording import listed

NONE = "the machines share no directory (`shared` in [machines.NAME] names one)"
OFF = "NFS is turned off (nfs = false in [shared])"


def with_nfs(study: Study, agents: Agents) -> Study:
    """The study with whether its machines share a directory by NFS: asked where they share none, and it may."""
    found = placements(study)
    machines = [name for name in study.machines if any(name in one.values() for one in found)]
    if len(machines) < 2 or study.one_directory or not all(one.one_directory for one in study.environments):
        return study
    if not study.nfs:
        return study.model_copy(update={"nfs_refused": OFF})
    servers = {one[study.node_names[0]] for one in found}
    reasons = lacking(agents, machines, servers)
    return study.model_copy(update={"nfs_used": not reasons, "nfs_refused": "; ".join(reasons)})


def unshared(study: Study) -> str:
    """Why the nodes of a cluster see no shared directory."""
    return f"{NONE}, and not by NFS: {study.nfs_refused}" if study.nfs_refused else NONE


def form(study: Study) -> str:
    """What the shared directory is, and why not something else."""
    path = study.shared_path
    if lacking := [spec.name for spec in study.environments if not spec.one_directory]:
        return f"no {path}: the nodes of {listed(lacking)} share no directory"
    if study.nfs_used:
        return f"{path} is served by the master's machine with NFS 4.2, because {NONE}"
    if study.one_directory:
        places = sorted({one.shared for one in study.machines.values()})
        return f"{path} is a part of {listed(places)}, which the machines share already"
    return f"no {path}: {unshared(study)}"
