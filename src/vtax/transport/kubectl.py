"""`kubectl`, by which alone vtax speaks to Kubernetes: how it is called, and what its failures mean."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from vtax.errors import EnvironmentMissing
from vtax.model.trial import CommandResult
from vtax.transport import process

ASK_S = 30.0  # for one answer of the API server
AGAIN_S = 1.0
BACK_S = 60.0  # within which an API server that restarts answers again
INSTALL = "apt-get install kubectl (or kubernetes-client), and give vtax a kubeconfig: `kubectl get nodes` must work"
# What kubectl prints when there is no API server, or none that answers yet.
AWAY = re.compile(
    r"connection refused|connection to the server \S+ was refused|unable to connect to the server|i/o timeout"
    r"|TLS handshake timeout|connection reset|unexpected EOF|http2: client connection lost|etcdserver: "
    r"|currently unable to handle the request|\(ServiceUnavailable\)|no route to host|apiserver not ready",
    re.IGNORECASE,
)
REFUSED = re.compile(r"\(Forbidden\)|\bis forbidden\b|\(Unauthorized\)|must be logged in", re.IGNORECASE)
Described = Mapping[str, Any]  # an object of the API, as JSON


class Kubectl(NamedTuple):
    """The cluster that a kubeconfig and a context mean; "" is what the user's own kubectl uses."""

    kubeconfig: str = ""
    context: str = ""

    def words(self, *argv: str) -> tuple[str, ...]:
        """The command line."""
        config = ("--kubeconfig", self.kubeconfig) if self.kubeconfig else ()
        return ("kubectl", *config, *(("--context", self.context) if self.context else ()), *argv)

    def run(self, *argv: str, stdin: bytes = b"", timeout_s: float = ASK_S) -> CommandResult:
        """Once, whatever comes of it."""
        return process.run(self.words(*argv), timeout_s=timeout_s, stdin=stdin)

    def read(self, *argv: str, within_s: float = BACK_S, timeout_s: float = ASK_S) -> CommandResult:
        """What may be asked twice: again, for a while, where no API server answers. Raises EnvironmentMissing where
        none does."""
        deadline = time.monotonic() + within_s
        while True:
            result = self.run(*argv, timeout_s=timeout_s)
            if not away(result):
                return result
            if time.monotonic() > deadline:
                raise unreachable(self, result)
            time.sleep(AGAIN_S)

    def must(self, *argv: str, stdin: bytes = b"", timeout_s: float = ASK_S) -> CommandResult:
        """Once; raises CommandError where it fails, EnvironmentMissing where no API server answers."""
        result = self.run(*argv, stdin=stdin, timeout_s=timeout_s)
        if away(result):
            raise unreachable(self, result)
        if result.exit_code != 0:
            raise process.failed(result)
        return result

    def items(self, *argv: str, within_s: float = BACK_S) -> list[Described]:
        """The objects that `kubectl get` lists. Raises CommandError, EnvironmentMissing."""
        result = self.read("get", *argv, "--output=json", within_s=within_s)
        if result.exit_code != 0:
            raise process.failed(result)
        found: list[Described] = json.loads(result.stdout)["items"]
        return found

    def unreachable(self) -> str:
        """Why no API server answers here; "" when one does."""
        if not process.installed("kubectl"):
            return "kubectl is not installed"
        result = self.run("version", "--output=json", "--request-timeout=5s", timeout_s=10)
        if result.exit_code == 0 and "serverVersion" in result.stdout:
            return ""
        return f"the cluster does not answer: {last_line(result)}"


def objects(text: str) -> tuple[list[Described], str]:
    """The whole objects at the beginning of what kubectl printed, and the rest."""
    found, place, decoder = [], 0, json.JSONDecoder()
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            one, place = decoder.raw_decode(text, place)
        except ValueError:
            break
        found.append(one)
    return found, text[place:]


def away(result: CommandResult) -> bool:
    """Whether no API server answered."""
    return result.timed_out or (result.exit_code != 0 and AWAY.search(result.stderr) is not None)


def unreachable(one: Kubectl, result: CommandResult) -> EnvironmentMissing:
    words = " ".join(one.words("get", "nodes"))
    return EnvironmentMissing(
        "the API server of Kubernetes does not answer", detail=last_line(result), remedy=f"`{words}` must work"
    )


def last_line(result: CommandResult) -> str:
    """What a failed command said, in short."""
    if result.timed_out:
        return "kubectl did not end in time"
    lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
    return lines[-1] if lines else "no message"
