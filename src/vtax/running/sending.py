"""The root file system for a machine that lacks it: sent once per digest, compressed, from where it was cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vtax.image import travel
from vtax.machines.agent import Agent, understood
from vtax.model.cluster import Image
from vtax.units import format_bytes

Tell = Callable[[str], None]


def silent(text: str) -> None:
    """For who tells nobody."""


def send_image(agent: Agent, image: Image, tell: Tell = silent) -> None:
    """Send it, unless the machine has it. Raises CommandError, ImageError or MachineLost."""
    with understood(agent):
        said = agent.ask("has_image", recipe=image.recipe, digest=image.digest).content
        if said["there"]:
            return
        images = Path(said["directory"])
    tell(f"{agent.name}: the root file system is sent, once")

    def again(there: int, total: int) -> None:
        if there:
            tell(f"{agent.name}: {format_bytes(there)} of {format_bytes(total)} are there from an earlier time")

    for name, path in travel.packed(image).items():
        agent.machine.put(path, str(travel.incoming(images, image.digest, name)), again)
    agent.ask("install_image", image=image.model_dump(mode="json"))
