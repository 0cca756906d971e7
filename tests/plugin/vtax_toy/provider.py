"""The bare host under another name: a provider that vtax does not know."""

from __future__ import annotations

from vtax.providers.host.provider import Host


class Toy(Host):
    name = "toy"
