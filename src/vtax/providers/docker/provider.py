"""Containers under Docker."""

from __future__ import annotations

from vtax.providers.container.provider import Container


class Docker(Container):
    name = "docker"
    runners = ("containerd-shim", "containerd-shim-runc-v2")
    install_hint = (
        "as root: apt-get install docker.io openssh-client, then start dockerd; a user needs the group docker"
    )
    version_format = "{{json .}}"
