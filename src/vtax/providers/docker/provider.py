"""Containers under Docker."""

from __future__ import annotations

from vtax.model.link import Link
from vtax.providers.container import engine as lines
from vtax.providers.container.provider import Container


class Docker(Container):
    name = "docker"
    runners = ("containerd-shim", "containerd-shim-runc-v2")
    install_hint = (
        "as root: apt-get install docker.io openssh-client, then start dockerd; a user needs the group docker"
    )
    version_format = "{{json .}}"

    def part_of(self, campaign: str, link: Link) -> tuple[str, ...]:
        options = {"driver.mtu": str(link.mtu), "bridge.name": lines.bridge_name(campaign)}
        words = (word for key, value in options.items() for word in ("--opt", f"com.docker.network.{key}={value}"))
        return (*words, "--gateway", lines.gateway(link))

    def changed_ids(self) -> str:
        said = self.run(("info", "--format", "{{json .SecurityOptions}}"))
        found = [word for word in ("userns", "rootless") if f"name={word}" in said.stdout]
        return f"its daemon maps users to others (it runs with {found[0]})" if found else ""
