"""The command lines of container engines. Pure.

CPU limits are a cpuset, plus a quota that never binds first (half a CPU above the cpuset), so that a node never gets
more than its share even if the cpuset were lost, and is never throttled while it is there. With `cpu_limit = "quota"`
there is no cpuset and the quota is exact: a common way to limit containers, but a different limit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from vtax.model.cluster import Image
from vtax.model.link import Link
from vtax.model.nodes import NodeShape
from vtax.providers.base import LABEL, RUNTIME_LABEL, Options
from vtax.providers.container import own_image
from vtax.units import parse_bytes

PERIOD_US = 100_000
SPARE_QUOTA_US = 50_000
PROCESSES = 16_384  # of a node: half of what Linux allows a small machine; four times what a large node's ranks take
CONFINED = ("--security-opt", "no-new-privileges", "--pids-limit", str(PROCESSES))
IMAGE_LABEL = "vtax.image"
SIZE_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 2**20}, {"type": "string", "examples": ["256 MiB"]}]}
NETWORKS = 200  # candidates 10.213.1.0/24 ... 10.213.200.0/24
FIRST_PORT, PORTS = 20_000, 10_000  # below those that the kernel gives to outgoing connections
STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d) ")
NOT_BUILT = "vtax image build   # then `vtax compose` again, for the command that imports vtax-rootfs:not-built-yet"


def _size(value: object) -> object:
    return parse_bytes(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else value


class ContainerOptions(Options):
    """`cpu_limit` "quota" limits CPU time instead of assigning CPUs. `runtime` is the OCI runtime (the engine's own
    when absent). `shm` is the size of /dev/shm, through which ranks on one node communicate. `mpi_transport` "tcp"
    forces TCP. `network` "host" leaves the nodes in the network of this machine, each with its own loopback address.
    `cpu_share` is the share of its CPUs' time that a node gets: a handicap of a known size."""

    cpu_limit: Literal["cpuset", "quota"] = "cpuset"
    runtime: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")] | None = None
    shm: Annotated[int, BeforeValidator(_size), Field(ge=2**20), WithJsonSchema(SIZE_SCHEMA)] = 256 * 2**20
    mpi_transport: Literal["auto", "tcp"] = "auto"
    network: Literal["bridge", "host"] = "bridge"
    cpu_share: Annotated[float, Field(ge=0.05, le=1)] | None = None

    @property
    def host_network(self) -> bool:
        return self.network == "host"


def image_tag(image: Image) -> str:
    return f"vtax-rootfs:{image.digest[:12]}"


def import_image(engine: str, image: Image) -> tuple[str, ...]:
    """The root file system becomes the container image as it is, with a first process and nothing else."""
    changes = ('CMD ["/usr/local/bin/node-init"]', f"LABEL {IMAGE_LABEL}={image.digest[:12]}")
    flags = [word for change in changes for word in ("--change", change)]
    return (engine, "import", *flags, image.archive, image_tag(image))


def image_note(engine: str, image: Image) -> Path:
    """Where the engine's id of the root file system is noted when it is imported: next to the archive, private."""
    return Path(image.archive).with_name(f"{engine}-id")


def name_of(campaign: str, node: str) -> str:
    return f"vtax-{campaign}-{node}"


def network_name(campaign: str) -> str:
    return f"vtax-{campaign}"


def is_named(name: str, kind: str, campaign: str) -> bool:
    """Whether a container, network or volume has the name that vtax gives to those of a campaign."""
    return name.startswith(f"{network_name(campaign)}-") if kind == "container" else name == network_name(campaign)


def subnet(campaign: str, attempt: int) -> str:
    """A private /24 for a campaign: a different one for each attempt, spread by the campaign's name."""
    start = int(hashlib.sha256(campaign.encode()).hexdigest(), 16)
    return f"10.213.{(start + attempt) % NETWORKS + 1}"


def routed(prefix: str, routes: str) -> bool:
    """Whether this machine has a route into `prefix` already; `routes` is /proc/net/route (hexadecimal, reversed)."""
    wanted = "".join(f"{int(part):02X}" for part in reversed([*prefix.split("."), "0"]))
    return any(line.split()[1:2] == [wanted] for line in routes.splitlines())


def loopback(campaign: str, attempt: int) -> tuple[str, int]:
    """For nodes in the network of this machine: the first three numbers of their loopback addresses and the port of
    their SSH servers, different for each attempt. Not 22, which this machine's own server may use on all addresses."""
    number = subnet(campaign, attempt).rpartition(".")[2]
    start = int(hashlib.sha256(campaign.encode()).hexdigest(), 16) // NETWORKS
    return f"127.213.{number}", FIRST_PORT + (start + attempt) % PORTS


def addresses(prefix: str, names: tuple[str, ...]) -> Mapping[str, str]:
    """Fixed addresses, known before anything starts: .10, .11, ... in the order of the nodes."""
    return {name: f"{prefix}.{10 + index}" for index, name in enumerate(names)}


@dataclass(frozen=True)
class Owner:
    """Whose a container, network or volume is: `runtime` is the run-time directory of the vtax that makes it."""

    campaign: str
    runtime: str

    @property
    def labels(self) -> tuple[str, ...]:
        return ("--label", f"{LABEL}={self.campaign}", "--label", f"{RUNTIME_LABEL}={self.runtime}")


def create_network(engine: str, owner: Owner, prefix: str, part: tuple[str, ...] = ()) -> tuple[str, ...]:
    """`part` are the words for one that engines on several machines make parts of."""
    subnet_of = ("--subnet", f"{prefix}.0/24", *part)
    return (engine, "network", "create", *subnet_of, *owner.labels, network_name(owner.campaign))


def bridge_name(campaign: str) -> str:
    """At most 15 characters, as for every interface."""
    return f"vb-{campaign}"


def gateway(link: Link) -> str:
    """The address of a machine's own bridge: from the end of the network, which the nodes' addresses do not reach."""
    return f"{link.interconnect.prefix}.{254 - link.number}"


def create_volume(engine: str, owner: Owner) -> tuple[str, ...]:
    return (engine, "volume", "create", *owner.labels, network_name(owner.campaign))


def quota_us(node: NodeShape, options: ContainerOptions) -> int:
    """CPU time in every period: exact where the study limits time, else what never binds before the cpuset does."""
    if options.cpu_share is not None:
        return round(node.cpus * PERIOD_US * options.cpu_share)
    return node.cpus * PERIOD_US + (SPARE_QUOTA_US if options.cpu_limit == "cpuset" else 0)


def create_node(
    engine: str,
    owner: Owner,
    node: NodeShape,
    options: ContainerOptions,
    image: str,
    places: Mapping[str, str],
    shared_path: str,
    workload: Path | None = None,
    shared: str = "",
) -> tuple[str, ...]:
    """One node, not started: its limits, its address, the names of all nodes, SSH on a loopback port or address, and
    the directory with the study's own image where it has one. `shared` is the directory of this machine that all
    nodes share, where that is not a volume of the engine."""
    others = [
        word for name, address in places.items() if name != node.name for word in ("--add-host", f"{name}:{address}")
    ]
    quota = quota_us(node, options)
    pins = ("--cpuset-cpus", ",".join(map(str, node.cpu_ids))) if options.cpu_limit == "cpuset" else ()
    own_network = ("--network", network_name(owner.campaign), "--ip", places[node.name])
    return (
        *(engine, "create", "--name", name_of(owner.campaign, node.name), "--hostname", node.name),
        *owner.labels,
        *(("--runtime", options.runtime) if options.runtime else ()),
        *(("--network", "host") if options.host_network else own_network),
        *others,
        *(() if options.host_network else ("--publish", "127.0.0.1::22")),
        *pins,
        *("--cpu-period", str(PERIOD_US), "--cpu-quota", str(quota)),
        *("--memory", str(node.memory_bytes), "--memory-swap", str(node.memory_bytes)),
        *("--shm-size", str(options.shm)),
        *CONFINED,
        *("--volume", f"{shared or network_name(owner.campaign)}:{shared_path}"),
        *(own_image.flags(workload) if workload else ()),
        image,
    )


def first_line(log: str) -> float | None:
    """When the first line of a log with timestamps was written, in Unix time; None without a line."""
    found = STAMP.match(log)
    if found is None:
        return None
    moment = datetime.fromisoformat(f"{found[1]}{found[3].replace('Z', '+00:00')}")
    return moment.timestamp() + float(f"0{found[2] or '.0'}")


KEYS = """\
#   mkdir keys && ssh-keygen -q -t ed25519 -N '' -f keys/id_ed25519 && cp keys/id_ed25519.pub keys/authorized_keys
#   printf 'Host *\\n  StrictHostKeyChecking accept-new\\n' >keys/config && chmod 700 keys && sudo chown -R 0:0 keys
"""


def compose(
    name: str, nodes: tuple[NodeShape, ...], options: ContainerOptions, load: str, prefix: str, shared_path: str
) -> str:
    """The same cluster as a Compose file, to continue by hand. `load` is the command that imports the image."""
    places = addresses(prefix, tuple(node.name for node in nodes))
    image = load.split()[-1]
    header = f"# Written by `vtax compose`. Once, before `docker compose up -d`:\n#   {load}\n{KEYS}"
    lines = [f"name: vtax-{name}", "services:"]
    for node in nodes:
        quota = quota_us(node, options)
        lines += [
            f"  {node.name}:",
            f"    image: {image}",
            '    command: ["sh", "-c", "ssh-keygen -q -A && exec node-init"]',
            f"    hostname: {node.name}",
            *([f"    runtime: {options.runtime}"] if options.runtime else []),
            *([f'    cpuset: "{",".join(map(str, node.cpu_ids))}"'] if options.cpu_limit == "cpuset" else []),
            f"    cpu_period: {PERIOD_US}",
            f"    cpu_quota: {quota}",
            f"    mem_limit: {node.memory_bytes}",
            f"    memswap_limit: {node.memory_bytes}",
            f"    shm_size: {options.shm}",
            f"    pids_limit: {PROCESSES}",
            '    security_opt: ["no-new-privileges"]',
            '    ports: ["127.0.0.1::22"]',
            f'    volumes: ["shared:{shared_path}", "./keys:/root/.ssh"]',
            "    extra_hosts:",
            *[f'      - "{other}:{address}"' for other, address in places.items() if other != node.name],
            "    networks:",
            f"      cluster: {{ipv4_address: {places[node.name]}}}",
        ]
    lines += [
        "volumes:",
        "  shared: {}",
        "networks:",
        "  cluster:",
        f"    ipam: {{config: [{{subnet: {prefix}.0/24}}]}}",
    ]
    return header + "\n".join(lines) + "\n"
