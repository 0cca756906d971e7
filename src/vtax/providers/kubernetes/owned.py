"""What vtax has in a cluster: namespaces with its label, with the pods and Secrets in them, and their removal."""

from __future__ import annotations

import atexit
import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vtax.errors import VtaxError
from vtax.providers.base import LABEL, RUNTIME_LABEL, UNKNOWN, Leftover, elsewhere
from vtax.providers.kubernetes.manifests import HOST_LABEL, Owner
from vtax.transport import process
from vtax.transport.kubectl import Described, Kubectl, last_line

NOTE = "kubernetes.json"  # in the run-time directory of a label: the cluster in which it has something
PREFIX = "vtax-"
GONE_S = 90.0  # for pods to end, and for a namespace to be taken down


class Space(NamedTuple):
    """A namespace of vtax's, in a cluster."""

    cluster: Kubectl
    name: str
    label: str
    elsewhere: str
    going: bool


def owner_of(label: str, runtime: Path) -> Owner:
    return Owner(label, str(runtime.resolve()), socket.gethostname())


def new_name(label: str) -> str:
    """The name of a namespace: another one each time, because one that is taken down stays for some seconds."""
    return f"{PREFIX}{label}-{secrets.token_hex(2)}"


def note(runtime: Path, label: str, cluster: Kubectl) -> None:
    """Remember the cluster, for who has nothing but the label."""
    place = runtime / label
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    (place / NOTE).write_text(json.dumps(cluster._asdict()))


def noted(runtime: Path, label: str) -> Kubectl | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        said = json.loads((runtime / label / NOTE).read_text())
        return Kubectl(str(said["kubeconfig"]), str(said["context"]))
    return None


def clusters(runtime: Path) -> list[Kubectl]:
    """Those in which there may be something: the user's own, and those that are noted."""
    found = [noted(runtime, place.parent.name) for place in sorted(runtime.glob(f"*/{NOTE}"))]
    return list(dict.fromkeys((Kubectl(), *(one for one in found if one is not None))))


def spaces(cluster: Kubectl, runtime: Path, label: str = "") -> Iterator[Space]:
    """The namespaces with a label of vtax's, or with this one. Raises CommandError, EnvironmentMissing."""
    chosen = f"--selector={LABEL}={label}" if label else f"--selector={LABEL}"
    for one in cluster.items("namespaces", chosen):
        about = one["metadata"]
        mine = str(about.get("labels", {}).get(LABEL, ""))
        if about["name"].startswith(f"{PREFIX}{mine}-"):
            yield Space(cluster, about["name"], mine, _elsewhere(about, runtime, mine), "deletionTimestamp" in about)


def _elsewhere(about: Described, runtime: Path, label: str) -> str:
    """Whose it is: "" where it is of this run-time directory on this machine."""
    given = about.get("annotations", {})
    host, theirs = given.get(HOST_LABEL), given.get(RUNTIME_LABEL)
    if host is None or theirs is None:
        return UNKNOWN
    if host != socket.gethostname():
        return f"{theirs} on {host}"
    return elsewhere(runtime, label, Path(theirs, label))


def leftovers(provider: str, runtime: Path) -> list[Leftover]:
    """What is there of any campaign; nothing of a cluster that does not answer."""
    found = []
    for cluster in clusters(runtime) if process.installed("kubectl") else ():
        if cluster.unreachable():
            continue
        with suppress(VtaxError):  # another user's cluster may not let this one list anything
            for one in spaces(cluster, runtime):
                if not one.going:
                    found.append(Leftover(provider, "namespace", one.name, one.label, one.elsewhere))
    return found


def remove(cluster: Kubectl, runtime: Path, label: str) -> None:
    """End the pods of a label, and order its namespaces to be taken down: the end of this process waits for that."""
    mine = [one for one in spaces(cluster, runtime, label) if not one.elsewhere]
    for one in mine:
        where = f"--namespace={one.name}"
        _delete(cluster, "pods,secrets", "--all", where, f"--timeout={GONE_S:g}s")
        _delete(cluster, "namespace", one.name, "--wait=false")
        _going.setdefault(cluster, []).append(one.name)


def _delete(cluster: Kubectl, *words: str) -> None:
    result = cluster.read("delete", *words, "--ignore-not-found", timeout_s=GONE_S + 10)
    if result.exit_code != 0 and "NotFound" not in result.stderr:
        raise process.failed(result, f"run `vtax clean` when the cluster answers again ({last_line(result)})")


_going: dict[Kubectl, list[str]] = {}  # namespaces that clusters were ordered to take down


@atexit.register
def _await_gone() -> None:
    for cluster, names in _going.items():
        words = (f"--timeout={GONE_S:g}s", *(f"namespace/{name}" for name in names))
        cluster.run("wait", "--for=delete", *words, timeout_s=GONE_S + 10)
