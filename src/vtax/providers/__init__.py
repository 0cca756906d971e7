"""The providers that vtax knows, by name. A new one is a file here and a line below.

Third parties add theirs through the entry point group `vtax.providers`; one that cannot be loaded is reported and left
out. "container" is not a provider of its own: it stands for Docker, or for Podman where no Docker daemon answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from vtax.errors import PLUGIN_FAILURES, EnvironmentMissing
from vtax.providers.base import Options, Provider

BUILT_IN = {
    "host": "vtax.providers.host.provider:Host",
    "docker": "vtax.providers.container.provider:Docker",
    "podman": "vtax.providers.container.provider:Podman",
    "qemu": "vtax.providers.qemu.provider:Qemu",
    "virtualbox": "vtax.providers.virtualbox.provider:VirtualBox",
}
GROUP = "vtax.providers"
ANY_CONTAINER = "container"
CONTAINER_ENGINES = ("docker", "podman")  # in the order of preference


@cache
def _found() -> tuple[Mapping[str, type[Provider]], tuple[str, ...]]:
    known: dict[str, type[Provider]] = {}
    for name, place in BUILT_IN.items():
        module, attribute = place.split(":")
        known[name] = cast(type[Provider], getattr(import_module(module), attribute))
    broken = []
    for entry in entry_points(group=GROUP):
        try:
            kind = cast(type[Provider], entry.load())
            if not issubclass(kind.options, Options):
                raise TypeError(f"its options are {kind.options}, not a subclass of {Options.__qualname__}")
            known.setdefault(entry.name, kind)
        except PLUGIN_FAILURES as error:
            broken.append(f"plug-in {entry.name} ({entry.value}) is left out: {type(error).__name__}: {error}")
    return known, tuple(broken)


def provider_names() -> tuple[str, ...]:
    return tuple(_found()[0])


def broken_plugins() -> tuple[str, ...]:
    """One sentence for each plug-in that could not be loaded."""
    return _found()[1]


def option_models() -> Mapping[str, type[Options]]:
    """The options of every provider that a study may name."""
    known = _found()[0]
    return {**{name: kind.options for name, kind in known.items()}, ANY_CONTAINER: known["docker"].options}


def provider(name: str, runtime: Path) -> Provider:
    """The provider of that name, keeping its run-time files under `runtime`."""
    known = _found()[0]
    if name not in known:
        raise EnvironmentMissing(f"there is no provider {name!r}", remedy=f"one of {', '.join(known)}")
    return known[name](runtime)  # type: ignore[call-arg]  # every provider is made from its run-time directory
