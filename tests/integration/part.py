"""One part of a cluster, made by a process of its own in the network namespace that stands for a machine.

    nsenter --net=/run/netns/MACHINE python part.py <ORDER

ORDER is JSON on standard input: the run-time directory of that machine's vtax, and what `Provider.create` is given.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import TypeAdapter

from vtax.facts.uplink import interfaces
from vtax.model.cluster import Image
from vtax.model.link import Interface, Link
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import provider
from vtax.providers.base import Site

INTERFACES = TypeAdapter(tuple[Interface, ...])


def site_of(order: dict[str, object]) -> Site:
    place = Path(str(order["place"]))
    return Site(
        campaign=str(order["label"]),
        directory=place / "c",
        image=Image.model_validate(order["image"]),
        keys=place / "keys",
        link=Link.model_validate(order["link"]),
    )


def main() -> None:
    if sys.argv[1:] == ["interfaces"]:
        sys.stdout.write(INTERFACES.dump_json(interfaces()).decode())
        return
    order = json.load(sys.stdin)
    spec = EnvironmentSpec.model_validate(order["spec"])
    site = site_of(order)
    site.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    supplier = provider(spec.provider, Path(order["runtime"]))
    supplier.create(spec, ClusterShape.model_validate(order["shape"]), "/shared", site)


if __name__ == "__main__":
    main()
