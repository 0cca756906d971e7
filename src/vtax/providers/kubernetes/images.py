"""The root file system for the machines of a cluster: pushed to the study's registry, where it names one."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from vtax.cluster.archive import tags, write_archive
from vtax.errors import ImageError
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.trial import CommandResult
from vtax.providers.kubernetes import login
from vtax.providers.kubernetes.options import KubernetesOptions
from vtax.transport import process

PUSH_S = 1800.0
ASK_S = 60.0
ABSENT = re.compile("manifest unknown|name unknown", re.I)  # the specification of registries has them
LOCAL = "docker.io/library"  # what containerd puts before a name without a registry


def name_of(options: KubernetesOptions, image: Image) -> str:
    return f"{options.registry or LOCAL}/{tags(image)[0]}"


def problems(options: KubernetesOptions) -> Iterator[Problem]:
    """What keeps it from being pushed or pulled. Raises ImageError where the login for that is not there."""
    if options.registry and not process.installed("skopeo"):
        yield Problem.blocker("skopeo is not installed, by which images are pushed", "apt-get install skopeo")
    elif options.registry_login:
        login.found(options.registry)


def published(options: KubernetesOptions, images: Sequence[Image]) -> Sequence[str]:
    """Those of these root file systems that are in the study's registry. Raises ImageError where it does not say."""
    if not options.registry:
        return ()
    if not process.installed("skopeo"):
        raise ImageError("skopeo is not installed, by which registries are asked", remedy="apt-get install skopeo")
    return [name for name in (name_of(options, image) for image in images) if _is_there(name)]


def _asked(name: str) -> CommandResult:
    return process.run(("skopeo", "inspect", "--raw", f"docker://{name}"), timeout_s=ASK_S)


def _is_there(name: str) -> bool:
    result = _asked(name)
    if result.exit_code == 0:
        return True
    if ABSENT.search(result.stderr):
        return False
    raise ImageError(
        f"the registry does not say whether it has {name}",
        detail=(result.stderr.strip() or "skopeo did not end in time")[-1000:],
        remedy="is it reachable from here? `skopeo login` gives it your password",
    )


def withdraw(name: str) -> None:
    """Remove an image from its registry. Raises ImageError with what that says."""
    result = process.run(("skopeo", "delete", f"docker://{name}"), timeout_s=ASK_S)
    if result.exit_code != 0 or result.timed_out:
        raise ImageError(
            f"{name} cannot be removed from its registry",
            detail=(result.stderr.strip() or "skopeo did not end in time")[-1000:],
            remedy="a registry may forbid that: Docker's own does, unless REGISTRY_STORAGE_DELETE_ENABLED is true",
        )


def ensure(options: KubernetesOptions, image: Image) -> None:
    """Push it, unless the registry has it. Raises ImageError; without a registry the machines must have it."""
    if not options.registry:
        return
    if _asked(name_of(options, image)).exit_code == 0:
        return
    there = f"docker://{name_of(options, image)}"
    with tempfile.TemporaryDirectory(prefix="vtax-", dir=Path(image.archive).parent) as place:
        archive = Path(place) / "image.tar"
        write_archive(image, archive)
        result = process.run(
            ("skopeo", "copy", "--quiet", f"docker-archive:{archive}:{tags(image)[0]}", there), timeout_s=PUSH_S
        )
    if result.exit_code != 0 or result.timed_out:
        raise ImageError(
            f"the root file system cannot be pushed to {options.registry}",
            detail=(result.stderr.strip() or "skopeo did not end in time")[-1000:],
            remedy="`skopeo login` gives it your password; registries without TLS are named in "
            "/etc/containers/registries.conf (insecure = true)",
        )
