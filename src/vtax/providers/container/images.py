"""The root file system in an engine's store of images: imported once, believed only where this user imported it.

The note of that has the ids of all imports. An id is a hash of what the image contains, so any of them is as good.
"""

from __future__ import annotations

import fcntl
from collections.abc import Sequence

from vtax.model.cluster import Image
from vtax.paths import replacing
from vtax.providers.container import engine as lines
from vtax.providers.container.client import Client

IMPORT_S = 900.0
MOST = 64  # ids that are remembered: the engines of several machines may share a home directory, and so the note
WITH_VTAX = ("setpriv", "--pdeathsig", "KILL")  # ends a command when vtax is killed, which then is not there to undo it


def ensure(client: Client, image: Image) -> str:
    """The tag of the root file system in the engine's store, imported when it is not there, or when the tag is on an
    image that this user's vtax did not import."""
    tag, note = lines.image_tag(image), lines.image_note(client.name, image)
    with note.with_name(f"{note.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would both import it
        known = note.read_text().split() if note.exists() else []
        if _id(client, tag) not in known:
            client.must(lines.import_image(client.name, image), timeout_s=IMPORT_S, before=WITH_VTAX)
            with replacing(note) as fresh:
                fresh.write_text("\n".join((*known[-MOST:], _id(client, tag))))
    return tag


def remove(client: Client, image: Image) -> None:
    """Remove the root file system from the engine's store; fine when it is not there."""
    tag = lines.image_tag(image)
    if _id(client, tag):
        client.must((client.name, "rmi", tag))
    lines.image_note(client.name, image).unlink(missing_ok=True)


def stray(client: Client) -> Sequence[str]:
    """Those that an import left without a tag, and that no container uses."""
    if client.unavailable():
        return ()
    chosen = ("--filter", "dangling=true", "--filter", f"label={lines.IMAGE_LABEL}")
    found = client.must((client.name, "images", "--quiet", "--no-trunc", *chosen)).stdout.split()
    used = (client.name, "ps", "--all", "--quiet", "--filter")
    return [one for one in dict.fromkeys(found) if not client.must((*used, f"ancestor={one}")).stdout.strip()]


def remove_stray(client: Client, name: str) -> None:
    client.run(("rmi", "--", name))  # fails where a container still uses it


def _id(client: Client, tag: str) -> str:
    """The engine's id of an image, which is a hash of what it contains; "" when there is none of that tag."""
    answer = client.run(("image", "inspect", "--format", "{{.Id}}", tag))
    return answer.stdout.strip() if answer.exit_code == 0 else ""
