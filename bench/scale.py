"""How long clusters of 2 to 64 nodes take until they are verified, and until they are gone again.

Nodes have one CPU each and share those of this machine (`share_cpus`). What is verified is what a campaign verifies:
limits, names and SSH, the shared file system, and a launch of an MPI program on all nodes. One cluster of each size and
environment, the sizes in ascending order. Needs a cached root file system, and what the environments need.

    python bench/scale.py [--in host,docker] [--nodes 2,4,8,16,32,64]

Ends with exit code 1 where a cluster of at most 64 nodes takes more than 60 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from vtax.events import ignore
from vtax.facts.host import capacity, host_facts
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec, ImageSpec
from vtax.paths import Paths
from vtax.planning.preparation import base_image
from vtax.planning.shape import cluster_shape
from vtax.planning.study import parse
from vtax.providers import provider
from vtax.providers.base import Provider, Site
from vtax.running import provision

READY_S = 60.0
STUDY = """
name = "scale"
baseline = "host"
[environments.host]
provider = "host"
network = "bridge"
[environments.docker]
provider = "docker"
[environments.podman]
provider = "podman"
[nodes]
workers = {workers}
cpus = 1
memory = "256 MiB"
share_cpus = true
[[benchmarks]]
name = "ping"
"""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--in", dest="environments", default="host,docker")
    options.add_argument("--nodes", default="2,4,8,16,32,64")
    asked = options.parse_args()
    late = False
    print("nodes  environment  created (s)  verified (s)  together (s)  destroyed (s)  vtax CPU (s)  load before")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vtax"
        paths = Paths(cache, Path(place) / "s")
        image = base_image(ImageSpec(), paths, ignore)
        for nodes in map(int, asked.nodes.split(",")):
            for name in asked.environments.split(","):
                late |= measured(name, nodes, image, paths) > READY_S
    return 1 if late else 0


def measured(name: str, nodes: int, image: Image, paths: Paths) -> float:
    """Print a line; returns how long the cluster took until it was verified."""
    study = parse(STUDY.format(workers=nodes - 1), "(bench)")
    shape, _ = cluster_shape(study, capacity(host_facts()))
    spec = next(one for one in study.environments if one.name == name)
    supplier = provider(spec.provider, paths.runtime)
    label = f"scale-{os.urandom(4).hex()}"
    site = Site(label, paths.runtime / label / "c", image, paths.runtime / label / "keys")
    supplier.prepare(spec, shape, image)
    load, own = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    ready, created_s = provisioned(supplier, spec, shape, site)
    whole_s = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    provision.destroy(supplier, site, ready.cluster)
    provision.remove_campaign(site.keys.parent)
    gone_s = time.monotonic() - began
    cpu_s = used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime
    print(
        f"{nodes:5}  {name:11}  {created_s:11.1f}  {whole_s - created_s:12.1f}  {whole_s:12.1f}  {gone_s:13.1f}  "
        f"{cpu_s:12.1f}  {load:11.1f}",
        flush=True,
    )
    return whole_s


def provisioned(
    supplier: Provider, spec: EnvironmentSpec, shape: ClusterShape, site: Site
) -> tuple[provision.Ready, float]:
    """A verified cluster, and how much of the time its creation took."""
    created: list[float] = []

    class Timed:
        """The provider, whose creations are timed."""

        def __getattr__(self, name: str) -> object:
            return getattr(supplier, name)

        def create(self, *given: object) -> object:
            began = time.monotonic()
            try:
                return supplier.create(*given)  # type: ignore[arg-type]
            finally:
                created.append(time.monotonic() - began)

    ready = provision.provision(Timed(), spec, shape, "/shared", site, [Scope.CLUSTER])  # type: ignore[arg-type]
    return ready, sum(created)


if __name__ == "__main__":
    sys.exit(main())
