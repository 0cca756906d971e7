"""The providers that vtax knows, by name. A new one is a folder here and a line below.

Third parties add theirs through the entry point group `vtax.providers`; one that cannot be loaded is reported and left
out. "container" is not a provider: it means Docker, or Podman where no Docker daemon answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from vtax.errors import PLUGIN_FAILURES, EnvironmentMissing
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.providers.base import Options, Provider

BUILT_IN = {
    "host": "vtax.providers.host.provider:Host",
    "docker": "vtax.providers.docker.provider:Docker",
    "podman": "vtax.providers.podman.provider:Podman",
    "qemu": "vtax.providers.qemu.provider:Qemu",
    "virtualbox": "vtax.providers.virtualbox.provider:VirtualBox",
    "kubernetes": "vtax.providers.kubernetes.provider:Kubernetes",
    "ssh": "vtax.running.existing:Existing",  # made of agents, which have all providers below them
    "kubernetes-host": "vtax.running.kubernetes_host:KubernetesHost",  # the same
}
GROUP = "vtax.providers"
ALIASES = {"container": ("docker", "podman")}  # what a study may say -> providers of the same options, best first
COUNTED = {NodeKind.CONTAINER: "containers", NodeKind.VM: "virtual machines"}  # in the facts of this machine


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
            if not isinstance(kind.capabilities, Capabilities):
                raise TypeError(f"its capabilities are {kind.capabilities}, not {Capabilities.__qualname__}")
            known.setdefault(entry.name, kind)
        except PLUGIN_FAILURES as error:
            broken.append(f"plug-in {entry.name} ({entry.value}) is left out: {type(error).__name__}: {error}")
    return known, tuple(broken)


def built_in() -> Mapping[str, type[Provider]]:
    return {name: kind for name, kind in _found()[0].items() if name in BUILT_IN}


def provider_names() -> tuple[str, ...]:
    return tuple(_found()[0])


def broken_plugins() -> tuple[str, ...]:
    """One sentence for each plug-in that could not be loaded."""
    return _found()[1]


def option_models() -> Mapping[str, type[Options]]:
    """The options of everything that a study may name as `provider`."""
    known = {name: kind.options for name, kind in _found()[0].items()}
    return {**known, **{alias: known[names[0]] for alias, names in ALIASES.items()}}


def candidates(name: str) -> tuple[str, ...]:
    """The providers that `name` may mean, best first."""
    return ALIASES.get(name, (name,))


def resolved(name: str, runtime: Path) -> str:
    """The provider that `name` means on this machine: the first that works, or the first."""
    possible = candidates(name)
    if len(possible) == 1:
        return possible[0]
    return next((one for one in possible if not provider(one, runtime).unavailable()), possible[0])


def provider(name: str, runtime: Path) -> Provider:
    """The provider of that name, keeping its run-time files under `runtime`."""
    known = _found()[0]
    if name not in known:
        raise EnvironmentMissing(f"there is no provider {name!r}", remedy=f"choose one of {', '.join(known)}")
    return known[name](runtime)  # type: ignore[call-arg]  # every provider is made from its run-time directory


def all_providers(runtime: Path) -> dict[str, Provider]:
    """Every known provider, ready for use."""
    return {name: provider(name, runtime) for name in provider_names()}


def runners() -> Mapping[str, str]:
    """Program that runs one node -> what such nodes are called, for counting what runs on this machine."""
    known = _found()[0].values()
    return {program: COUNTED[kind.capabilities.kind] for kind in known for program in kind.runners}
