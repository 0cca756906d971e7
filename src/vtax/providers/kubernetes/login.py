"""The login of a registry, for machines that pull from it: that with which `skopeo` pushes, and no other one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vtax.errors import ImageError

NO_LOGIN = "run `skopeo login {host}`, or leave `registry_login` out, for machines that need no login to pull"


def files() -> Iterator[Path]:
    """Where skopeo looks, in that order: containers-auth.json(5)."""
    if given := os.environ.get("REGISTRY_AUTH_FILE"):
        yield Path(given)
        return
    session = os.environ.get("XDG_RUNTIME_DIR")
    yield Path(session, "containers/auth.json") if session else Path(f"/run/containers/{os.geteuid()}/auth.json")
    yield Path.home() / ".config/containers/auth.json"
    yield Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"


def found(registry: str) -> bytes:
    """The content of a Secret with the login of a registry alone. Raises ImageError where there is none, or where a
    program keeps it."""
    host, helper = registry.partition("/")[0], ""
    for path in files():
        said = _read(path)
        for key in _keys(registry):
            entry = _table(said, "auths").get(key)
            if isinstance(entry, dict) and entry.get("auth"):
                return json.dumps({"auths": {key: {"auth": entry["auth"]}}}).encode()
        helper = helper or str(_table(said, "credHelpers").get(host) or said.get("credsStore") or "")
    if helper:
        raise ImageError(
            f"the login of {host} is kept by the program docker-credential-{helper}, and not in a file",
            remedy=f"log in into a file: REGISTRY_AUTH_FILE=FILE skopeo login {host}, and the same variable for vtax",
        )
    raise ImageError(f"there is no login of {host} for the machines", remedy=NO_LOGIN.format(host=host))


def _read(path: Path) -> Mapping[str, Any]:
    """Of a file that is not there nothing. Raises ImageError for one that is no such file."""
    try:
        said = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ImageError(f"{path} cannot be read: {error}", remedy="`skopeo login` writes it") from error
    if not isinstance(said, dict):
        raise ImageError(f"{path} is not a file with logins", remedy="`skopeo login` writes it")
    return said


def _table(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of such a file, where it has one."""
    part = said.get(name)
    return part if isinstance(part, dict) else {}


def _keys(registry: str) -> Iterator[str]:
    """What may have the login of a registry with a path: the longest part of it first."""
    words = registry.split("/")
    for count in range(len(words), 0, -1):
        yield "/".join(words[:count])
