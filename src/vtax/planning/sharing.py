"""What the shared directory of clusters on several machines is: theirs already, or NFS from the master's machine, or
none."""

from __future__ import annotations

from collections.abc import Mapping

from vtax.machines.sharing import lacking
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec, Study
from vtax.planning.on_machines import Agents
from vtax.planning.placement import placements
from vtax.providers.base import Provider
from vtax.wording import listed

NONE = "the machines share no directory (`shared` in [machines.NAME] names one)"
BETWEEN = "share no directory"  # nodes that exist already
NAMES = " (`shared` in the environment names one)"
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


def with_nfs_between(study: Study, providers: Mapping[str, Provider], shape: ClusterShape) -> Study:
    """The same for environments whose nodes exist already. One that cannot have a directory is enough: entries on it
    are compared, or left out."""
    without = _without(study)
    if not without or study.machines or any(spec.name not in providers for spec in without):
        return study
    if not study.nfs:
        return study.model_copy(update={"nfs_refused": OFF})
    found = [providers[spec.name].cannot_share(spec, shape) for spec in without]
    if None in found:
        return study
    if reasons := "; ".join(filter(None, found)):
        return study.model_copy(update={"nfs_refused": reasons})
    known = tuple(spec.model_copy(update={"one_directory": True}) for spec in study.environments)
    return study.model_copy(update={"environments": known, "nfs_used": True})


def _without(study: Study) -> list[EnvironmentSpec]:
    """The environments whose nodes share no directory, wherever they are."""
    return [spec for spec in study.environments if not spec.one_directory]


def unshared(study: Study) -> str:
    """Why the nodes of a cluster see no shared directory."""
    without = _without(study)
    names = NAMES if any("shared" in spec.options for spec in without) else ""
    none = f"the nodes of {listed([spec.name for spec in without])} {BETWEEN}{names}" if without else NONE
    return f"{none}, and not by NFS: {study.nfs_refused}" if study.nfs_refused else none


def form(study: Study) -> str:
    """What the shared directory is, and why not something else; "" where every cluster is on one machine, or has its
    own."""
    path = study.shared_path
    if not study.one_directory:
        return f"no {path}: {unshared(study)}"
    if study.nfs_used:
        served, why = ("", NONE) if study.apart else (f" of {_served(study)}", f"the nodes {BETWEEN}{NAMES}")
        return f"{path}{served} is served by the master's machine with NFS 4.2, because {why}"
    if study.apart:
        places = sorted({one.shared for one in study.machines.values()})
        return f"{path} is a part of {listed(places)}, which the machines share already"
    return ""


def _served(study: Study) -> str:
    """The environments whose nodes exist already, without a directory that they share."""
    return listed([spec.name for spec in study.environments if spec.options.get("shared") == ""])
