"""Clusters to use by hand, apart from any campaign: brought up, listed, used and taken down from the command line."""

from __future__ import annotations

import secrets
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from vtax import files
from vtax.errors import EnvironmentMissing, UsageError
from vtax.events import Listener
from vtax.model.cluster import Image
from vtax.model.names import CampaignId, MountPoint
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.record import Record
from vtax.model.study import EnvironmentSpec, Study
from vtax.paths import Paths
from vtax.planning.preparation import Prepared, image_of, prepare, refuse_impossible
from vtax.planning.presets import preset
from vtax.planning.study import check, load
from vtax.providers import option_models, provider
from vtax.providers.base import Cluster, Provider, Site
from vtax.running.provision import KEYS, destroy, provision, remove_campaign
from vtax.store import alive, write_atomic


class SavedCluster(Record):
    """What is stored of a cluster to find it again."""

    campaign: CampaignId
    spec: EnvironmentSpec
    shape: ClusterShape
    shared_path: MountPoint
    image: Image
    checks: tuple[str, ...]


@dataclass(frozen=True)
class ConnectedCluster:
    """A cluster that is up, connected."""

    about: SavedCluster
    cluster: Cluster
    provider: Provider
    site: Site


def study_for(name: str, file: Path | None) -> Study:
    """The study with environment `name`: the given file, or the quick preset with that provider."""
    if file is not None:
        study = load(file)
        if name not in [spec.name for spec in study.environments]:
            names = ", ".join(spec.name for spec in study.environments)
            raise UsageError(f"{file} has no environment {name!r}", remedy=f"choose one of {names}")
        return study
    if name not in option_models():
        raise UsageError(
            f"there is no provider {name!r}", remedy=f"choose one of {', '.join(option_models())}, or give --study"
        )
    raw = tomllib.loads(preset("quick"))
    raw["environments"] = {name: {"provider": name}}
    raw["baseline"] = name
    return check(raw, "(the quick preset)")


def up(name: str, file: Path | None, paths: Paths, listener: Listener) -> SavedCluster:
    """Bring an environment's cluster up, verified. Raises UsageError when it is already up, or just being made."""
    _refuse_second(paths, name)
    study = study_for(name, file)
    lock = _place(paths, name).with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with files.locked(lock) as mine:
        if not mine:
            raise UsageError(f"{name} is being brought up by another process", remedy="wait for it, then use it")
        _refuse_second(paths, name)
        return _up(name, study, paths, listener)


def _refuse_second(paths: Paths, name: str) -> None:
    if _place(paths, name).exists():
        raise UsageError(f"{name} is already up", remedy=f"use it (`vtax status`), or take it down: `vtax down {name}`")


def _up(name: str, study: Study, paths: Paths, listener: Listener) -> SavedCluster:
    study = study.model_copy(
        update={"environments": tuple(s for s in study.environments if s.name == name), "baseline": name}
    )
    prepared = prepare(study, paths)
    if prepared.providers[name].capabilities.away:
        raise UsageError(
            f"the nodes of {name} exist already, and what vtax makes there ends with its command",
            remedy="log in to them by SSH; `vtax run` measures them",
        )
    refuse_impossible(prepared)
    image = image_of(study, paths, listener)
    label = f"up-{secrets.token_hex(4)}"
    site = _site(paths, label, name, image)
    with alive(site.keys.parent):  # until it is saved, `vtax clean` would take it for what a crash left
        return _make(prepared, study, site, paths)


def _make(prepared: Prepared, study: Study, site: Site, paths: Paths) -> SavedCluster:
    spec = prepared.plan.environments[0]
    try:
        ready = provision(
            prepared.providers[spec.name],
            spec,
            prepared.plan.shape,
            study.shared_path,
            site,
            [Scope.WORKERS],
            seed=study.seed,
        )
    except BaseException:
        remove_campaign(site.keys.parent)
        raise
    about = SavedCluster(
        campaign=site.campaign,
        spec=spec,
        shape=prepared.plan.shape,
        shared_path=study.shared_path,
        image=site.image,
        checks=ready.checks,
    )
    try:
        write_atomic(_place(paths, spec.name), about.model_dump_json(indent=1).encode())
    except BaseException:
        destroy(prepared.providers[spec.name], site, ready.cluster)
        remove_campaign(site.keys.parent)
        raise
    return about


def saved_clusters(paths: Paths) -> list[SavedCluster]:
    """Every cluster that was brought up and not taken down."""
    found = []
    for path in sorted((paths.state / "clusters").glob("*.json")):
        try:
            found.append(SavedCluster.model_validate_json(path.read_bytes()))
        except FileNotFoundError:
            continue  # taken down since it was listed
        except ValidationError as error:
            raise UsageError(
                f"{path} is damaged", detail=str(error), remedy="remove the file, then run `vtax clean`"
            ) from error
    return found


def connect(name: str, paths: Paths) -> ConnectedCluster:
    """The cluster of an environment that is up. Raises UsageError when there is none."""
    for about in saved_clusters(paths):
        if about.spec.name == name:
            supplier = provider(about.spec.provider, paths.runtime)
            site = _site(paths, about.campaign, name, about.image)
            try:
                cluster = supplier.connect(about.spec, about.shape, about.shared_path, site)
            except OSError as error:
                raise EnvironmentMissing(
                    f"the files of {name} are gone: {error}", remedy=f"run `vtax down {name}`, then `vtax up {name}`"
                ) from error
            return ConnectedCluster(about, cluster, supplier, site)
    others = ", ".join(about.spec.name for about in saved_clusters(paths)) or "none"
    raise UsageError(f"{name} is not up (up: {others})", remedy=f"run `vtax up {name}`")


def node_of(found: ConnectedCluster, name: str) -> str:
    """`name`, if it is a node of the cluster. Raises UsageError with all names otherwise."""
    names = [node.name for node in found.cluster.nodes]
    if name not in names:
        raise UsageError(f"{found.about.spec.name} has no node {name!r}", remedy=f"choose one of {', '.join(names)}")
    return name


def answers(found: ConnectedCluster) -> dict[str, bool]:
    """Whether each node answers now."""
    return {node.name: node.transport.run(("true",), timeout_s=10).exit_code == 0 for node in found.cluster.nodes}


def down(name: str, paths: Paths) -> None:
    """Take a cluster down. Raises UsageError when there is none, or when another process is doing that."""
    _saved(paths, name)
    with files.locked(_place(paths, name).with_suffix(".lock")) as mine:
        if not mine:
            raise UsageError(f"{name} is being taken down by another process", remedy="wait for it")
        about = _saved(paths, name)  # that process may have ended since, and another cluster be up
        site = _site(paths, about.campaign, name, about.image)
        destroy(provider(about.spec.provider, paths.runtime), site, None)
        remove_campaign(site.keys.parent)
        _place(paths, name).unlink(missing_ok=True)


def _saved(paths: Paths, name: str) -> SavedCluster:
    """The cluster of an environment that is up. Raises UsageError when there is none."""
    for about in saved_clusters(paths):
        if about.spec.name == name:
            return about
    raise UsageError(f"{name} is not up", remedy="run `vtax status` to see what is up")


def _place(paths: Paths, name: str) -> Path:
    return paths.state / "clusters" / f"{name}.json"


def _site(paths: Paths, label: str, name: str, image: Image) -> Site:
    top = paths.runtime / label
    return Site(label, top / name, image, top / KEYS)
