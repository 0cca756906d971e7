"""From an environment's specification to a live, verified cluster, or to an error with nothing left behind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing, MachineLost, NotMatched, ProvisionError, UsageError
from vtax.model.cluster import Image, NodeFacts
from vtax.model.names import is_campaign_id
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Cluster, Provider, Site
from vtax.running.verify import parallel_targets, verify
from vtax.transport.parallel import each

KEYS = "keys"  # of a campaign, in its run-time directory

ATTEMPTS = 2  # the second only for transient errors: a timeout, a port taken meanwhile, a machine that was lost


Keep = Callable[[int, Mapping[str, Path]], None]  # the attempt that failed, and node -> the log of its console


def keep_nothing(attempt: int, consoles: Mapping[str, Path]) -> None:
    """Discard the consoles of failed attempts."""


@dataclass(frozen=True)
class Ready:
    """A verified cluster and how it came to be."""

    cluster: Cluster
    facts: tuple[NodeFacts, ...]
    checks: tuple[str, ...]
    elapsed_s: float


def prepare(
    environments: Sequence[EnvironmentSpec], providers: Mapping[str, Provider], shape: ClusterShape, image: Image
) -> None:
    """Let the providers of these environments make of the root file system what their clusters start from, all of them
    at the same time. What fails here fails again when a cluster is created, and is recorded there."""
    by_provider: dict[str, list[EnvironmentSpec]] = {}
    for spec in environments:
        by_provider.setdefault(spec.provider, []).append(spec)

    def one_after_another(several: Sequence[EnvironmentSpec]) -> None:
        for spec in several:
            with suppress(ProvisionError, CommandError, EnvironmentMissing):
                providers[spec.name].prepare(spec, shape, image)

    each(one_after_another, by_provider.values())


def provision(
    provider: Provider,
    spec: EnvironmentSpec,
    shape: ClusterShape,
    shared_path: str,
    site: Site,
    scopes: Sequence[Scope],
    keep: Keep = keep_nothing,
    seed: int = 0,
) -> Ready:
    """Create and verify; of many nodes, `seed` chooses some of the checks. Raises ProvisionError or NotMatched after
    destroying what was made; `keep` gets the consoles of every failed attempt, before they are removed."""
    clock = time.monotonic()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _attempt(provider, spec, shape, shared_path, site, scopes, clock, partial(keep, attempt), seed)
        except NotMatched:
            raise
        except (ProvisionError, CommandError, MachineLost):
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _attempt(
    provider: Provider,
    spec: EnvironmentSpec,
    shape: ClusterShape,
    shared_path: str,
    site: Site,
    scopes: Sequence[Scope],
    clock: float,
    keep: Callable[[Mapping[str, Path]], None],
    seed: int,
) -> Ready:
    if site.directory.exists():  # of a cluster in which this machine went down
        destroy(provider, site, None)
    site.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        cluster = provider.create(spec, shape, shared_path, site)
        seen, checks = verify(cluster, parallel_targets(cluster, scopes), site.image.workload, seed)
        facts = tuple(
            NodeFacts(node=one.node, values={**one.values, **cluster.facts.get(one.node, {})}) for one in seen
        )
    except BaseException as error:
        gone = provider.lost() if isinstance(error, NotMatched) else ""
        try:
            keep({node.name: site.console(node.name) for node in shape.nodes if site.console(node.name).exists()})
        finally:
            destroy(provider, site, None)
        if gone:  # then what did not match says nothing of the cluster
            raise ProvisionError(f"{gone}, while the cluster was verified") from error
        raise
    return Ready(cluster, facts, (*cluster.notes, *checks), time.monotonic() - clock)


def destroy(provider: Provider, site: Site, cluster: Cluster | None) -> None:
    """Close the connections, remove everything that carries the label, and the site's files."""
    if cluster is not None:
        with suppress(CommandError, OSError):
            cluster.close()
    provider.destroy(site.campaign)
    remove_site(site)


def remove_campaign(directory: Path) -> None:
    """Remove a campaign's run-time directory with its keys. If files of a cluster could not be removed, the directory
    stays: by it `vtax clean` recognises what belongs to this vtax instance."""
    _refuse_other(directory)
    shutil.rmtree(directory / KEYS, ignore_errors=True)
    if not any(place.is_dir() for place in directory.glob("*")):
        shutil.rmtree(directory, ignore_errors=True)


def remove_site(site: Site) -> None:
    """Remove the cluster's files on this machine."""
    _refuse_other(site.directory.parent)
    shutil.rmtree(site.directory, ignore_errors=True)


def _refuse_other(directory: Path) -> None:
    """Raise UsageError for what is not a campaign's run-time directory: nothing else is ever removed."""
    if not is_campaign_id(directory.name) or directory.is_symlink():
        raise UsageError(
            f"{directory} is not the run-time directory of a campaign",
            remedy="nothing was removed; look at what is there",
        )
