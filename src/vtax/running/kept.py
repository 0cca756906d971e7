"""What vtax keeps between campaigns, root file systems and own images: where it is, and its removal on request."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from vtax.errors import UsageError
from vtax.image import build, travel
from vtax.image.workload import cache as workloads
from vtax.model.study import Study
from vtax.paths import Paths
from vtax.providers import all_providers
from vtax.providers.base import Leftover, Publishes
from vtax.running import lease
from vtax.running.leftovers import by_hand

ROOT, OWN, INCOMING = "root file system", "own image", "part of a root file system"
IMAGE = "image"  # that a registry or a machine's engine has
FILES = "files"
KEY_DIGITS = 12  # of an own image's digest, by which it may be named
REMOVAL = "`vtax clean --images`"


def remove_image(key: str, paths: Paths) -> None:
    """Remove a root file system from the cache and all providers' stores, or an own image by the first twelve or more
    digits of its digest. Raises UsageError when it is not cached."""
    own = [one.digest for one in workloads.workloads(paths.workloads) if one.digest.startswith(key)]
    if len(key) >= KEY_DIGITS and len(own) == 1:
        workloads.remove(paths.workloads, own[0])
        return
    for image in build.images(paths.images):
        if image.recipe == key:
            for one in all_providers(paths.runtime).values():
                if not one.unavailable():
                    one.remove_image(image)
    build.remove(paths.images, key)


def here(paths: Paths) -> list[Leftover]:
    """All of it in the cache of this machine."""
    found = [Leftover(FILES, ROOT, image.recipe, "") for image in build.images(paths.images)]
    found += [Leftover(FILES, OWN, one.digest, "") for one in workloads.workloads(paths.workloads)]
    return found + [Leftover(FILES, INCOMING, str(path), "") for path in travel.arrived(paths.images)]


def remove(items: Iterable[Leftover], paths: Paths, *, everything: bool) -> None:
    """Remove what `here` found, `everything` whoever uses it. Raises EnvironmentMissing where a campaign does,
    UsageError where clusters that are up do."""
    with ExitStack() as stack:
        if not everything:
            lease.hold(stack, REMOVAL, 0)
            if by_hand(paths):
                raise UsageError("clusters that are up use root file systems", remedy="`vtax down` first, or --all")
        for item in items:
            if item.kind == INCOMING:
                Path(item.name).unlink(missing_ok=True)
            else:
                remove_image(item.name, paths)


def _publishers(paths: Paths) -> dict[str, Publishes]:
    return {name: one for name, one in all_providers(paths.runtime).items() if isinstance(one, Publishes)}


def published(study: Study, paths: Paths) -> list[Leftover]:
    """What is in registries of the study of those root file systems that are in the cache here. Raises ImageError."""
    images, publishers = build.images(paths.images), _publishers(paths)
    specs = [spec for spec in study.environments if spec.provider in publishers]
    names = {name: spec.provider for spec in specs for name in publishers[spec.provider].published(spec, images)}
    return [Leftover(provider, IMAGE, name, "") for name, provider in names.items()]


def withdraw(items: Iterable[Leftover], paths: Paths) -> None:
    """Remove it from there. Raises ImageError with what the registry says."""
    publishers = _publishers(paths)
    for item in items:
        publishers[item.provider].withdraw(item.name)
