"""An image's configuration: what it says about itself, and the options of vtax-run that this comes to. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vtax.errors import UsageError
from vtax.wording import printable

MACHINES = {  # as the kernel names kinds of processors: as images do
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "i686": "386",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
}
DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # where an image sets none
USER = re.compile(r"[^:\x00-\x1f\x7f]{1,64}(:[^:\x00-\x1f\x7f]{1,64})?")
Words = list[str] | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Run(_Part):
    env: Words = Field(default=None, alias="Env")
    entry_point: Words = Field(default=None, alias="Entrypoint")
    command: Words = Field(default=None, alias="Cmd")
    user: str = Field(default="", alias="User")
    working_directory: str = Field(default="", alias="WorkingDir")


class _Layers(_Part):
    diff_ids: Annotated[tuple[str, ...], Field(max_length=1000)]


class Configuration(_Part):
    """The parts of an image's configuration that matter here, which its two forms have in common."""

    architecture: str
    os: str
    config: _Run | None = None
    rootfs: _Layers

    @property
    def layers(self) -> tuple[str, ...]:
        """The digests of the unpacked layers, from the lowest up."""
        return self.rootfs.diff_ids

    @property
    def _run(self) -> _Run:
        return self.config or _Run()

    @property
    def entry(self) -> tuple[str, ...]:
        """Entry point and command; () where the image has neither."""
        return (*(self._run.entry_point or ()), *(self._run.command or ()))

    @property
    def environment(self) -> tuple[str, ...]:
        """NAME=VALUE, with a PATH."""
        given = tuple(self._run.env or ())
        return given if any(one.startswith("PATH=") for one in given) else (DEFAULT_PATH, *given)

    @property
    def user(self) -> str:
        return self._run.user

    @property
    def working_directory(self) -> str:
        """An absolute path: what is relative starts at the root."""
        return posixpath.normpath("/" + self._run.working_directory.lstrip("/"))


def parse(content: bytes, source: str) -> Configuration:
    """The configuration of the image `source`. Raises UsageError for one that is damaged or cannot be used."""
    try:
        found = Configuration.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise UsageError(
            f"{source}: its configuration is damaged, or not one of an image: {where}: {first['msg']}",
            remedy="make the image again",
        ) from error
    problem = _unusable(found)
    if problem:
        raise UsageError(f"{source}: {problem}", remedy="change the image's configuration and build it again")
    return found


def _unusable(found: Configuration) -> str:
    """Why an image cannot be entered; "" when it can."""
    if any("\0" in word for word in (*found.entry, *found.environment, found.working_directory)):
        return "its configuration has a NUL in a string"
    for one in found.environment:
        name, equals, _ = one.partition("=")
        if not name or not equals:
            return f"the entry {printable(one)!r} of its environment is not NAME=VALUE"
    if found.user and USER.fullmatch(found.user) is None:
        return f"{printable(found.user)!r} is not a user"
    if any(re.fullmatch(r"sha256:[0-9a-f]{64}", layer) is None for layer in found.layers):
        return "its layers are not named by sha256"
    return ""


def refuse_foreign(found: Configuration, machine: str, source: str) -> None:
    """Raise UsageError for an image of another operating system, or for another kind of processor than `machine`."""
    here = MACHINES.get(machine, machine)
    if (found.os, found.architecture) != ("linux", here):
        raise foreign(source, (f"{found.os}/{found.architecture}",), machine)


def foreign(source: str, has: tuple[str, ...], machine: str) -> UsageError:
    """The error for an image that has only these platforms."""
    here = MACHINES.get(machine, machine)
    known = ", ".join(printable(one) for one in has) or "nothing"
    return UsageError(
        f"{source} is an image for {known}; this machine needs linux/{here}",
        remedy=f"build or save the image for this machine: --platform linux/{here}",
    )


def options(found: Configuration) -> tuple[str, ...]:
    """What vtax-run is given to run a command as the image wants it run."""
    user = ("--user", found.user) if found.user else ()
    settings = (word for one in found.environment for word in ("--set", one))
    return ("--directory", found.working_directory, *user, *settings)


def terminated(words: tuple[str, ...]) -> bytes:
    """Strings as a file holds them: each is followed by a NUL, so that empty ones are kept."""
    return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
